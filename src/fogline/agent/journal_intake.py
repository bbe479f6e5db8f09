"""Intake from the journal of the site's own broker: every message into the logs that want it.

Exactly once by construction: what a log takes from the journal carries the journal's number as its
source and, as its epoch, the journal's position behind it, and both come in one commit with the
messages. So after a crash each log itself says where it goes on. Three more things are kept, in the
journal's folder, and none of them is ahead of what they tell about:

- `intake`: the journal's number, made at random so that a log does not take the positions of one
  journal for those of another, and where each subscription began. A new subscription begins at the
  end that the journal has when it is first registered. That is written before anything is read for
  it, so a crash in between does not move its beginning; a subscription that is given up is struck
  off, and begins anew should it come back.
- `readers/ingest`: up to where all logs have everything. Retention goes by it, and logs for which
  nothing came begin there after a restart.

The journal is synced up to a position before that position is kept anywhere, so after a power
failure it never ends before one that a log counts on, and no position is given out a second time.

A client that got no confirmation sends again, and then the journal holds the message twice. With
`deduplicate` messages whose content was stored lately are left out, without it they are stored.
"""

from __future__ import annotations

import struct
import threading
import time
import zlib
from pathlib import Path

from fogline.agent.intake import Subscription
from fogline.agent.journal import READER, Journal, Registry, register
from fogline.agent.recent import Recent
from fogline.broker.topics import matches, split_share
from fogline.log import (
    LogDamaged,
    LogError,
    LogFull,
    LogGone,
    Record,
    SiteLog,
    get_position,
    set_position,
)
from fogline.log.frames import BadFrame
from fogline.log.segments import list_segments, locate

_READ_BYTES = 2 << 20
_SMALL_BYTES = 64 << 10
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.01
_RETRY_SECONDS = 0.2
_NOTE_SECONDS = 5.0
_ARRIVAL_US = 50_000
_MOST_ROUTES = 100_000
# The head of a frame with one record, as the broker writes it: up to where the topic begins.
_MESSAGE = struct.Struct("<IIBqQqIIH")


class Target:
    """One subscription and its log."""

    def __init__(self, subscription: Subscription, logs: SiteLog, registry: Registry) -> None:
        self.subscription = subscription
        self.state = "starting"
        self.messages = 0
        self.repeated = 0
        self.bytes = 0
        self._source = registry.source
        self._pattern = split_share(subscription.pattern)[1]
        self._log = logs.writer(subscription.log)
        self.position = max(registry.starts[subscription.log], self._log.last_epoch(self._source))
        self._recent = Recent() if subscription.deduplicate else None
        if self._recent is not None:
            with logs.reader(subscription.log, skip_damage=True) as reader:
                self._recent.note_tail(reader)

    def wants(self, topic: str) -> bool:
        return matches(self._pattern, topic)

    def store(self, parts: list[Part], end: int, stop: threading.Event) -> bool:
        """Writes what is new of everything up to `end`, at once; waits for space where there is
        none. False when it is to end."""
        fresh = [(arrival, self._fresh(records)) for arrival, records in parts]
        while not self._write(fresh, end):
            if stop.wait(_RETRY_SECONDS):
                return False
        self.position = end
        self.state = "running"
        self.messages += sum(len(records) for _, records in fresh)
        self.bytes += sum(len(payload) for _, records in fresh for _, payload in records)
        return True

    def _fresh(self, records: list[Record]) -> list[Record]:
        if self._recent is None:
            return records
        is_new = self._recent.is_new
        fresh = [record for record in records if is_new(*record)]
        self.repeated += len(records) - len(fresh)
        return fresh

    def _write(self, parts: list[Part], end: int) -> bool:
        try:
            for arrival, records in parts:
                self._log.append(records, self._source, end, arrival)
            self._log.commit()
        except LogFull as error:
            self.state = f"no space: {error}"
            return False
        return True

    def close(self) -> None:
        self._log.close()


Part = tuple[int, list[Record]]
"""Messages that arrived at about the same time, and when the first of them did."""


class JournalIntake:
    """Runs in a thread of its own until `stop` is set; the one reader of a journal."""

    def __init__(self, journal: Path, subscriptions: list[Subscription], logs: SiteLog) -> None:
        self.skipped = 0
        """Bytes of the journal that were damaged and left out."""
        registry = register(journal, [s.log for s in subscriptions])
        self.targets = [Target(subscription, logs, registry) for subscription in subscriptions]
        self._source = Journal(journal)
        noted = get_position(journal, READER) or 0
        for target in self.targets:
            target.position = max(target.position, noted)
        self._end = min((t.position for t in self.targets), default=noted)
        self._folder = journal
        self._noted = noted
        self._note_due = 0.0
        self._problem = ""
        self._active: list[Target] = []
        self._routes: dict[bytes, tuple[str, tuple[Target, ...]]] = {}
        self._batch: dict[Target, list[Part]] = {}

    def run(self, stop: threading.Event) -> None:
        self._tell("")
        pause = _SHORTEST_PAUSE
        try:
            while not stop.is_set():
                size = self.step(stop)
                pause = _SHORTEST_PAUSE if size else min(1.2 * pause, _LONGEST_PAUSE)
                if size < _SMALL_BYTES:
                    stop.wait(pause)
            self._note()
        finally:
            self.close()

    def step(self, stop: threading.Event) -> int:
        """Takes over the next messages, if there are any; returns how many bytes they were."""
        start = self._end
        if self._source.committed() > start:
            try:
                end = self._read(start)
            except LogDamaged as damage:
                end = self._pass(start, damage)
            if not self._store(end, stop):
                return 0
            if end > start and self._problem:
                self._tell("")
        if time.monotonic() >= self._note_due:
            self._note()
        return self._end - start

    def close(self) -> None:
        for target in self.targets:
            target.close()
        self._source.close()

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def _read(self, start: int) -> int:
        """Sorts messages from `start` on into the batch; returns the position behind them.

        A log that is further than the others takes part when they have reached it.
        """
        self._activate([t for t in self.targets if t.position <= start])
        later = [t.position for t in self.targets if t.position > start]
        limit = min(later, default=1 << 62)
        begin, data = self._source.read(start, min(limit, start + _READ_BYTES))
        used = self._split(data)
        return begin + used if used else self._read_with_care(start)

    def _activate(self, active: list[Target]) -> None:
        if active != self._active or len(self._routes) > _MOST_ROUTES:
            self._active = active
            self._routes = {}

    def _split(self, data: bytes) -> int:
        """The whole messages at the front of `data`; returns how many bytes they are.

        Stops before anything that is not a message as the broker writes it.
        """
        unpack, crc32, routes = _MESSAGE.unpack_from, zlib.crc32, self._routes
        view, head = memoryview(data), _MESSAGE.size
        at, size, first, last = 0, len(data), 0, -1
        part: dict[Target, list[Record]] = {}
        while at + head <= size:
            length, crc, _, arrival, _, _, count, payload, topic = unpack(data, at)
            end, begin = at + 8 + length, at + head + topic
            if count != 1 or end > size or begin + payload + 1 != end:
                break
            if crc32(view[at + 8 : end]) != crc:
                break
            if not first <= arrival <= last:
                self._add(first, part)
                first, last, part = arrival, arrival + _ARRIVAL_US, {}
            raw = data[at + head : begin]
            name, targets = routes.get(raw) or self._route(raw)
            for target in targets:
                if target in part:
                    part[target].append((name, data[begin : end - 1]))
                else:
                    part[target] = [(name, data[begin : end - 1])]
            at = end
        self._add(first, part)
        return at

    def _route(self, raw: bytes) -> tuple[str, tuple[Target, ...]]:
        topic = raw.decode(errors="replace")
        found = (topic, tuple(t for t in self._active if t.wants(topic)))
        self._routes[raw] = found
        return found

    def _add(self, arrival: int, part: dict[Target, list[Record]]) -> None:
        for target, records in part.items():
            self._batch.setdefault(target, []).append((arrival, records))

    def _read_with_care(self, start: int) -> int:
        """One frame or more, whatever they hold. Raises `LogDamaged` where there is none."""
        try:
            frames, position = self._source.reader.frames(start, 1)
        except LogGone as gone:
            self.skipped += gone.first - start
            return gone.first
        for frame in frames:
            try:
                records = frame.records()
            except BadFrame:
                self.skipped += frame.end - frame.position
                continue
            for target in self.targets:
                if target.position <= frame.position:
                    wanted = [record for record in records if target.wants(record[0])]
                    self._add(frame.arrival, {target: wanted})
        return position

    def _pass(self, start: int, damage: LogDamaged) -> int:
        """Behind damage, the next segment. Without one the broker, when it starts, decides where
        the journal ends, and until then nothing behind the damage is read."""
        segments = list_segments(self._folder)
        behind = locate(segments, start) + 1
        if behind >= len(segments) or segments[behind].first >= self._source.committed():
            self._tell(str(damage))
            return start
        self.skipped += segments[behind].first - start
        return segments[behind].first

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def _store(self, end: int, stop: threading.Event) -> bool:
        """Everything before `end` is in its logs, and on disk."""
        batch, self._batch = self._batch, {}
        if batch:
            self._source.sync(self._end, end)
        for target, parts in batch.items():
            if not target.store(parts, end, stop):
                return False
        for target in self.targets:
            target.position = max(target.position, end)
        self._end = end
        return True

    def _note(self) -> None:
        self._note_due = time.monotonic() + _NOTE_SECONDS
        if self._end == self._noted:
            return
        self._source.sync(self._noted, self._end)
        try:
            set_position(self._folder, READER, self._end)
            self._noted = self._end
            self._tell("")
        except LogError as error:
            self._tell(f"cannot note how far the journal is read: {error}")

    def _tell(self, problem: str) -> None:
        self._problem = problem
        for target in self.targets:
            target.state = problem or "running"
