"""Reading a log: everything up to `committed`, from any position that an earlier read returned."""

from __future__ import annotations

import time
from itertools import zip_longest
from pathlib import Path

from fogline.log import sources
from fogline.log.committed import Committed
from fogline.log.cursor import Cursor
from fogline.log.errors import LogDamaged, LogGone
from fogline.log.frames import BadFrame, Frame, Record
from fogline.log.segments import Segment, first_arrival, heads, list_segments

_SHORTEST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02
READ_BYTES = 4 << 20


class LogReader:
    """A log as readers see it; a log that does not exist yet is one without records.

    Positions to read from are those that reads, `first` and `position_at` return. What is good is
    returned before damage behind it is raised. With `skip_damage`, reading goes on at the segment
    behind the damage instead, and `skipped` counts the bytes left out. For one thread at a time.
    """

    def __init__(self, folder: Path, skip_damage: bool = False) -> None:
        self.skipped = 0
        self._folder = folder
        self._skip_damage = skip_damage
        self._committed = Committed(folder)
        self._cursor = Cursor(folder)

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

    def read(self, position: int, max_bytes: int = READ_BYTES) -> tuple[list[Record], int]:
        """The records from `position` on, and the position behind them.

        No records mean that the end is reached. About `max_bytes` are read, at least one frame.
        Raises `LogDamaged`, and `LogGone` when retention has removed the position.
        """
        records: list[Record] = []
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
        found = sources.load_until(self._folder, self.committed(), self._skip_damage)
        return found.epochs.get(source, -1)

    def position_at(self, arrival: int) -> int:
        """The position of the first frame that arrived at or after `arrival` (microseconds since
        the epoch), the end when there is none.

        Exact while the clock of the writer did not go back; else within one segment.
        """
        committed = self.committed()
        segments = [item for item in list_segments(self._folder) if item.first < committed]
        for segment, following in zip_longest(segments, segments[1:]):
            later = first_arrival(following, committed) if following else None
            if later is not None and later < arrival:
                continue
            stop = following.first if following else committed
            for frame in self._heads(segment, stop):
                if frame.arrival >= arrival:
                    return frame.position
        return committed

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
                return self._cursor.frames(position, stop, max_bytes), position
            except BadFrame as reason:
                position = self._skip(position, reason)
            except LogGone as gone:
                if not self._skip_damage:
                    raise
                self.skipped += gone.first - position
                position = gone.first
        return [], position

    def _records(self, frames: list[Frame]) -> tuple[list[Record], int]:
        """The records of the frames up to the first that breaks the format, and where to go on."""
        records: list[Record] = []
        for frame in frames:
            try:
                records += frame.records()
            except BadFrame as reason:
                if records:
                    return records, frame.position
                return [], self._skip(frame.position, reason)
        return records, frames[-1].end

    def _skip(self, position: int, reason: BadFrame) -> int:
        """Where to go on behind damage; raises it unless it is to be skipped."""
        if not self._skip_damage:
            raise self._cursor.damage(position, reason) from reason
        behind = self._cursor.behind(position, self.committed())
        self.skipped += behind - position
        return behind

    def _heads(self, segment: Segment, stop: int) -> list[Frame]:
        """The frames of a segment; none when retention has removed it."""
        found = []
        at = segment.frames
        try:
            for frame in heads(segment, at, stop):
                found.append(frame)
                at = frame.end
        except BadFrame as reason:
            if not self._skip_damage:
                raise LogDamaged(segment.path, at, str(reason)) from reason
        except FileNotFoundError:
            return []
        return found
