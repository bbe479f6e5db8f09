"""Files that are there whole or not at all, also after a power failure."""

from __future__ import annotations

import os
import threading
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
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        new.write_bytes(text.encode())
        sync(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    sync(path.parent)
