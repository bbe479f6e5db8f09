"""Frames as bytes: how records are packed into one, and how they are taken out again.

Decoding trusts nothing: whatever the bytes are, it ends, takes no more memory than they do, and
raises nothing but `BadFrame`.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

Record = tuple[str, bytes]
"""A message: its topic and its payload."""

FRAME = struct.Struct("<IIBqQqI")
BODY = struct.Struct("<BqQqI")
PREFIX = struct.Struct("<II")
RECORD = struct.Struct("<IH")

MAX_BODY = 32 << 20
MAX_PAYLOAD = 16 << 20
FRAME_BYTES = 1 << 20
SAME_TOPIC = 0xFFFF
LAST = 1


class BadFrame(Exception):  # noqa: N818
    """The bytes are not a frame; never leaves this package."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame in the log, from `position` to `end`; `data[body:]` starts with its body."""

    position: int
    end: int
    crc: int
    last: bool
    arrival: int
    source: int
    epoch: int
    count: int
    data: bytes = field(repr=False)
    body: int = field(repr=False)

    def records(self) -> list[Record]:
        """The records in order. Raises `BadFrame` when the writer broke the format."""
        start = self.body + BODY.size
        return decode_records(self.data, start, self.body + self.size, self.count)

    @property
    def size(self) -> int:
        """The length of the body."""
        return self.end - self.position - PREFIX.size


def decode_head(data: bytes, at: int, position: int, limit: int) -> Frame:
    """The frame whose head is at `data[at:]`; its CRC is not checked, its length is: it ends at or
    before position `limit`."""
    if at + FRAME.size > len(data):
        raise BadFrame("it ends within a frame")
    length, crc, flags, arrival, source, epoch, count = FRAME.unpack_from(data, at)
    end = position + PREFIX.size + length
    if not BODY.size <= length <= MAX_BODY or end > limit:
        raise BadFrame(f"a frame cannot have {length} bytes here")
    body = at + PREFIX.size
    return Frame(position, end, crc, bool(flags & LAST), arrival, source, epoch, count, data, body)


def check(frame: Frame) -> None:
    """Raises `BadFrame` when the body is not the one that was written."""
    body = memoryview(frame.data)[frame.body : frame.body + frame.size]
    if len(body) != frame.size or zlib.crc32(body) != frame.crc:
        raise BadFrame("the checksum is wrong")


def decode_records(data: bytes, start: int, end: int, count: int) -> list[Record]:
    """The `count` records that fill `data[start:end]` exactly."""
    records: list[Record] = []
    add, unpack = records.append, RECORD.unpack_from
    at, topic = start, ""
    try:
        for _ in range(count):
            length, size = unpack(data, at)
            at += 6
            if size != SAME_TOPIC:
                topic = str(data[at : at + size], "utf-8")
                at += size
            stop = at + length
            if data[stop] != 10 or not topic:
                raise BadFrame("a record has no end or no topic")
            add((topic, data[at:stop]))
            at = stop + 1
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise BadFrame("a record cannot be read") from error
    if at != end:
        raise BadFrame("the records do not fill their frame")
    return records


def encode(
    parts: list[bytes], last: bool, arrival: int, source: int, epoch: int, count: int
) -> tuple[bytes, bytes]:
    """Prefix and body of a frame. `parts[0]` is a place holder, the rest are encoded records."""
    parts[0] = BODY.pack(LAST if last else 0, arrival, source, epoch, count)
    body = b"".join(parts)
    return PREFIX.pack(len(body), zlib.crc32(body)), body
