"""Batches: what goes in comes out, and nothing else is taken for one."""

from __future__ import annotations

import random
import struct
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.links import batch as module
from fogline.links.batch import BadBatchError, Piece, decode, encode, group_pieces, pieces_of
from fogline.links.identity import number_of, source_of
from fogline.links.receiver import Delivery, Rejected, in_portions, missing_parts, unpack
from fogline.links.sender import pack_batches
from fogline.log import LogDamaged
from fogline.log.files.frames import MAX_PAYLOAD
from tests.links.kit import site

ORIGIN = 77
payload_lists = st.lists(st.binary(max_size=50), max_size=20)


@st.composite
def piece_lists(draw: st.DrawFn) -> list[Piece]:
    steps = draw(st.lists(st.integers(1, 1 << 50), min_size=1, max_size=10))
    ends = [sum(steps[: n + 1]) for n in range(len(steps))]
    return [Piece(end, draw(payload_lists)) for end in ends]


@given(st.integers(1, (1 << 62) - 1), piece_lists())
def test_round_trip(origin: int, pieces: list[Piece]) -> None:
    found = decode(encode(origin, pieces))
    assert (found.origin, list(found.pieces)) == (origin, pieces)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadBatchError):
        decode(data)
    with pytest.raises(BadBatchError):
        decode(encode(ORIGIN, [Piece(1, [b"x"])])[:4] + data)


@given(st.binary(max_size=300))
def test_any_bytes_inside_are_read_or_refused(raw: bytes) -> None:
    try:
        decode(packed(raw))
    except BadBatchError:
        return


@given(piece_lists(), st.data())
def test_a_changed_batch_is_refused_or_whole(pieces: list[Piece], data: st.DataObject) -> None:
    good = bytearray(encode(ORIGIN, pieces))
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(bytes(good))
    except BadBatchError:
        return
    # Only the origin is not checked by what is in it, and what zlib itself does not look at.
    assert list(found.pieces) == pieces


@given(piece_lists(), st.data())
def test_a_truncated_batch_is_refused(pieces: list[Piece], data: st.DataObject) -> None:
    good = encode(ORIGIN, pieces)
    with pytest.raises(BadBatchError):
        decode(good[: data.draw(st.integers(0, len(good) - 1))])
    with pytest.raises(BadBatchError):
        decode(good + b"x")


def packed(raw: bytes, size: int | None = None, origin: int = ORIGIN, version: int = 1) -> bytes:
    told = len(raw) if size is None else size
    return struct.pack("<4sBQI", b"FLNK", version, origin, told) + zlib.compress(raw)


GOOD = struct.pack("<IQII", 1, 5, 1, 1) + b"x"


@pytest.mark.parametrize(
    "data",
    [
        packed(GOOD, version=2),
        packed(GOOD, origin=0),
        packed(GOOD, origin=1 << 62),
        packed(GOOD, size=len(GOOD) - 1),
        packed(GOOD, size=len(GOOD) + 1),
        packed(GOOD, size=(64 << 20) + 1),
        packed(b""),
        packed(struct.pack("<I", 0)),
        packed(struct.pack("<I", 1)),
        packed(struct.pack("<I", 0xFFFFFFFF) + b"x" * 100),
        packed(struct.pack("<IQI", 1, 5, 0xFFFFFFFF) + b"x" * 100),
        packed(struct.pack("<IQII", 1, 5, 1, 2) + b"x"),
        packed(struct.pack("<IQII", 1, 5, 1, 1) + b"xx"),
        packed(struct.pack("<IQI", 1, 0, 0)),
        packed(struct.pack("<IQI", 1, 1 << 62, 0)),
        packed(struct.pack("<IQIQI", 2, 5, 0, 5, 0)),
        packed(struct.pack("<IQIQI", 2, 5, 0, 4, 0)),
        packed(struct.pack("<IQII", 1, 5, 1, MAX_PAYLOAD + 1) + bytes(MAX_PAYLOAD + 1)),
        packed(bytes(200 << 20), size=60 << 20),
    ],
)
def test_hostile_batches(data: bytes) -> None:
    assert decode(packed(GOOD)).pieces == (Piece(5, [b"x"]),)
    with pytest.raises(BadBatchError):
        decode(data)


# ── from frames ──────────────────────────────────────────────────────────────────────────────────


def test_large_frames_are_cut_always_at_the_same_places(tmp_path: Path) -> None:
    chance = random.Random(1)
    payloads = [chance.randbytes(900_000)] + [chance.randbytes(n) for n in (9_000_000, 10, 20)]
    with site(tmp_path).writer("x") as writer:
        writer.append([("x", payload) for payload in payloads])
        writer.commit()
    frames, end = site(tmp_path).reader("x").frames(0, 64 << 20)
    pieces = list(pieces_of(frames))
    assert [payload for piece in pieces for payload in piece.payloads] == payloads
    ends = [piece.end for piece in pieces]
    assert ends == sorted(set(ends))
    assert ends[-1] == end
    assert list(pieces_of(frames)) == pieces
    groups = list(group_pieces(pieces))
    assert [piece for group in groups for piece in group] == pieces
    assert all(len(encode(1, group)) < MAX_PAYLOAD for group in groups)


def test_a_record_too_large_for_a_message_is_left_out(tmp_path: Path) -> None:
    with site(tmp_path).writer("x") as writer:
        writer.append([("x", random.Random(1).randbytes(MAX_PAYLOAD)), ("x", b"small")])
        writer.commit()
    frames, _ = site(tmp_path).reader("x").frames(0, 64 << 20)
    found = pack_batches(site(tmp_path).folder("x"), "y")(frames)
    assert (found.records, found.left_out) == (1, 1)
    assert decode(found.messages[0].payload).pieces[0].payloads == [b"small"]


# ── which records are needed ─────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), max_size=20), st.integers(-1, 9))
def test_overlapping_deliveries_are_needed_once(cuts: list[tuple[int, int]], last: int) -> None:
    """Whatever comes again, and however it is cut, as long as nothing is left out."""
    covered, deliveries = max(last, 0), []
    for start, length in cuts:
        begin = min(start, covered)
        covered = max(covered, begin + length)
        pieces = [Piece(n + 1, [b"%d" % n]) for n in range(begin, begin + length)]
        deliveries.append(Delivery("t", 5, pieces))
    parts = missing_parts(deliveries, lambda source: last)
    stored = [int(payload) for part in parts for _, payload in part.records]
    assert stored == list(range(max(last, 0), covered))
    assert [part.epoch for part in parts] == sorted({part.epoch for part in parts})


def test_messages_that_are_no_batches() -> None:
    good = encode(ORIGIN, [Piece(5, [b"x"])])
    assert isinstance(unpack("fogline/link/a", good), Delivery)
    assert isinstance(unpack("fogline/link/a", good[1:]), Rejected)
    assert isinstance(unpack("fogline/link/", good), Rejected)


def test_bombs_are_unpacked_a_few_at_a_time() -> None:
    bomb = encode(ORIGIN, [Piece(5, [bytes(MAX_PAYLOAD)] * 3)])
    assert len(bomb) < 300_000
    unpacked = 0

    def unpacking() -> object:
        nonlocal unpacked
        for _ in range(20):
            unpacked += 1
            yield unpack("fogline/link/a", bomb)

    for portions, portion in enumerate(in_portions(unpacking()), 1):  # type: ignore[arg-type]
        assert len(portion) == 1
        assert unpacked == portions
    assert module.LARGEST < 1 << 27


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def test_a_number_is_made_once_whoever_comes_first(tmp_path: Path) -> None:
    found: list[int] = []
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        ready = threading.Barrier(4)

        def make(folder: Path = folder, ready: threading.Barrier = ready) -> None:
            ready.wait()
            found.append(number_of(folder))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(path.name for path in folder.iterdir()) == [".id.copy", "id"]
    assert all(0 < number < 1 << 62 for number in found)
    assert len(set(found)) == 20


@pytest.mark.parametrize("text", ["", "x", "0", "-5", str(1 << 62)])
def test_a_number_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "id").write_text(text)
    with pytest.raises(LogDamaged):
        number_of(tmp_path)


@given(st.integers(1, (1 << 62) - 1), st.text())
def test_sources_are_numbers_of_their_own(number: int, topic: str) -> None:
    source = source_of(number, topic)
    assert 0 < source < 1 << 62
    assert source == source_of(number, topic)
    assert source != source_of(number, topic + "x")
