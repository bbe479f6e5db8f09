"""Folders of files that others refer to by name: what nobody refers to for a while is removed.

The time of a file's last change says when it was last seen in use: it is set anew as long as it is.
So a file that comes in is safe for as long as one that has just fallen out of use.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

KEEP_SECONDS = 24 * 3600.0
"""How long a file stays that nobody refers to: it may be needed again."""
_NOTE_SECONDS = 3600.0


def note_use(file: Path, now: float) -> None:
    """Raises OSError where the file is not there. The disk is written once an hour at most."""
    if now - file.stat().st_mtime >= _NOTE_SECONDS:
        os.utime(file, (now, now))


def remove_unused(folder: Path, used: Collection[str], now: float) -> list[str]:
    """Removes what is not `used` and was not for `KEEP_SECONDS`; returns its names. What
    begins with a dot is somebody's unfinished work, and left alone."""
    removed = []
    for file in sorted(folder.glob("[!.]*")):
        with contextlib.suppress(OSError):  # somebody else removed it, or the disk is no more
            if file.name in used:
                note_use(file, now)
            elif now - file.stat().st_mtime >= KEEP_SECONDS:
                file.unlink()
                removed.append(file.name)
    return removed
