"""The folder `readers/`: which position each reader still needs, so that retention keeps it."""

from __future__ import annotations

from pathlib import Path

from fogline.log import disk
from fogline.log.errors import LogDamaged, LogError, write_failed
from fogline.log.names import folder_name

_FOLDER = "readers"


def set_position(folder: Path, reader: str, position: int) -> None:
    """From now on `reader` needs everything from `position` on; survives a power failure."""
    if position < 0:
        raise LogError(f"a position is not negative: {position}")
    path = _path(folder, reader)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(path, f"{position}\n")
    except OSError as error:
        raise write_failed(folder, error) from error


def forget_reader(folder: Path, reader: str) -> None:
    """`reader` needs nothing any more; unknown readers are no error."""
    _path(folder, reader).unlink(missing_ok=True)


def get_position(folder: Path, reader: str) -> int | None:
    """The position that was set last, nothing for an unknown reader."""
    path = _path(folder, reader)
    return _load(path) if path.exists() else None


def lowest_position(folder: Path) -> int | None:
    """What the slowest reader needs, nothing when there is no reader.

    Raises `LogDamaged` for a file that holds no position: whoever wrote it may need anything.
    """
    parent = folder / _FOLDER
    files = [path for path in parent.glob("*") if not path.name.startswith(".")]
    return min((_load(path) for path in files), default=None)


def _path(folder: Path, reader: str) -> Path:
    return folder / _FOLDER / folder_name(reader)


def _load(path: Path) -> int:
    text = path.read_bytes().strip()
    if not text.isdigit():
        raise LogDamaged(path, 0, "it holds no position", "write the reader's position into it")
    return int(text)
