"""Who may read a log as a certain reader: one at a time, so that nobody goes on from a position
that another is still moving."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from fogline.log.errors import write_failed
from fogline.log.files.positions import claim_path


class Claim:
    """The right to read as a reader. It ends with `release`, and with the process."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def release(self) -> None:
        self._file.close()


def claim_reader(folder: Path, reader: str) -> Claim | None:
    """Nothing as long as somebody else has it."""
    path = claim_path(folder, reader)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise write_failed(folder, error) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return Claim(file)
