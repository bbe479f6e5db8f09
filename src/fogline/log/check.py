"""Checking a log without changing anything: every segment, every frame, every record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fogline.common.state_files import StateDamaged
from fogline.log.cursor import Cursor
from fogline.log.errors import LogError, LogGone
from fogline.log.files import committed, gaps, removed
from fogline.log.files.committed import End
from fogline.log.files.frames import BadFrame
from fogline.log.files.segments import list_segments, list_strays, require_current
from fogline.log.repair import find_end

_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class LogProblem:
    """Something that is wrong with a log."""

    path: Path
    offset: int
    """Where in the file; 0 where all of it is meant."""
    records: int
    """How many records are lost by it; −1 when that is not known."""
    text: str


def check_log(folder: Path) -> list[LogProblem]:
    """What is wrong with the log in `folder`; nothing when all of it can be read."""
    try:
        require_current(folder)
    except LogError as error:
        return [LogProblem(folder, 0, -1, str(error))]
    return [*_ends(folder), *_strays(folder), *_segments(folder)]


def _ends(folder: Path) -> Iterator[LogProblem]:
    if _load_committed(folder) is None and list_segments(folder):
        yield LogProblem(folder / committed.NAME, 0, 0, "is missing, or its checksum is wrong")


def _strays(folder: Path) -> Iterator[LogProblem]:
    for stray in list_strays(folder):
        yield LogProblem(stray.path, 0, 0, "is a copy of a segment under another name")


def _segments(folder: Path) -> Iterator[LogProblem]:
    """Reads the log as a reader does that leaves out what is damaged."""
    end = _load_committed(folder) or find_end(folder, None)
    at = _begin(folder)
    cursor = Cursor(folder)
    try:
        while at.position < end.position:
            try:
                start, stop = cursor.enter(at.position, end.position)
                at = End(start, at.number)
                last = cursor.frames(start, stop, _READ_BYTES)[-1]
                at = End(last.end, last.next_number)
            except LogGone as gone:
                at = End(gone.first, gaps.UNKNOWN)
            except BadFrame as reason:
                gap = gaps.measure(folder, at.position, end, at.number)
                path = cursor.damage(at.position, reason).file
                first = int(path.stem) if path.suffix == ".seg" else at.position
                yield LogProblem(path, at.position - first, gap.records, str(reason))
                at = End(gap.end, gap.number)
    finally:
        cursor.close()


def _begin(folder: Path) -> End:
    """Where the log begins; where that is not known, with what is there."""
    try:
        return removed.read(folder)
    except FileNotFoundError:
        return End(0, 0)
    except (ValueError, StateDamaged):
        return End(next((item.first for item in list_segments(folder)), 0), gaps.UNKNOWN)


def _load_committed(folder: Path) -> End | None:
    try:
        fd = os.open(folder / committed.NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return committed.load(fd)
    finally:
        os.close(fd)
