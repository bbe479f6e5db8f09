"""Checksums for files of other programs (SQLite, Mosquitto) that have none of their own.

While such a file is in use nothing can be said about it. When its program has closed it a seal is
written beside it, and removed before it is opened again. So a file that changed in between is
found; after a crash there is no seal, and the program itself has to find what is wrong.
"""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, write_state

_READ_BYTES = 1 << 20


def seal(path: Path) -> None:
    """Its program has closed it. Without a file, or without space, there is no seal."""
    with contextlib.suppress(OSError):
        write_state(seal_of(path), f"{crc_of(path):08x}\n")


def unseal(path: Path) -> None:
    """Before it is opened for writing. Raises `OSError`."""
    seal_of(path).unlink(missing_ok=True)


def open_seal(path: Path) -> str:
    """Before it is opened for writing: what is wrong with it; without that, its seal is removed."""
    try:
        wrong = broken_seal(path)
        if not wrong:
            unseal(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return wrong


def broken_seal(path: Path) -> str:
    """Why the file is not the one that was sealed; empty where it is, or has no seal. Raises
    `OSError`."""
    try:
        sealed = int(read_state(seal_of(path)), 16)
    except FileNotFoundError:
        return ""
    except (ValueError, StateDamaged):
        return f"its seal {seal_of(path).name} is damaged"
    try:
        return "" if sealed == crc_of(path) else "its checksum is wrong"
    except FileNotFoundError:
        return "it is missing"


def crc_of(path: Path) -> int:
    """CRC-32 of a whole file. Raises `OSError`."""
    crc = 0
    with path.open("rb", buffering=0) as file:
        while part := file.read(_READ_BYTES):
            crc = zlib.crc32(part, crc)
    return crc


def remedy(path: Path) -> str:
    """What to do about a database that is damaged, for people."""
    seal = seal_of(path).name
    restore = f"restore it and {seal} from a backup, or move both away to go on without it"
    return f"{restore}; if you changed it yourself, remove {seal}"


def closed(path: Path) -> bool:
    """Whether SQLite has closed a database: its log is no more."""
    return not path.with_name(f"{path.name}-wal").exists()


def seal_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.seal")
