"""How many records a log has been given, without reading them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state
from fogline.log.files.segments import heads, list_segments, locate
from fogline.log.reader import LogReader

_NOTE_RECORDS = 10_000
_NOWHERE = -1
"""The position while nothing is counted."""


class RecordCounter:
    """Counts by the heads of frames, and keeps the count in a file so that it survives retention
    and need not begin again. The file may lag, never lead."""

    def __init__(self, folder: Path, note: Path, shared: bool = False) -> None:
        """`shared`: what the log holds when it is first counted came from others."""
        self.records = 0
        self._folder = folder
        self._note = note
        self._position = _NOWHERE if shared else 0
        self._noted = 0
        self._load()
        self._reader = LogReader(folder)

    def _load(self) -> None:
        """A damaged file is set aside: counting begins again, and the site says so."""
        try:
            position, records = read_state(self._note).split()
            self._position, self.records = int(position), int(records)
            self._noted = self.records
        except FileNotFoundError:
            return
        except (ValueError, StateDamaged):
            set_aside(self._note)

    def count_on(self, active: bool) -> None:
        """What comes while it is off is never counted: others write it."""
        if active and self._position == _NOWHERE:
            self._reader.close()
            self._reader = LogReader(self._folder)
            self._position = self._end()
            self.note()
        elif not active and self._position != _NOWHERE:
            self.update()
            self._position = _NOWHERE
            self.note()

    def _end(self) -> int:
        return self._reader.committed() if self._folder.exists() else 0

    def update(self) -> int:
        """The records committed so far."""
        end = self._end()
        if self._position != _NOWHERE and end > self._position:
            with contextlib.suppress(FileNotFoundError):
                self._count(end)
        if self.records - self._noted >= _NOTE_RECORDS:
            self.note()
        return self.records

    def note(self) -> None:
        self._note.parent.mkdir(parents=True, exist_ok=True)
        write_state(self._note, f"{self._position} {self.records}\n")
        self._noted = self.records

    def _count(self, end: int) -> None:
        segments = list_segments(self._folder)
        for index in range(max(locate(segments, self._position), 0), len(segments)):
            segment = segments[index]
            stop = segments[index + 1].first if index + 1 < len(segments) else end
            stop = min(stop, end)
            for frame in heads(segment, max(segment.frames, self._position), stop):
                self.records += frame.count
            self._position = max(self._position, stop)

    def close(self) -> None:
        self.note()
        self._reader.close()
