"""Frames as bytes: how records are packed into one, and how they are taken out again.

Decoding trusts nothing: whatever the bytes are, it ends, takes no more memory than they do, and
raises nothing but `BadFrame`.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

LogRecord = tuple[str, bytes]
"""A message: its topic and its payload."""

MARKER = b"\xf5FR\xfa"
"""How a frame begins. No text in UTF-8 holds these bytes."""
HEAD = struct.Struct("<4sIIIQQIBqQq")
_GUARDED = struct.Struct("<IQQIBqQq")
_SUMS = struct.Struct("<4sII")
RECORD = struct.Struct("<IH")

VERSION = 2
CHECKED = 8
"""Where what the checksum of a frame covers begins: behind it."""
MAX_BODY = 32 << 20
MAX_PAYLOAD = 16 << 20
FRAME_BYTES = 64 << 10
SAME_TOPIC = 0xFFFF
LAST = 1


class BadFrame(Exception):  # noqa: N818
    """The bytes are not a frame; never leaves this package."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame in the log, from `position` to `end`; `data[at:]` starts with it."""

    position: int
    end: int
    crc: int
    last: bool
    arrival: int
    source: int
    epoch: int
    count: int
    number: int
    """Of the first record, counted since the log began."""
    data: bytes = field(repr=False)
    at: int = field(repr=False)

    def records(self) -> list[LogRecord]:
        """The records in order. Raises `BadFrame` when the writer broke the format."""
        return decode_records(self.data, self.at + HEAD.size, self.at + self.size, self.count)

    @property
    def size(self) -> int:
        """The length of the frame."""
        return self.end - self.position

    @property
    def next_number(self) -> int:
        """That of the first record behind this frame."""
        return self.number + self.count


def decode_head(data: bytes, at: int, position: int, limit: int) -> Frame:
    """The frame whose head is at `data[at:]`; it ends at or before position `limit`. The checksum
    of the head is checked, that of all is not."""
    if at + HEAD.size > len(data):
        raise BadFrame("it ends within a frame")
    head = HEAD.unpack_from(data, at)
    marker, crc, head_crc, length, own, number, count, flags, arrival, source, epoch = head
    if marker != MARKER or zlib.crc32(data[at + _SUMS.size : at + HEAD.size]) != head_crc:
        raise BadFrame("the head of a frame is damaged")
    end = position + HEAD.size + length
    if own != position:
        raise BadFrame("a frame is not where it was written")
    if length > MAX_BODY or end > limit:
        raise BadFrame(f"a frame cannot have {length} bytes here")
    last = bool(flags & LAST)
    return Frame(position, end, crc, last, arrival, source, epoch, count, number, data, at)


def check(frame: Frame) -> None:
    """Raises `BadFrame` when the frame is not the one that was written."""
    start, stop = frame.at + CHECKED, frame.at + frame.size
    if stop > len(frame.data) or zlib.crc32(memoryview(frame.data)[start:stop]) != frame.crc:
        raise BadFrame("the checksum is wrong")


def find_head(data: bytes, base: int, limit: int) -> Frame | None:
    """The first whole head in `data`, which begins at position `base`, that is where it was
    written."""
    at = data.find(MARKER)
    while at >= 0:
        try:
            return decode_head(data, at, base + at, limit)
        except BadFrame:
            at = data.find(MARKER, at + 1)
    return None


def decode_records(data: bytes, start: int, end: int, count: int) -> list[LogRecord]:
    """The `count` records that fill `data[start:end]` exactly."""
    records: list[LogRecord] = []
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


@dataclass(frozen=True, slots=True)
class FrameBody:
    """What a frame holds, before it has a place in the log."""

    last: bool
    arrival: int
    source: int
    epoch: int
    count: int
    records: bytes
    """The encoded records."""

    @property
    def size(self) -> int:
        """The length of the frame."""
        return HEAD.size + len(self.records)

    def head(self, position: int, number: int) -> bytes:
        """The head of the frame at this position, whose first record has this number."""
        flags = LAST if self.last else 0
        places = (len(self.records), position, number, self.count, flags)
        guarded = _GUARDED.pack(*places, self.arrival, self.source, self.epoch)
        head_crc = zlib.crc32(guarded)
        crc = zlib.crc32(head_crc.to_bytes(4, "little") + guarded)
        return _SUMS.pack(MARKER, zlib.crc32(self.records, crc), head_crc) + guarded
