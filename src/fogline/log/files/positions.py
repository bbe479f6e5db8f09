"""The folder `readers/`: which position each reader still needs, so that retention keeps it."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path
from typing import IO

from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state
from fogline.log.errors import LogDamaged, LogError, write_failed
from fogline.log.files.names import folder_name
from fogline.log.files.segments import list_segments

_FOLDER = "readers"


def set_position(folder: Path, reader: str, position: int) -> None:
    """From now on `reader` needs everything from `position` on; survives a power failure."""
    if position < 0:
        raise LogError(f"a position is not negative: {position}")
    path = _path(folder, reader)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_state(path, f"{position}\n")
    except OSError as error:
        raise write_failed(folder, error) from error


def forget_reader(folder: Path, reader: str) -> None:
    """`reader` needs nothing any more; unknown readers are no error."""
    path = _path(folder, reader)
    for known in (path, _retired_path(path), claim_path(folder, reader)):
        known.unlink(missing_ok=True)


def readers_of(folder: Path) -> list[str]:
    """The file names of all readers that need something."""
    return sorted(path.name for path in _files(folder))


def retire_reader(folder: Path, name: str) -> None:
    """The reader with this file name needs nothing for now; its position is remembered, and used
    should it come back."""
    path = folder / _FOLDER / name
    with contextlib.suppress(FileNotFoundError):
        path.replace(_retired_path(path))


def get_position(folder: Path, reader: str) -> int | None:
    """The position that was set last, nothing for an unknown reader, or for one that was retired
    and whose position retention has passed.

    A damaged file is set aside, and the reader goes on with the oldest that is kept: rather twice
    than never.
    """
    path = _path(folder, reader)
    segments = list_segments(folder)
    first = segments[0].first if segments else 0
    try:
        return _load(path)
    except FileNotFoundError:
        pass
    except LogDamaged:
        set_aside(path)
        set_position(folder, reader, first)
        return first
    try:
        position = _load(_retired_path(path))
    except FileNotFoundError:
        return None
    except LogDamaged:
        set_aside(_retired_path(path))
        return first
    return None if segments and first > position else position


def lowest_position(folder: Path) -> int | None:
    """What the slowest reader needs, nothing when there is no reader."""
    return min((_load(path) for path in _files(folder)), default=None)


def claim_path(folder: Path, reader: str) -> Path:
    """The file that whoever reads as `reader` has locked."""
    path = _path(folder, reader)
    return path.with_name(f".{path.name}.claim")


class Claim:
    """The right to read as a reader, of one at a time: nobody goes on from a position that another
    is still moving. It ends with `release`, and with the process."""

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


def _files(folder: Path) -> list[Path]:
    found = (folder / _FOLDER).glob("*")
    return [path for path in found if not path.name.startswith(".")]


def _path(folder: Path, reader: str) -> Path:
    return folder / _FOLDER / folder_name(reader)


def _retired_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.retired")


def _load(path: Path) -> int:
    hint = "write the reader's position into it"
    try:
        text = read_state(path).strip()
    except StateDamaged as error:
        raise LogDamaged(path, 0, error.reason, hint) from error
    if not text.isdecimal():
        raise LogDamaged(path, 0, "it holds no position", hint)
    return int(text)
