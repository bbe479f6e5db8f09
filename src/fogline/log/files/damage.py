"""What is known about the damage in a log: a small file for each place, in the folder `damage`.

Whoever reads the log and meets damage notes it there, whatever process and language it is; a place
that is noted is not noted again. Where a repairer works on the logs (`Repairing`), a reader waits
for what it finds before it goes on: records that another copy holds are then not lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fogline.common import atomic_files
from fogline.common.state_files import StateDamaged, add_checksum, read_state, write_state
from fogline.log.errors import LogError
from fogline.log.files.lock import WriterLock, is_written

FOUND, LOST, REPAIRED = "found", "lost", "repaired"
_FOLDER = "damage"
_REPAIRER = ".repairer"
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of a log that cannot be read, or could not before it was repaired."""

    position: int
    end: int
    records: int
    """How many it held; −1 when that is not known."""
    reason: str
    state: str = LOST
    found: int = 0
    """When, in milliseconds since the epoch."""
    acknowledged: int = 0
    """When a person said that they know; 0: not yet."""
    file: str = ""
    """Which file of the log it is, if not a segment."""
    reported: int = 0
    """When it was reported; 0: not yet."""

    @property
    def lost(self) -> int:
        """Records that nobody can read any more, 0 when it is repaired; −1: not known."""
        return 0 if self.state == REPAIRED else self.records


def note(folder: Path, damage: Damage) -> Damage:
    """Notes it, unless that place is known; returns what is known."""
    path = _path(folder, damage)
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        path.parent.mkdir(exist_ok=True)
        new.write_text(add_checksum(json.dumps(asdict(damage)) + "\n"), encoding="utf-8")
        atomic_files.sync(new)
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
        new.unlink()
        return _load(path) or damage
    except OSError as error:
        print(f"damage of {folder} at {damage.position} is not noted: {error}", file=sys.stderr)
        return damage


def note_committed(folder: Path, end: int) -> None:
    reason = "it was damaged: the end was found again"
    note(folder, Damage(end, end, 0, reason, REPAIRED, _now_ms(), file="committed"))


def _load(path: Path) -> Damage | None:
    """What is noted; a note that cannot be read says the least."""
    try:
        return Damage(**json.loads(read_state(path)))
    except FileNotFoundError:
        return None
    except (ValueError, StateDamaged):
        position, _, file = path.name.partition(".")
        reason = "what was noted about it cannot be read"
        return Damage(int(position), int(position), -1, reason, file=file)


def load_all(folder: Path) -> list[Damage]:
    """All that is noted of a log, in order."""
    with contextlib.suppress(FileNotFoundError):
        names = sorted(os.listdir(folder / _FOLDER))
        found = (_load(folder / _FOLDER / name) for name in names if name[:1].isdigit())
        return [damage for damage in found if damage is not None]
    return []


def end_of_known(folder: Path, position: int) -> int | None:
    """Where known damage ends that `position` is in the middle of."""
    for damage in load_all(folder):
        if damage.state == LOST and damage.position < position < damage.end:
            return damage.end
    return None


def change(folder: Path, damage: Damage) -> None:
    """Replaces what is noted of this place."""
    write_state(_path(folder, damage), json.dumps(asdict(damage)))


def acknowledge(folder: Path) -> int:
    """A person knows of all that is noted; returns how much of it is new to them."""
    fresh = [damage for damage in load_all(folder) if not damage.acknowledged]
    for damage in fresh:
        change(folder, replace(damage, acknowledged=_now_ms()))
    return len(fresh)


def forget_old(folder: Path, first: int) -> None:
    """Acknowledged damage of segments that are removed is no longer of interest."""
    for damage in load_all(folder):
        if damage.acknowledged and damage.end <= first:
            _path(folder, damage).unlink(missing_ok=True)


def settle(folder: Path, damage: Damage, again: bool = False) -> bool:
    """Notes damage that a reader has met, and waits for a repairer if there is one. Whether it is
    repaired now. `again`: it was said to be, but is not."""
    state = FOUND if _is_repaired(folder) and not again else LOST
    noted = note(folder, replace(damage, state=state, found=_now_ms()))
    while noted.state == FOUND and _is_repaired(folder):
        time.sleep(_PAUSE_SECONDS)
        noted = _load(_path(folder, damage)) or damage
    if noted.state == FOUND or (again and noted.state == REPAIRED):
        with contextlib.suppress(OSError):
            change(folder, replace(noted, state=LOST, acknowledged=0))
        return False
    return noted.state == REPAIRED


class Repairing:
    """Held while somebody repairs the logs below `root`: readers wait for that."""

    def __init__(self, root: Path) -> None:
        """Raises `LogError` when another process does it."""
        folder = root / _REPAIRER
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LogError(f"{folder} cannot be made: {error.strerror}") from error
        self._lock = WriterLock(folder)

    def close(self) -> None:
        self._lock.close()


def _is_repaired(folder: Path) -> bool:
    return is_written(folder.parent / _REPAIRER)


def _path(folder: Path, damage: Damage) -> Path:
    file = damage.file.replace("/", ".")
    return (
        folder / _FOLDER / (f"{damage.position:020}.{file}" if file else f"{damage.position:020}")
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
