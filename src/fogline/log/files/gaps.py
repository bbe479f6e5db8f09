"""How far damage reaches, and how many records it took.

Records are numbered, so what is missing between two frames that can be read is known exactly,
whatever is left of the bytes between them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from fogline.log.files import removed
from fogline.log.files.committed import End
from fogline.log.files.frames import Frame
from fogline.log.files.segments import Segment, heads, list_segments, locate

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Gap:
    """Nothing between `start` and `end` can be read."""

    start: int
    end: int
    records: int
    """How many that were; −1 when it is not known."""
    number: int
    """That of the first record behind it."""


def measure(folder: Path, start: int, committed: End, expected: int = UNKNOWN) -> Gap:
    """The gap at `start`, where no frame can be read; `expected` is the number of the record that
    should be there, if that is known."""
    segments = [item for item in list_segments(folder) if item.first < committed.position]
    found = _behind(segments, start, committed)
    if found is not None and found.position == start:
        return Gap(start, found.end, found.count, found.next_number)
    end, number = (
        (found.position, found.number) if found else (committed.position, committed.number)
    )
    if expected < 0:
        expected = _number_at(folder, segments, start)
    return Gap(start, end, number - expected if 0 <= expected <= number else UNKNOWN, number)


def _behind(segments: list[Segment], start: int, committed: End) -> Frame | None:
    """The first frame at or behind `start` whose head is whole; its body may be damaged."""
    for index in range(max(locate(segments, start), 0), len(segments)):
        segment = segments[index]
        stop = segments[index + 1].first if index + 1 < len(segments) else committed.position
        with contextlib.suppress(FileNotFoundError):
            for frame in heads(segment, max(start, segment.frames), stop):
                return frame
    return None


def _number_at(folder: Path, segments: list[Segment], position: int) -> int:
    """The number of the record at `position`, by the last frame before it."""
    for segment in reversed(segments[: locate(segments, position) + 1]):
        number = UNKNOWN
        with contextlib.suppress(FileNotFoundError):
            for frame in heads(segment, segment.frames, position):
                number = frame.next_number
        if number >= 0:
            return number
        position = segment.first
    begin = removed.load(folder)
    return begin.number if position == begin.position else UNKNOWN
