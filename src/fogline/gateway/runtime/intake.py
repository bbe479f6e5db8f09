"""GatewayIntake from a broker that is not the gateway's own: messages into logs, then acknowledged.

One connection serves any number of logs, so many gateways of one process can share it. Messages
that the broker delivers again, and retained ones, are compared with those that came lately.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable

from fogline.broker import Batch, Broker, BrokerError, BrokerOptions, Message, Tls, open_broker
from fogline.broker.topics import matches, split_share
from fogline.gateway.runtime.connections import connect_in_background
from fogline.links.dedup import Recent
from fogline.log import LogFull, LogRecord, LogWriter

_REMEMBERED = 10_000
_MOST_TOPICS = 50_000
_SUBSCRIBE_SECONDS = 5.0


class Target:
    """A log and what it takes. `ready` says whether there is space in its gateway."""

    def __init__(self, log: LogWriter, ready: Callable[[], bool]) -> None:
        self.log = log
        self.ready = ready
        self.patterns: set[str] = set()
        self.messages = 0


class GatewayIntake:
    """`step` is called again and again by one thread; everything else by any."""

    def __init__(self, url: str, client: str, tls: Tls | None = None) -> None:
        options = BrokerOptions(
            client_id=client, persistent=True, tls=tls, receive_maximum=_REMEMBERED
        )
        self.problem = ""
        self._broker: Broker = open_broker(url, options)
        self._closing = threading.Event()
        self._targets: list[Target] = []
        self._routes: dict[str, list[Target]] = {}
        self._takers: Counter[str] = Counter()
        """How many targets request a pattern."""
        self._requested: set[str] = set()
        self._made: set[str] = set()
        self._awaited: set[str] = set()
        """Requested since the last time somebody waited for subscriptions."""
        self._batch: Batch | None = None
        self._left: dict[Target, list[LogRecord]] = {}
        self._recent = Recent(_REMEMBERED)
        self._guard = threading.RLock()
        self._subscribing = threading.Lock()
        connect_in_background(self._broker, self._closing)

    @property
    def state(self) -> str:
        if self.problem:
            return self.problem
        return "running" if self._broker.connected else f"disconnected: {self._broker.problem}"

    def add(self, target: Target) -> None:
        with self._guard:
            self._targets.append(target)

    def remove(self, target: Target) -> None:
        with self._guard:
            self._targets.remove(target)
            self._routes.clear()
            target.log.close()

    def request(self, target: Target, patterns: Iterable[str]) -> None:
        """From now on the target is to get these; `settle` waits until they are made."""
        with self._guard:
            before, target.patterns = target.patterns, set(patterns)
            if target.patterns != before:
                self._routes.clear()
                self._count(target.patterns - before, before - target.patterns)

    def _count(self, more: set[str], fewer: set[str]) -> None:
        for pattern in more:
            self._takers[pattern] += 1
        for pattern in fewer:
            self._takers[pattern] -= 1
        self._awaited |= more - self._requested
        self._requested |= more
        self._requested -= {pattern for pattern in fewer if not self._takers[pattern]}

    def has(self, patterns: Iterable[str]) -> bool:
        """Whether the broker has these subscriptions."""
        return self._made.issuperset(patterns)

    def settle(self) -> None:
        """What is requested since the last time is made at the broker; else raises `BrokerError`,
        and then it is made as soon as that is there."""
        with self._guard:
            awaited, self._awaited = self._awaited, set()
        if awaited:
            self._subscribe(_SUBSCRIBE_SECONDS)

    def _subscribe(self, seconds: float) -> None:
        with self._subscribing:
            if new := sorted(self._requested - self._made):
                self._broker.subscribe(new, timeout=seconds)
                self._made.update(new)

    def _unsubscribe(self, seconds: float) -> None:
        """Under the same lock: who requests a pattern again waits, and then subscribes again."""
        with self._subscribing:
            if old := sorted(self._made - self._requested):
                self._made.difference_update(old)
                self._broker.unsubscribe(old, timeout=seconds)

    def step(self) -> bool:
        """Stores what came; whether anything did."""
        if not self._broker.connected and self._batch is None:
            return False
        try:
            if self._requested != self._made:
                self._subscribe(0.2)
                self._unsubscribe(0.2)
            with self._guard:
                return self._take()
        except BrokerError as error:
            self.problem = str(error)
            return False

    def _take(self) -> bool:
        if not all(target.ready() for target in self._targets):
            self.problem = "the buffer is full: intake waits"
            return False
        if self._batch is None:
            batch = self._broker.receive(timeout=0)
            if not len(batch):
                self.problem = ""
                return False
            self._batch, self._left = batch, self._sort_messages(batch)
        try:
            self._store()
        except LogFull as error:
            self.problem = f"no space: {error}"
            return False
        self._broker.acknowledge(self._batch)
        self._batch, self.problem = None, ""
        return True

    def _sort_messages(self, batch: Batch) -> dict[Target, list[LogRecord]]:
        found: dict[Target, list[LogRecord]] = {}
        for message in batch:
            if self._is_fresh(message):
                for target in self._targets_of(message.topic):
                    found.setdefault(target, []).append((message.topic, message.payload))
        return found

    def _store(self) -> None:
        """What is left of the batch; what raises `LogFull` is left once more."""
        while self._left:
            target = next(iter(self._left))
            records = self._left[target]
            if target in self._targets:
                target.log.append(records)
                target.log.commit()
                target.messages += len(records)
            del self._left[target]

    def _is_fresh(self, message: Message) -> bool:
        new = self._recent.is_new(message.topic, message.payload)
        return new or not (message.dup or message.retain)

    def _targets_of(self, topic: str) -> list[Target]:
        known = self._routes.get(topic)
        if known is None:
            known = [
                target
                for target in self._targets
                if any(matches(split_share(p)[1], topic) for p in target.patterns)
            ]
            if len(self._routes) >= _MOST_TOPICS:
                self._routes.clear()
            self._routes[topic] = known
        return known

    def close(self) -> None:
        self._closing.set()
        self._broker.close(2.0)
        for target in self._targets:
            target.log.close()
