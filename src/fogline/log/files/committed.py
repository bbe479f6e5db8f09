"""The file `committed`: up to which position everything is on disk and may be read.

Position u64, the number of the next record u64, CRC-32 of both.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from fogline.log.files.segments import require_current

_NUMBERS = struct.Struct("<QQ")
_WHOLE = struct.Struct("<QQI")
_HIGHEST = 1 << 62
_TRIES = 3
SIZE = _WHOLE.size
NAME = "committed"


@dataclass(frozen=True, slots=True)
class End:
    """The end of what is committed, and how many records were ever written before it."""

    position: int
    number: int


def create(folder: Path) -> int:
    """A descriptor to read and write the file with; a new file holds nothing yet."""
    return os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def load(fd: int) -> End | None:
    """The end, or nothing when the file holds none. One that is being written is read again."""
    for _ in range(_TRIES):
        if (end := decode(os.pread(fd, SIZE + 1, 0))) is not None:
            return end
    return None


def decode(data: bytes) -> End | None:
    if len(data) != SIZE:
        return None
    position, number, crc = _WHOLE.unpack(data)
    right = zlib.crc32(data[: _NUMBERS.size]) == crc and max(position, number) < _HIGHEST
    return End(position, number) if right else None


def store(fd: int, end: End) -> None:
    """In place, all bytes at once: a reader sees the old end or the new one."""
    numbers = _NUMBERS.pack(end.position, end.number)
    os.pwrite(fd, numbers + zlib.crc32(numbers).to_bytes(4, "little"), 0)


class Committed:
    """Reads the file again and again through one descriptor; 0 as long as there is none. While it
    is damaged, what it said before holds: its writer writes it anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fd = -1
        self._last = End(0, 0)

    def read(self) -> int:
        return self.end().position

    def end(self) -> End:
        if self._fd < 0 and not self._open():
            return self._last
        end = load(self._fd)
        if end is None:
            require_current(self._folder)
        else:
            self._last = end
        return self._last

    def _open(self) -> bool:
        try:
            self._fd = os.open(self._folder / NAME, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
