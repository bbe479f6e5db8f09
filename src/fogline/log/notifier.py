"""Waiting for logs to grow without looking at them again and again.

On Linux the system reports when the file `committed` of a log is written, by whatever process of
this machine. Elsewhere, and where it cannot, a wait is so short that looking is as good.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
from collections.abc import Iterable
from pathlib import Path

from fogline.log.files.committed import NAME

_BLIND_SECONDS = 0.025
_MODIFIED, _ATTRIBUTES, _MOVED_TO, _CREATED, _DELETED = 0x2, 0x4, 0x80, 0x100, 0x400
_GROWS = _MODIFIED | _ATTRIBUTES | _DELETED
"""Of a file: a file that is removed while somebody has it open changes its attributes only."""
_APPEARS = _CREATED | _MOVED_TO | _DELETED
_EVENT = struct.Struct("=iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class LogNotifier:
    """Wakes whoever waits when a log that it watches may have grown, also one that does not exist
    yet; now and then for nothing. `notify` is for any thread, the rest for one."""

    def __init__(self, same_machine: bool = True) -> None:
        """`same_machine` False: others write, of whom the system here knows nothing."""
        self._folders: tuple[Path, ...] = ()
        self._watches: set[int] = set()
        self._rung, self._ringing = os.pipe()
        for fd in (self._rung, self._ringing):
            os.set_blocking(fd, False)
        self._poll = select.poll()
        self._poll.register(self._rung, select.POLLIN)
        self._fd = _inotify() if same_machine else -1
        if self._fd >= 0:
            self._poll.register(self._fd, select.POLLIN)
        self._blind = self._fd < 0

    def watch(self, folders: Iterable[Path]) -> None:
        """From now on these logs. Look at them afterwards: what was before wakes nobody."""
        requested = tuple(dict.fromkeys(folders))
        if requested != self._folders:
            self._folders = requested
            self._arm()

    def wait(self, longest: float) -> None:
        """Until a log may have grown or `notify` is called, at most so many seconds."""
        seconds = min(longest, _BLIND_SECONDS) if self._blind else longest
        ready = [fd for fd, _ in self._poll.poll(max(0.0, seconds) * 1000)]
        if self._rung in ready:
            _drain(self._rung)
        if self._fd in ready and not _only_grew(_drain(self._fd)):
            self._arm()

    def notify(self) -> None:
        with contextlib.suppress(OSError):  # it is full: `wait` returns already, or it is closed
            os.write(self._ringing, b"!")

    def close(self) -> None:
        for fd in (self._fd, self._rung, self._ringing):
            if fd >= 0:
                os.close(fd)
        self._fd = self._rung = self._ringing = -1

    def _arm(self) -> None:
        if self._fd < 0:
            return
        watches = [_add(self._fd, folder / NAME) for folder in self._folders]
        found = {watch for watch in watches if watch >= 0}
        for watch in self._watches - found:
            _libc.inotify_rm_watch(self._fd, watch)
        self._watches, self._blind = found, -1 in watches


def _inotify() -> int:
    """-1 where there is none."""
    make = getattr(_libc, "inotify_init1", None)
    return -1 if make is None else int(make(os.O_NONBLOCK | os.O_CLOEXEC))


def _add(fd: int, file: Path) -> int:
    """Watches the file, or as long as it is not there the nearest folder; -1 if that fails."""
    for path in (file, *file.parents):
        mask = _GROWS if path == file else _APPEARS
        watch = int(_libc.inotify_add_watch(fd, os.fsencode(path), mask))
        if watch < 0 and ctypes.get_errno() == errno.ENOENT:
            below = path
            continue
        if watch >= 0 and path != file and below.exists():
            return _add(fd, file)  # it came in between
        return watch
    return -1


def _drain(fd: int) -> bytes:
    found = b""
    with contextlib.suppress(BlockingIOError):
        while more := os.read(fd, 1 << 16):
            found += more
    return found


def _only_grew(events: bytes) -> bool:
    """Whether files were written, and none came or went."""
    at = 0
    while at < len(events):
        _, mask, _, length = _EVENT.unpack_from(events, at)
        if mask != _MODIFIED:
            return False
        at += _EVENT.size + length
    return True
