"""One writer per log, across processes and within this one.

The lock is a POSIX record lock, the kind Java takes too. Such locks belong to the process and are
lost when *any* descriptor of the file is closed, so a second writer in this process is rejected
before it opens the file.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from pathlib import Path

from fogline.log.errors import LogBusy

_held: set[Path] = set()
_guard = threading.Lock()
_FLOCK = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux."""


class WriterLock:
    """Held from construction until `close`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self._key = folder.resolve()
        with _guard:
            if self._key in _held:
                raise LogBusy(f"this process already writes the log {folder}")
            self._fd = _lock_folder(folder)
            _held.add(self._key)

    def close(self) -> None:
        with _guard:
            if self._key in _held:
                _held.remove(self._key)
                os.close(self._fd)


def is_written(folder: Path) -> bool:
    """Whether the log is open for writing, here or elsewhere; takes no lock itself."""
    with _guard:
        if folder.resolve() in _held:
            return True
    try:
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))[0]
        return bool(kind != fcntl.F_UNLCK)
    finally:
        os.close(fd)


def _lock_folder(folder: Path) -> int:
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        hint = "only one may write; stop it first"
        raise LogBusy(f"another process writes the log {folder}", hint) from error
    return fd
