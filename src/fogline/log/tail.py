"""The end of a log, where frames are added: the open segment, and the way to the next one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fogline.log import disk, repair
from fogline.log.errors import LogFull
from fogline.log.segments import HEADER, Segment, header, list_segments, segment


class Tail:
    """Writes frames at `end`. Raises `OSError`, or `LogFull` where space would get scarce.

    `on_roll` is called when a segment is complete and on disk, before the next one is begun.
    """

    def __init__(
        self,
        folder: Path,
        end: int,
        segment_bytes: int,
        min_free_bytes: int,
        on_roll: Callable[[], None],
    ) -> None:
        self.end = end
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._min_free_bytes = min_free_bytes
        self._on_roll = on_roll
        self._segment: Segment | None = None
        self._fd = -1
        self._new = False

    def write(self, prefix: bytes, body: bytes) -> None:
        """Adds a frame, in a new segment when it finds no room in this one."""
        size = len(prefix) + len(body)
        self._require_space(size)
        first = self._segment_for(size)
        _write_all(self._fd, prefix, body, self.end - first)
        self.end += size

    def sync(self) -> None:
        """Everything written is on disk, also the name of a new segment."""
        os.fdatasync(self._fd)
        if self._new:
            disk.sync(self._folder)
            self._new = False

    def cut(self, end: int) -> None:
        """Takes back everything behind `end`, however much of it was written."""
        self.close()
        repair.cut(self._folder, end)
        self.end = end

    def close(self) -> None:
        if self._segment is not None:
            fd, self._segment, self._fd = self._fd, None, -1
            os.close(fd)

    def has_space(self, size: int = 0) -> bool:
        """Whether more than is kept free would be left with so many bytes more."""
        state = os.statvfs(self._folder)
        return state.f_bavail * state.f_frsize - size >= self._min_free_bytes

    def _require_space(self, size: int) -> None:
        if not self.has_space(size):
            kept = f"{self._min_free_bytes} bytes are kept free"
            raise LogFull(f"no space left for the log {self._folder}: {kept}")

    def _segment_for(self, size: int) -> int:
        """A segment with room for a frame is open; returns its first position."""
        now = self._segment or self._reopen()
        if now is None or not self._has_room(now, size):
            now = self._roll()
        return now.first

    def _has_room(self, now: Segment, size: int) -> bool:
        return self.end == now.frames or self.end + size - now.first <= self._segment_bytes

    def _reopen(self) -> Segment | None:
        existing = list_segments(self._folder)
        if existing:
            self._fd = os.open(existing[-1].path, os.O_WRONLY | os.O_CLOEXEC)
            self._segment = existing[-1]
        return self._segment

    def _roll(self) -> Segment:
        if self._segment is not None:
            self.sync()
            self.close()
            self._on_roll()
        new = segment(self._folder, self.end)
        self._fd = os.open(new.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._segment, self._new = new, True
        _write_all(self._fd, header(new.first), b"", 0)
        self.end += HEADER.size
        return new


def _write_all(fd: int, first: bytes, second: bytes, offset: int) -> None:
    """Both parts one after the other, however many calls it takes."""
    done = os.pwritev(fd, (first, second), offset)
    if done < len(first) + len(second):
        rest = memoryview(first + second)
        while done < len(rest):
            done += os.pwrite(fd, rest[done:], offset + done)
