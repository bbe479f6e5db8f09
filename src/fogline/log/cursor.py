"""The one segment file a reader has open, and the way from one segment to the next."""

from __future__ import annotations

import os
from pathlib import Path

from fogline.log.errors import LogDamaged, LogGone
from fogline.log.files import removed
from fogline.log.files.frames import HEAD, BadFrame, Frame, check, decode_head
from fogline.log.files.segments import Segment, has_header, list_segments, locate


class Cursor:
    """Reads frames of committed segments; raises `BadFrame` where there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: list[Segment] = []
        self._open: Segment | None = None
        self._fd = -1

    def enter(self, position: int, committed: int) -> tuple[int, int]:
        """Opens the segment of `position`; returns the first frame from there on and where the
        readable part of the segment ends."""
        segment, end = self._find(position)
        if segment is None or position >= end:
            self._refresh(committed)
            segment, end = self._find(position)
            if segment is None:
                raise self._missing(position, committed)
        if segment != self._open:
            self._switch(segment, position, committed)
        if position == segment.first:
            if not has_header(self._fd, segment):
                raise BadFrame("it does not begin with its header")
            position = segment.frames
        if position >= min(end, committed):
            raise BadFrame("the file ends too early")
        return position, min(end, committed)

    def frames(self, position: int, stop: int, max_bytes: int) -> list[Frame]:
        """One or more checked frames from `position` on; both are what `enter` returned."""
        size = min(max(max_bytes, HEAD.size), stop - position)
        data = self._read(position, size)
        needed = decode_head(data, 0, position, stop).size
        if needed > len(data):
            data = self._read(position, needed)
        return _split(data, position, stop)

    def damage(self, position: int, reason: BadFrame) -> LogDamaged:
        index = locate(self._known, position)
        file = self._known[index].path if index >= 0 else self._folder
        return LogDamaged(file, position, str(reason))

    def close(self) -> None:
        if self._open is not None:
            os.close(self._fd)
            self._open = None

    def _find(self, position: int) -> tuple[Segment | None, int]:
        """The known segment of a position and its end, which for the last one may still grow."""
        index = locate(self._known, position)
        if index < 0:
            return None, 0
        segment = self._known[index]
        if index + 1 < len(self._known):
            return segment, self._known[index + 1].first
        try:
            return segment, segment.end()
        except FileNotFoundError:
            return None, 0

    def _refresh(self, committed: int) -> list[Segment]:
        """Lists the segments anew, without those that a writer may still take back."""
        segments = list_segments(self._folder)
        self._known = [segment for segment in segments if segment.first < committed]
        return self._known

    def _switch(self, segment: Segment, position: int, committed: int) -> None:
        self.close()
        try:
            self._fd = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise self._missing(position, committed) from error
        self._open = segment

    def _missing(self, position: int, committed: int) -> Exception:
        """Why there is no file for a position: retention, or somebody removed it."""
        known = self._refresh(committed)
        first = known[0].first if known else committed
        if first > position and position < removed.load(self._folder).position:
            return LogGone(self._folder, position, first)
        return BadFrame("its segment is missing")

    def _read(self, position: int, size: int) -> bytes:
        assert self._open is not None
        return os.pread(self._fd, size, position - self._open.first)


def _split(data: bytes, position: int, stop: int) -> list[Frame]:
    """The whole frames in `data` up to the first bad one, which is raised if none is before it."""
    found: list[Frame] = []
    start = position
    while position - start + HEAD.size <= len(data):
        try:
            frame = decode_head(data, position - start, position, stop)
            if frame.end - start > len(data):
                break
            check(frame)
        except BadFrame:
            if found:
                break
            raise
        found.append(frame)
        position = frame.end
    if not found:
        raise BadFrame("the file ends too early")
    return found
