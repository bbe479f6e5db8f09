"""Files with secrets, for their owner's eyes only."""

from __future__ import annotations

import os
from pathlib import Path

from fogline.common.errors import SetupError


def write_private(file: Path, text: str) -> None:
    """Writes a file that only its owner can read, whole or not at all."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)
    except OSError as error:
        raise SetupError(f"{file} cannot be written: {error.strerror}") from error


def private_folder(folder: Path) -> None:
    """The folder and all that is in it now are for their owner only."""
    try:
        for inner, _, files in os.walk(folder):
            os.chmod(inner, 0o700)
            for name in files:
                os.chmod(Path(inner, name), 0o600)
    except OSError as error:
        raise SetupError(f"{folder} cannot be made private: {error.strerror}") from error
