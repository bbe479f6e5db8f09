"""The file `committed`: up to which position everything is on disk and may be read."""

from __future__ import annotations

import os
import struct
from pathlib import Path

_POSITION = struct.Struct("<Q")
_HIGHEST = 1 << 62
SIZE = _POSITION.size
NAME = "committed"


def create(folder: Path) -> int:
    """A descriptor to read and write the file with; a new file holds nothing yet."""
    return os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def load(fd: int) -> int | None:
    """The position, or nothing when the file holds none that could be one."""
    data = os.pread(fd, SIZE + 1, 0)
    if len(data) != SIZE:
        return None
    position: int = _POSITION.unpack(data)[0]
    return position if position < _HIGHEST else None


def store(fd: int, position: int) -> None:
    """In place, eight bytes at once: a reader sees the old or the new position."""
    os.pwrite(fd, _POSITION.pack(position), 0)


class Committed:
    """Reads the file again and again through one descriptor; 0 as long as there is none."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._fd = -1

    def read(self) -> int:
        if self._fd < 0 and not self._open():
            return 0
        return load(self._fd) or 0

    def _open(self) -> bool:
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
