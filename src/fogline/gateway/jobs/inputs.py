"""Logs that jobs read: the journal of the gateway's own broker, or what came from another one."""

from __future__ import annotations

from pathlib import Path

from fogline.broker.mosquitto.journal import sync_from
from fogline.links.identity import number_of
from fogline.log import Limits, LogReader, LogWriter, enforce, set_position

READER = "jobs"


class InputLog:
    """One log with everything that comes from one broker.

    `journal`: it is written by the broker itself, which does not wait for the disk. Then it is
    synced up to a position before that position is kept anywhere, so that after a power failure it
    never ends before one that somebody counts on.
    """

    def __init__(self, folder: Path, journal: bool) -> None:
        self.folder = folder
        self.writer: LogWriter | None = None
        """Who writes it, if that is done in this process."""
        self._journal = journal
        self._synced = 0
        self._needed = -1
        self._number = 0
        self._end = LogReader(folder, skip_damage=True)

    def number(self) -> int:
        self._number = self._number or number_of(self.folder)
        return self._number

    def reader(self) -> LogReader:
        return LogReader(self.folder, skip_damage=True)

    def committed(self) -> int:
        """Asked very often; the disk is asked only when another process writes."""
        return self._end.committed() if self.writer is None else self.writer.position

    def sync(self, end: int) -> None:
        """Everything before `end` is on disk."""
        if self._journal and end > self._synced:
            sync_from(self.folder, self._synced)
            self._synced = end

    def keep_from(self, position: int) -> None:
        """What is before `position` is not needed any more, and removed in whole segments."""
        if position != self._needed and self.folder.exists():
            self.sync(position)
            set_position(self.folder, READER, position)
            self._needed = position
            enforce(self.folder, Limits(size=0), 0)

    def close(self) -> None:
        self._end.close()
