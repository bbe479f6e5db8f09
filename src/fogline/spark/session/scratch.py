"""A folder for the files that Spark leaves behind when it is killed.

Spark removes what it has written when it ends, but not after `kill -9`; in a scratch folder that
lies in memory that would be lost memory. So each process has a folder of its own, locked as long as
it lives, and who comes next removes those that nobody holds.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "fogline-spark-"
_LOCK = ".lock"
_held: list[int] = []
"""Locks go with their descriptors, so these stay open as long as the process lives."""


def own_folder(parent: Path) -> Path:
    """A new one, removed at the end of this process. Raises OSError where none can be made."""
    remove_left(parent)
    unlocked = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent))
    descriptor = os.open(unlocked / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    _held.append(descriptor)
    folder = unlocked.rename(parent / unlocked.name.removeprefix("."))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_left(parent: Path) -> None:
    """Those of processes that have ended; others, and those of other users, are left alone."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if not _is_held(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
