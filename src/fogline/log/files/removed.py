"""The file `removed`: up to which position retention may have removed segments, and the number of
the record there. What is missing behind that, is damage."""

from __future__ import annotations

from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, write_state
from fogline.log.files.committed import End
from fogline.log.files.segments import Segment, heads

_FILE = "removed"


def load(folder: Path) -> End:
    """Where the log begins; at its very beginning when there is no file, or it is damaged."""
    try:
        return read(folder)
    except (FileNotFoundError, ValueError, StateDamaged):
        return End(0, 0)


def read(folder: Path) -> End:
    """Like `load`, but raises `FileNotFoundError` or, when it is damaged, `StateDamaged`."""
    position, number = map(int, read_state(folder / _FILE).split())
    return End(position, number)


def store(folder: Path, first: Segment, committed: int) -> None:
    """Everything before the segment `first` is about to be removed."""
    number = next((frame.number for frame in heads(first, first.frames, committed)), -1)
    write_state(folder / _FILE, f"{first.first} {number}\n")
