"""Reading a log: everything up to `committed`, from any position that an earlier read returned."""

from __future__ import annotations

import time
from pathlib import Path

from fogline.log.cursor import Cursor
from fogline.log.errors import LogDamaged, LogGone
from fogline.log.files import gaps, sources
from fogline.log.files.committed import Committed
from fogline.log.files.damage import Damage, end_of_known, settle
from fogline.log.files.frames import BadFrame, Frame, LogRecord
from fogline.log.files.segments import list_segments

_SHORTEST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02
READ_BYTES = 4 << 20


class LogReader:
    """A log as readers see it; a log that does not exist yet is one without records.

    Positions to read from are those that reads and `first` return. What is good is
    returned before damage behind it is raised. With `skip_damage`, damage is noted, and unless it
    is repaired reading goes on at the next frame. For one thread at a time.
    """

    def __init__(self, folder: Path, skip_damage: bool = False) -> None:
        self.skipped = 0
        """Bytes left out because of damage."""
        self.lost = 0
        """Records left out because of damage, as far as their number is known."""
        self._folder = folder
        self._skip_damage = skip_damage
        self._committed = Committed(folder)
        self._cursor = Cursor(folder)
        self._next = (0, gaps.UNKNOWN)
        """A position, and the number of the record there."""
        self._repaired: set[int] = set()

    def first(self) -> int:
        """The first position that is still there."""
        segments = list_segments(self._folder)
        return segments[0].first if segments else self.committed()

    def tail(self) -> int:
        """The start of the last segment but one: where what was written lately begins."""
        segments = list_segments(self._folder)[-2:]
        return segments[0].first if segments else self.committed()

    def committed(self) -> int:
        """The position up to which can be read now."""
        return self._committed.read()

    def read(self, position: int, max_bytes: int = READ_BYTES) -> tuple[list[LogRecord], int]:
        """The records from `position` on, and the position behind them.

        No records mean that the end is reached. About `max_bytes` are read, at least one frame.
        Raises `LogDamaged`, and `LogGone` when retention has removed the position.
        """
        records: list[LogRecord] = []
        while not records:
            frames, position = self._frames(position, max_bytes)
            if not frames:
                break
            records, position = self._records(frames)
        return records, position

    def frames(self, position: int, max_bytes: int = READ_BYTES) -> tuple[list[Frame], int]:
        """Like `read`, but frames with all that is known about them. Their checksums are right."""
        frames, position = self._frames(position, max_bytes)
        return frames, frames[-1].end if frames else position

    def pass_damage(self, damage: LogDamaged) -> int:
        """Where to go on after damage that was raised: there, if it is repaired now, or behind."""
        position, known = damage.position, self._next
        if (end := end_of_known(self._folder, position)) is not None:
            return end
        expected = known[1] if known[0] == position else gaps.UNKNOWN
        gap = gaps.measure(self._folder, position, self._committed.end(), expected)
        found = Damage(position, gap.end, gap.records, damage.reason)
        if settle(self._folder, found, position in self._repaired):
            self._repaired.add(position)
            return position
        self.skipped += gap.end - position
        self.lost += max(gap.records, 0)
        self._next = (gap.end, gap.number)
        return gap.end

    def wait(self, position: int, timeout: float) -> bool:
        """Whether there is something to read at `position`, after at most `timeout` seconds."""
        deadline = time.monotonic() + timeout
        pause = _SHORTEST_PAUSE
        while self.committed() <= position:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)
        return True

    def last_epoch(self, source: int) -> int:
        """The epoch in the last committed frame of a source, −1 when there is none."""
        found = sources.load_until(self._folder, self.committed())
        return found.epochs.get(source, -1)

    def close(self) -> None:
        """Closes the files; reading again opens them again."""
        self._cursor.close()
        self._committed.close()

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _frames(self, position: int, max_bytes: int) -> tuple[list[Frame], int]:
        """Frames from the first readable one on, and its position."""
        while position < (committed := self.committed()):
            try:
                position, stop = self._cursor.enter(position, committed)
                frames = self._cursor.frames(position, stop, max_bytes)
                self._next = (frames[-1].end, frames[-1].next_number)
                return frames, position
            except BadFrame as reason:
                position = self._skip(position, reason)
            except LogGone as gone:
                if not self._skip_damage:
                    raise
                position = gone.first
        return [], position

    def _records(self, frames: list[Frame]) -> tuple[list[LogRecord], int]:
        """The records of the frames up to the first that breaks the format, and where to go on."""
        records: list[LogRecord] = []
        for frame in frames:
            try:
                records += frame.records()
            except BadFrame as reason:
                if records:
                    return records, frame.position
                self._next = (frame.position, frame.number)
                return [], self._skip(frame.position, reason)
        return records, frames[-1].end

    def _skip(self, position: int, reason: BadFrame) -> int:
        """Where to go on after damage; raises it unless it is to be skipped."""
        damage = self._cursor.damage(position, reason)
        if not self._skip_damage:
            raise damage from reason
        return self.pass_damage(damage)
