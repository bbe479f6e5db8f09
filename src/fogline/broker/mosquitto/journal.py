"""The journal of the site's own broker as its one reader, the intake, sees it.

In its folder the intake keeps a file `intake`: the journal's number, made at random so that a log
does not take the positions of one journal for those of another, where each subscription began, and
which of them have got what the broker had retained before.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fogline.common import atomic_files as log_disk
from fogline.common.state_files import StateDamaged, read_state, write_state
from fogline.log import LogError, LogReader, get_position, set_position
from fogline.log.files.segments import Segment, list_segments, locate

READER = "ingest"
_FILE = "intake"


@dataclass(frozen=True, slots=True)
class Registry:
    """What the file `intake` holds."""

    source: int
    starts: dict[str, int]
    greeted: frozenset[str] = frozenset()
    """The logs that have what was retained when they were new."""

    def text(self) -> str:
        fields = {"source": self.source, "starts": self.starts, "greeted": sorted(self.greeted)}
        return json.dumps(fields)


def register(journal: Path, logs: Iterable[str]) -> Registry:
    """From now on these logs get what comes into the journal, and no others do.

    Called before the broker starts, so that nothing it confirms comes too early, and again by the
    intake itself; a repetition changes nothing.
    """
    old = load_registry(journal)
    names = list(logs)
    with LogReader(journal) as reader:
        end = reader.committed()
        first = reader.tail()
    starts = {log: old.starts.get(log, end) for log in names}
    new = Registry(old.source, starts, old.greeted.intersection(starts))
    journal.mkdir(parents=True, exist_ok=True)
    if starts != old.starts or not (journal / _FILE).exists():
        sync_from(journal, first)
        write_state(journal / _FILE, new.text(), copy=True)
    if get_position(journal, READER) is None:
        set_position(journal, READER, min(starts.values(), default=end))
    return new


def note_greeted(journal: Path, log: str) -> None:
    """From now on the log has what was retained for it."""
    old = load_registry(journal)
    new = Registry(old.source, old.starts, old.greeted.union([log]).intersection(old.starts))
    write_state(journal / _FILE, new.text(), copy=True)


def load_registry(journal: Path) -> Registry:
    """What was kept last; a new one, with a new number, where nothing was."""
    try:
        data = json.loads(read_state(journal / _FILE))
        starts = {str(log): int(start) for log, start in data["starts"].items()}
        greeted = frozenset(str(log) for log in data.get("greeted", starts))
        return Registry(int(data["source"]), starts, greeted)
    except FileNotFoundError:
        return Registry(random.SystemRandom().getrandbits(62) | 1 << 61, {})
    except (ValueError, KeyError, TypeError, AttributeError, StateDamaged) as error:
        hint = "restore it from a backup, or move the journal away to go on without what it holds"
        raise LogError(f"{journal / _FILE} cannot be read: {error}", hint) from error


def sync_from(journal: Path, position: int) -> None:
    """Everything from the segment of `position` on is on disk."""
    segments = list_segments(journal)
    for segment in segments[max(locate(segments, position), 0) :]:
        log_disk.sync(segment.path)
    if segments:
        log_disk.sync(journal)


class Journal:
    """The journal's bytes, a stretch at a time, and the way to have them on disk."""

    def __init__(self, folder: Path) -> None:
        self.reader = LogReader(folder, skip_damage=True)
        self._folder = folder
        self._segment: Segment | None = None
        self._fd = -1

    def committed(self) -> int:
        return self.reader.committed()

    def read(self, position: int, limit: int) -> tuple[int, bytes]:
        """What is committed from the first frame at or behind `position` on, in one segment; no
        bytes where it takes a closer look."""
        limit = min(limit, self.committed())
        segment = self._enter(position)
        if segment is None:
            return position, b""
        begin = max(position, segment.frames)
        return begin, os.pread(self._fd, max(limit - begin, 0), begin - segment.first)

    def _enter(self, position: int) -> Segment | None:
        now = self._segment
        if now is not None and now.first <= position < now.first + os.fstat(self._fd).st_size:
            return now
        segments = list_segments(self._folder)
        index = locate(segments, position)
        if index < 0:
            return None
        self._close_segment()
        try:
            self._fd = os.open(segments[index].path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        self._segment = segments[index]
        return self._segment

    def sync(self, start: int, end: int) -> None:
        """Everything from `start` to `end` is on disk."""
        now = self._segment
        if now is not None and now.frames < start and end <= now.first + os.fstat(self._fd).st_size:
            os.fdatasync(self._fd)
        else:
            sync_from(self._folder, start)

    def _close_segment(self) -> None:
        if self._segment is not None:
            os.close(self._fd)
            self._segment = None

    def close(self) -> None:
        self._close_segment()
        self.reader.close()
