"""Files that are there whole or not at all, also after a power failure."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path


def sync(path: Path) -> None:
    """Everything written to this file, or every entry of this folder, is on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(path: Path, text: str) -> None:
    """A reader of `path` sees the old text or the new one, never a part."""
    replace_by(path, (text,))


def replace_by(path: Path, parts: Iterable[str]) -> None:
    """Like `replace`, with a text that need not be in memory as a whole."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        with new.open("wb") as file:
            file.writelines(part.encode() for part in parts)
        sync(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    sync(path.parent)
