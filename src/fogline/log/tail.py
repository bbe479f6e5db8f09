"""The end of a log, where frames are added: the open segment, and the way to the next one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fogline.common import atomic_files
from fogline.log import repair
from fogline.log.errors import LogFull
from fogline.log.files.committed import End
from fogline.log.files.frames import FrameBody
from fogline.log.files.segments import HEADER, Segment, header, list_segments, segment


class Tail:
    """Writes frames at `end`; `number` is that of the next record. Raises `OSError`, or `LogFull`
    where space would get scarce.

    `on_roll` is called when a segment is complete and on disk, before the next one is begun.
    """

    def __init__(
        self,
        folder: Path,
        end: End,
        segment_bytes: int,
        min_free_bytes: int,
        on_roll: Callable[[], None],
    ) -> None:
        self.end = end.position
        self.number = end.number
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._min_free_bytes = min_free_bytes
        self._on_roll = on_roll
        self._segment: Segment | None = None
        self._fd = -1
        self._new = False

    def write(self, body: FrameBody) -> None:
        """Adds a frame, in a new segment when there is no space in this one."""
        self._require_space(body.size)
        first = self._segment_for(body.size)
        head = body.head(self.end, self.number)
        _write_all(self._fd, head, body.records, self.end - first)
        self.end += body.size
        self.number += body.count

    def sync(self) -> None:
        """Everything written is on disk, also the name of a new segment."""
        os.fdatasync(self._fd)
        if self._new:
            atomic_files.sync(self._folder)
            self._new = False

    def cut(self, end: End) -> None:
        """Takes back everything behind `end`, however much of it was written."""
        self.close()
        repair.cut(self._folder, end.position)
        self.end, self.number = end.position, end.number

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
        """A segment with space for a frame is open; returns its first position."""
        now = self._segment or self._reopen()
        if now is None or not self._has_space(now, size):
            now = self._roll()
        return now.first

    def _has_space(self, now: Segment, size: int) -> bool:
        return self.end == now.frames or self.end + size - now.first <= self._segment_bytes

    def _reopen(self) -> Segment | None:
        """The last segment, unless its end is missing: frames must not go on before that."""
        existing = list_segments(self._folder)
        if existing:
            last = existing[-1]
            fd = os.open(last.path, os.O_RDWR | os.O_CLOEXEC)
            if os.fstat(fd).st_size == self.end - last.first:
                self._fd, self._segment = fd, last
            else:
                os.close(fd)
        return self._segment

    def _roll(self) -> Segment:
        if self._segment is not None:
            self.sync()
            self.close()
        if self.end:
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
