"""Finding the end of a log that was not closed, and cutting off what lies behind it.

At most one commit is in flight when a writer dies. So a place that cannot be read with two commits
or more behind it was acknowledged and got damaged later. It stays as it is, readers will report it,
and the log goes on behind it. Nothing before `committed` is ever cut off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fogline.common import atomic_files
from fogline.log.files.committed import End
from fogline.log.files.frames import BadFrame, Frame
from fogline.log.files.segments import (
    Segment,
    checked_frames,
    has_header,
    heads,
    list_segments,
    locate,
)


def find_end(folder: Path, claimed: End | None) -> End:
    """The end of the last whole commit, where `claimed` is what `committed` says, if anything."""
    segments = list_segments(folder)
    if claimed is not None:
        return _last_commit(segments, claimed.position) or claimed
    for segment in reversed(segments):
        if end := _last_commit(segments, segment.first):
            return end
    return End(segments[0].first if segments else 0, 0)


def cut(folder: Path, end: int) -> None:
    """Removes everything behind `end`; what is before it is on disk afterwards."""
    segments = list_segments(folder)
    for segment in reversed(segments):
        if segment.first >= end:
            segment.path.unlink()
        elif segment.end() > end:
            os.truncate(segment.path, end - segment.first)
    atomic_files.sync(folder)


def sync_from(folder: Path, position: int) -> None:
    """Everything from `position` on is on disk."""
    segments = list_segments(folder)
    for segment in segments[max(locate(segments, position), 0) :]:
        atomic_files.sync(segment.path)
    atomic_files.sync(folder)


@dataclass(slots=True)
class _Commits:
    """The whole commits among frames that come one after the other."""

    end: End | None = None
    count: int = 0

    def add(self, frame: Frame) -> None:
        if frame.last:
            self.end = End(frame.end, frame.next_number)
            self.count += 1


def _last_commit(segments: list[Segment], start: int) -> End | None:
    """The end of the last whole commit behind `start`, nothing when there is none. Behind a bad
    place it takes two commits to count."""
    safe: End | None = None
    found = _Commits()
    damaged = False
    for frame in _frames_behind(segments, start):
        if frame is None:
            safe = _find_end(safe, found, damaged)
            found, damaged = _Commits(), True
        else:
            found.add(frame)
    return _find_end(safe, found, damaged)


def _find_end(safe: End | None, found: _Commits, damaged: bool) -> End | None:
    return safe if damaged and found.count < 2 else found.end or safe


def _frames_behind(segments: list[Segment], start: int) -> Iterator[Frame | None]:
    """The good frames from `start` on; nothing stands for each bad place between them."""
    at = start
    for segment in segments[max(locate(segments, start), 0) :]:
        if segment.first > at or (segment.first == at and not _has_header(segment)):
            yield None
        at = max(at, segment.frames)
        end = segment.end()
        while at < end:
            try:
                for frame in checked_frames(segment, at):
                    yield frame
                    at = frame.end
            except BadFrame:
                yield None
                at = next((f.position for f in heads(segment, at + 1, end)), end)
        at = max(at, end)


def _has_header(segment: Segment) -> bool:
    with segment.path.open("rb") as file:
        return has_header(file.fileno(), segment)
