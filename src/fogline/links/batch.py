"""Batches: stretches of a log as one message, compressed.

    "FLNK", version u8, number of the origin u64, length of the rest when unpacked u32     plain
    number of pieces u32, for each: end u64 and records u32                                zlib
    length of each payload u32, then all payloads

All numbers are little-endian. A **piece** is a frame of the origin's log, or a part of one that
would be too large for a message; its end is a position that grows from piece to piece, and the same
piece always has the same end. Topics do not travel: all records belong to the topic the message is
for.

Decoding trusts nothing: whatever the bytes are, it ends, unpacks `LARGEST` bytes at most, and
raises nothing but `BadBatchError`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from fogline.common.errors import FoglineError
from fogline.log import Frame
from fogline.log.files.frames import MAX_PAYLOAD, BadFrame

PREFIX = "fogline/link/"
"""Batches for a topic are published on this and the topic."""
LARGEST = 64 << 20
PIECE_BYTES = 4 << 20
_MAGIC, _VERSION, _LEVEL = b"FLNK", 1, 1
_HEAD = struct.Struct("<4sBQI")
_COUNT = struct.Struct("<I")
_PIECE = struct.Struct("<QI")
_HIGHEST = 1 << 62


class BadBatchError(FoglineError):
    """Bytes that are no batch, or none of a version we know."""


class Piece(NamedTuple):
    """Records that belong together, and the position of the origin's log behind them."""

    end: int
    payloads: list[bytes]


@dataclass(frozen=True, slots=True)
class LinkBatch:
    """Pieces of the log `origin` in order; there is at least one."""

    origin: int
    pieces: tuple[Piece, ...]


# ── from a log ───────────────────────────────────────────────────────────────────────────────────


def pieces_of(frames: Iterable[Frame]) -> Iterator[Piece]:
    """The records of these frames; a frame that breaks the format is left out."""
    for frame in frames:
        try:
            payloads = [payload for _, payload in frame.records()]
        except BadFrame:
            continue
        if frame.size <= PIECE_BYTES:
            yield Piece(frame.end, payloads)
        else:
            yield from _cut(frame, payloads)


def _cut(frame: Frame, payloads: list[bytes]) -> Iterator[Piece]:
    """A large frame, always cut at the same places."""
    parts: list[list[bytes]] = []
    left = 0
    for payload in payloads:
        if not parts or len(payload) > left:
            parts.append([])
            left = PIECE_BYTES
        parts[-1].append(payload)
        left -= len(payload)
    for number, part in enumerate(parts, 1):
        yield Piece(frame.end if number == len(parts) else frame.position + number, part)


def group_pieces(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces that go into one batch: no more than a large one has."""
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        length = sum(map(len, piece.payloads))
        if group and size + length > PIECE_BYTES:
            yield group
            group, size = [], 0
        group.append(piece)
        size += length
    if group:
        yield group


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────


def encode(origin: int, pieces: Sequence[Piece]) -> bytes:
    payloads = list(chain.from_iterable(piece.payloads for piece in pieces))
    ends = (number for piece in pieces for number in (piece.end, len(piece.payloads)))
    raw = b"".join(
        (
            _COUNT.pack(len(pieces)),
            struct.pack("<" + "QI" * len(pieces), *ends),
            struct.pack(f"<{len(payloads)}I", *map(len, payloads)),
            *payloads,
        )
    )
    return _HEAD.pack(_MAGIC, _VERSION, origin, len(raw)) + zlib.compress(raw, _LEVEL)


def decode(data: bytes) -> LinkBatch:
    """Raises `BadBatchError`."""
    if len(data) < _HEAD.size:
        raise BadBatchError(f"{len(data)} bytes are not a batch")
    magic, version, origin, size = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise BadBatchError("it does not begin like a batch of version 1")
    if not 0 < origin < _HIGHEST or size > LARGEST:
        raise BadBatchError(f"a batch of {size} bytes from a log with the number {origin}")
    return LinkBatch(origin, _pieces(_decompress(data, size)))


def _decompress(data: bytes, size: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(memoryview(data)[_HEAD.size :], size + 1)
    except zlib.error as error:
        raise BadBatchError(f"it cannot be unpacked: {error}") from error
    if len(raw) != size or not unpacker.eof or unpacker.unused_data:
        raise BadBatchError(f"it does not unpack to the {size} bytes that it announces")
    return raw


def _pieces(raw: bytes) -> tuple[Piece, ...]:
    if len(raw) < _COUNT.size:
        raise BadBatchError("it ends too early")
    (count,) = _COUNT.unpack_from(raw)
    table = _COUNT.size + count * _PIECE.size
    if not count or table > len(raw):
        raise BadBatchError(f"it cannot have {count} pieces")
    heads = list(_PIECE.iter_unpack(raw[_COUNT.size : table]))
    ends = [0, *(end for end, _ in heads)]
    if ends[-1] >= _HIGHEST or any(end <= before for before, end in pairwise(ends)):
        raise BadBatchError("its positions do not grow")
    payloads = _payloads(raw, table, sum(records for _, records in heads))
    bounds = accumulate((records for _, records in heads), initial=0)
    places = zip(heads, pairwise(bounds), strict=True)
    return tuple(Piece(head[0], payloads[start:stop]) for head, (start, stop) in places)


def _payloads(raw: bytes, at: int, count: int) -> list[bytes]:
    start = at + count * _COUNT.size
    if start > len(raw):
        raise BadBatchError(f"it cannot have {count} records")
    lengths = struct.unpack_from(f"<{count}I", raw, at)
    bounds = list(accumulate(lengths, initial=start))
    if bounds[-1] != len(raw) or max(lengths, default=0) > MAX_PAYLOAD:
        raise BadBatchError("its records do not fill it, or are too large")
    return [raw[begin:end] for begin, end in pairwise(bounds)]
