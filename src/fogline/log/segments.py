"""The segment files of one log: which there are, where a position is, which frames they hold."""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fogline.log.errors import LogDamaged
from fogline.log.frames import FRAME, PREFIX, BadFrame, Frame, check, decode_head

HEADER = struct.Struct("<6sHQ")
_MAGIC = b"FOGLOG"
_VERSION = 1
_DIGITS = 20
_TOO_HIGH = "0922"
_WINDOW = 16 << 10


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One file; `first` is the position of its first byte, where its header stands."""

    first: int
    path: Path

    @property
    def frames(self) -> int:
        """The position of the first frame."""
        return self.first + HEADER.size

    def size(self) -> int:
        return self.path.stat().st_size


def header(first: int) -> bytes:
    return HEADER.pack(_MAGIC, _VERSION, first)


def segment(folder: Path, first: int) -> Segment:
    return Segment(first, folder / f"{first:0{_DIGITS}}.seg")


def list_segments(folder: Path) -> list[Segment]:
    """All segments in order; none where there is no folder yet. Other files are left alone."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    stems = (name[:-4] for name in names if name.endswith(".seg"))
    return sorted(segment(folder, int(stem)) for stem in stems if _is_number(stem))


def _is_number(stem: str) -> bool:
    return len(stem) == _DIGITS and stem.isascii() and stem.isdigit() and stem < _TOO_HIGH


def locate(segments: list[Segment], position: int) -> int:
    """The index of the segment that holds the byte at `position`, −1 when it is before all."""
    return bisect_right(segments, position, key=lambda item: item.first) - 1


def has_header(segment: Segment) -> bool:
    with segment.path.open("rb") as file:
        return file.read(HEADER.size) == header(segment.first)


def check_header(segment: Segment) -> None:
    if not has_header(segment):
        hint = "move the file away to go on without what it holds"
        raise LogDamaged(segment.path, segment.first, "it does not begin with its header", hint)


def heads(segment: Segment, start: int, stop: int) -> Iterator[Frame]:
    """The frames from `start` to `stop`, without their bodies and without checking these.

    Raises `BadFrame` where a head cannot be one or reaches behind `stop`.
    """
    with segment.path.open("rb", buffering=0) as file:
        data, base = b"", start
        while start < stop:
            if start + FRAME.size > base + len(data):
                data, base = os.pread(file.fileno(), _WINDOW, start - segment.first), start
            frame = decode_head(data, start - base, start, stop)
            yield frame
            start = frame.end


def checked_frames(segment: Segment, start: int) -> Iterator[Frame]:
    """The frames from `start` to the end of the file; raises `BadFrame` at the first bad one."""
    with segment.path.open("rb", buffering=0) as file:
        for head in heads(segment, start, segment.first + segment.size()):
            size = PREFIX.size + head.size
            data = os.pread(file.fileno(), size, head.position - segment.first)
            frame = decode_head(data, 0, head.position, head.end)
            check(frame)
            yield frame


def first_arrival(segment: Segment, committed: int) -> int | None:
    """When the first frame of a segment arrived; nothing when there is none that can be read."""
    try:
        return next((frame.arrival for frame in heads(segment, segment.frames, committed)), None)
    except (BadFrame, FileNotFoundError):
        return None
