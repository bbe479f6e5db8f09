"""Intake from the journal of the site's own broker: every message into the logs that take it.

Exactly once by construction: what a log takes from the journal carries the journal's number as its
source and, as its epoch, the journal's position behind it, and both come in one commit with the
messages. So after a crash each log itself says where it goes on. Three more things are kept, in the
journal's folder, and none of them is ahead of what they describe:

- `intake`: the journal's number, made at random so that a log does not take the positions of one
  journal for those of another, and where each subscription began. A new subscription begins at the
  end that the journal has when it is first registered. That is written before anything is read for
  it, so a crash in between does not move its beginning; a subscription that is given up is struck
  off, and begins anew should it come back.
- `readers/ingest`: up to where all logs have everything. Retention goes by it, and logs for which
  nothing came begin there after a restart.

The journal is synced up to a position before that position is kept anywhere, so after a power
failure it never ends before one that a log counts on, and no position is given out a second time.

A message on `fogline/link/<topic>` is a batch from another site: its records go to the logs that
take <topic>. They carry their origin's number and position, so a batch that comes again, or that is
read again, is recognised by those; the journal's position does not matter for them.

A client that got no confirmation sends again, and then the journal holds the message twice. With
`deduplicate` messages whose content was stored lately are left out, without it they are stored.
"""

from __future__ import annotations

import struct
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from fogline.agent.contracts.ingest import Subscription
from fogline.agent.ingest.retained_fetch import RetainedAnswer, RetainedFetch
from fogline.broker.mosquitto.journal import READER, Journal, Registry, note_greeted, register
from fogline.broker.topics import split_share
from fogline.links.batch import PREFIX
from fogline.links.dedup import Recent
from fogline.links.inlet import BadLinks, Inlet
from fogline.links.receiver import Delivery, LogPart, Rejected, in_portions, unpack
from fogline.log import (
    LogDamaged,
    LogError,
    LogNotifier,
    LogRecord,
    SiteLog,
    get_position,
    set_position,
)
from fogline.log.files.frames import CHECKED, HEAD, MARKER, BadFrame
from fogline.log.files.lock import is_written

_READ_BYTES = 2 << 20
_SMALL_BYTES = 64 << 10
_GATHER_SECONDS, _LONGEST_PAUSE = 0.003, 0.25
_NOTE_SECONDS = 5.0
_ARRIVAL_US = 50_000
_MOST_ROUTES = 100_000
# A frame with one record, as the broker writes it: up to where the topic begins.
_MESSAGE = struct.Struct("<4sI4xIQ8xIxq16xIH")


class JournalTarget(Inlet):
    """One subscription and its log."""

    def __init__(self, subscription: Subscription, logs: SiteLog, registry: Registry) -> None:
        log = logs.writer(subscription.log)
        super().__init__(subscription.pattern, log, registry.source)
        self.subscription = subscription
        self._source = registry.source
        self.position = max(registry.starts[subscription.log], log.last_epoch(self._source))
        self._recent = Recent() if subscription.deduplicate else None
        if self._recent is not None:
            with logs.reader(subscription.log, skip_damage=True) as reader:
                self._recent.note_tail(reader)

    def store(self, found: list[Found], end: int, stop: threading.Event) -> bool:
        """Writes what is new of everything up to `end`, at once; waits for space where there is
        none. False when it is to end."""
        parts = [
            LogPart(self._source, end, at, self._drop_repeated(records)) for at, records in found
        ]
        if not self.persist(parts, (), stop):
            return False
        self.position = end
        self.state = "running"
        return True

    def greet(self, retained: list[LogRecord], logs: SiteLog, stop: threading.Event) -> bool:
        """Writes what was retained and is not in the log yet. False when it is to end."""
        recent = self._recent
        if recent is None:
            recent = Recent()
            with logs.reader(self.subscription.log, skip_damage=True) as reader:
                recent.note_tail(reader)
        fresh = [record for record in retained if recent.is_new(*record)]
        return not fresh or self.persist([LogPart(0, -1, None, fresh)], (), stop)

    def _drop_repeated(self, records: list[LogRecord]) -> list[LogRecord]:
        if self._recent is None:
            return records
        is_new = self._recent.is_new
        fresh = [record for record in records if is_new(*record)]
        self.repeated += len(records) - len(fresh)
        return fresh


class Links:
    """Stands for the logs that a batch goes to, until it is unpacked."""


Found = tuple[int, list[LogRecord]]
"""Messages that arrived at about the same time, and when the first of them did."""
Goal = JournalTarget | Links


def keep_working(step: Callable[[], int], stop: threading.Event, notifier: LogNotifier) -> None:
    """Calls `step`, which returns how many bytes it moved, until `stop` is set; without any it
    waits for `notifier`."""
    while not stop.is_set():
        size = step()
        if not size:
            notifier.wait(_LONGEST_PAUSE)
        elif size < _SMALL_BYTES:
            stop.wait(_GATHER_SECONDS)


class JournalIntake:
    """The one reader of a journal; for one thread."""

    def __init__(
        self,
        journal: Path,
        subscriptions: Sequence[Subscription],
        logs: SiteLog,
        bad: BadLinks | None = None,
        retained_fetch: RetainedFetch | None = None,
    ) -> None:
        """Without `retained_fetch` nobody asks for what is retained."""
        self.targets: list[JournalTarget] = []
        self._folder = journal
        self._logs = logs
        self._bad = bad or BadLinks(logs)
        self._source = Journal(journal)
        self._noted = self._end = get_position(journal, READER) or 0
        self._note_due = 0.0
        self._problem = ""
        self._active: list[JournalTarget] = []
        self._links = Links()
        self._routes: dict[bytes, tuple[str, tuple[Goal, ...]]] = {}
        self._batch: dict[Goal, list[Found]] = {}
        self._retained_fetch = retained_fetch
        self._greetings: list[tuple[int, RetainedAnswer]] = []
        """With the position up to which the journal must be read before: what was published in the
        meantime is known by then."""
        self.change(subscriptions)
        self._noted = get_position(journal, READER) or 0
        self._goal = 0
        self._end = min((t.position for t in self.targets), default=self._noted)

    def change(self, subscriptions: Sequence[Subscription]) -> None:
        """From now on these, and no others; those that were there go on."""
        kept = {t.subscription: t for t in self.targets if t.subscription in subscriptions}
        for target in self.targets:
            if target.subscription not in kept:
                target.close()
        self.targets = list(kept.values())
        registry = register(self._folder, [s.log for s in subscriptions])
        self.targets = [kept.get(s) or self._open(s, registry) for s in subscriptions]
        for subscription in subscriptions:
            if subscription not in kept and subscription.log not in registry.greeted:
                self._ask_retained(subscription)
        self._active, self._routes = [], {}
        self._set_problem(self._problem)

    def _open(self, subscription: Subscription, registry: Registry) -> JournalTarget:
        target = JournalTarget(subscription, self._logs, registry)
        target.position = max(target.position, self._end)
        return target

    def _ask_retained(self, subscription: Subscription) -> None:
        """Shared subscriptions get none; that is so with every broker."""
        group, pattern = split_share(subscription.pattern)
        if self._retained_fetch is not None and group is None:
            self._retained_fetch.ask(subscription.log, pattern)

    def run(self, stop: threading.Event) -> None:
        """All of it until `stop` is set."""
        notifier = LogNotifier()
        notifier.watch([self._folder])
        try:
            keep_working(lambda: self.step(stop), stop, notifier)
            self._note()
        finally:
            self.close()
            notifier.close()

    def finish(self) -> None:
        """Notes how far it is, and closes."""
        self._note()
        self.close()

    def step(self, stop: threading.Event) -> int:
        """Takes over the next messages, if there are any; returns how many bytes they were."""
        start = self._end
        if self._source.committed() > start:
            end = self._read(start)
            if not self._store(end, stop):
                return 0
            if end > start and self._problem:
                self._set_problem("")
        if self._retained_fetch is not None:
            self._greet(self._retained_fetch, stop)
        if time.monotonic() >= self._note_due:
            self._note()
        return self._end - start

    def _greet(self, retained_fetch: RetainedFetch, stop: threading.Event) -> None:
        self._greetings += [
            (self._source.committed(), answer) for answer in retained_fetch.answers()
        ]
        while self._greetings and self._greetings[0][0] <= self._end:
            _, (log, retained) = self._greetings[0]
            targets = [target for target in self.targets if target.subscription.log == log]
            if not all(target.greet(retained, self._logs, stop) for target in targets):
                return
            try:
                note_greeted(self._folder, log)
            except OSError as error:
                self._set_problem(f"cannot note what is read: {error}")
                return
            del self._greetings[0]

    def listen(self) -> None:
        """Called again and again, not too often: what was in the journal the last time is in the
        logs, if the broker is there and nothing hinders us."""
        caught_up = self._end >= self._goal and not self._problem
        self._goal = self._source.committed()
        hears = caught_up and is_written(self._folder)
        for target in self.targets:
            target.listen(hears and target.state == "running")

    def close(self) -> None:
        for target in self.targets:
            target.close()
        if self._retained_fetch is not None:
            self._retained_fetch.close()
        self._source.close()
        self._bad.close()

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def _read(self, start: int) -> int:
        """Sorts messages from `start` on into the batch; returns the position behind them.

        A log that is further than the others takes part when they have reached it.
        """
        self._activate([t for t in self.targets if t.position <= start])
        later = [t.position for t in self.targets if t.position > start]
        limit = min(later, default=1 << 62)
        begin, data = self._source.read(start, min(limit, start + _READ_BYTES))
        used = self._split(data, begin)
        return begin + used if used else self._read_with_care(start)

    def _activate(self, active: list[JournalTarget]) -> None:
        if active != self._active or len(self._routes) > _MOST_ROUTES:
            self._active = active
            self._routes = {}

    def _split(self, data: bytes, position: int) -> int:
        """The whole messages at the front of `data`, which is at `position`; returns how many bytes
        they are.

        Stops before anything that is not a message as the broker writes it.
        """
        unpack, crc32, routes = _MESSAGE.unpack_from, zlib.crc32, self._routes
        view, head, before = memoryview(data), _MESSAGE.size, HEAD.size
        at, size, first, last = 0, len(data), 0, -1
        part: dict[Goal, list[LogRecord]] = {}
        while at + head <= size:
            marker, crc, length, own, count, arrival, payload, topic = unpack(data, at)
            end, begin = at + before + length, at + head + topic
            if own != position + at or count != 1 or end > size or begin + payload + 1 != end:
                break
            if marker != MARKER or crc32(view[at + CHECKED : end]) != crc:
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

    def _route(self, raw: bytes) -> tuple[str, tuple[Goal, ...]]:
        topic = raw.decode(errors="replace")
        found = (topic, self._goals(topic))
        self._routes[raw] = found
        return found

    def _goals(self, topic: str) -> tuple[Goal, ...]:
        if topic.startswith(PREFIX):
            return (self._links,)
        return tuple(target for target in self._active if target.accepts(topic))

    def _add(self, arrival: int, part: dict[Goal, list[LogRecord]]) -> None:
        for goal, records in part.items():
            self._batch.setdefault(goal, []).append((arrival, records))

    def _read_with_care(self, start: int) -> int:
        """One frame or more, whatever they hold; what is damaged is passed, and counted."""
        frames, position = self._source.reader.frames(start, 1)
        for frame in frames:
            try:
                records = frame.records()
            except BadFrame as error:
                damage = LogDamaged(self._folder, frame.position, str(error))
                return self._source.reader.pass_damage(damage)
            for record in records:
                for goal in self._goals(record[0]):
                    self._add(frame.arrival, {goal: [record]})
        return position

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def _store(self, end: int, stop: threading.Event) -> bool:
        """Everything before `end` is in its logs, and on disk."""
        batch, self._batch = self._batch, {}
        if not self._store_linked(batch.pop(self._links, []), stop):
            return False
        if batch:
            self._source.sync(self._end, end)
        for target in self.targets:
            if target in batch and not target.store(batch[target], end, stop):
                return False
        for target in self.targets:
            target.position = max(target.position, end)
        self._end = end
        return True

    def _store_linked(self, found: list[Found], stop: threading.Event) -> bool:
        """The batches among the messages, in each log that takes them."""
        items = (unpack(*message, arrival) for arrival, batch in found for message in batch)
        for portion in in_portions(items):
            self._bad.keep([item for item in portion if isinstance(item, Rejected)])
            good = [item for item in portion if isinstance(item, Delivery)]
            for target in self._active:
                accepted = [item for item in good if target.accepts(item.topic)]
                if accepted and not target.persist((), accepted, stop):
                    return False
        return True

    def _note(self) -> None:
        self._note_due = time.monotonic() + _NOTE_SECONDS
        if self._end == self._noted:
            return
        self._source.sync(self._noted, self._end)
        try:
            set_position(self._folder, READER, self._end)
            self._noted = self._end
            self._set_problem("")
        except LogError as error:
            self._set_problem(f"cannot note how far the journal is read: {error}")

    def _set_problem(self, problem: str) -> None:
        self._problem = problem
        for target in self.targets:
            target.state = problem or "running"
