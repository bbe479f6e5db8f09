"""A broker inside this process, for tests and for trying things out.

It keeps every promise of `Broker` that does not need a disk. `hub(name)` gives the shared broker,
whose `drop`, `stop` and `start` break connections on purpose.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from fogline.broker.delivery import DeliveryFuture
from fogline.broker.errors import (
    BrokerClosedError,
    BrokerError,
    BrokerTimeoutError,
    BrokerUnreachableError,
)
from fogline.broker.interface import (
    CONNECT_SECONDS,
    PUBLISH_SECONDS,
    RECEIVE_MESSAGES,
    Batch,
    Broker,
    Filters,
    Message,
)
from fogline.broker.memory_hub import Hub, MemorySession, hub
from fogline.broker.options import BrokerOptions
from fogline.broker.outbox import Outbox
from fogline.broker.topics import check_filters, check_messages

__all__ = ["MemoryBroker", "hub"]


class MemoryBroker(Broker):
    """A client of a `Hub`. A lost connection is back at once, or when the hub is started again."""

    def __init__(self, to: Hub, options: BrokerOptions | None = None) -> None:
        self._hub = to
        self._options = options or BrokerOptions()
        self._client_id = self._options.client_id or to.new_name()
        self._outbox = Outbox(self._options.queue_messages, self._options.queue_bytes)
        self._subscribed: dict[str, int] = {}
        self._session: MemorySession | None = None
        self._connection = 0
        self._connected = False
        self._closed = False
        self._problem = "not connected yet"

    @property
    def connected(self) -> bool:
        return self._connected

    @property
    def problem(self) -> str:
        return "" if self._connected else self._problem

    def connect(self, timeout: float = CONNECT_SECONDS) -> None:
        with self._hub.changed:
            self._check_open()
            if not self._hub.up:
                raise BrokerUnreachableError("the broker in memory is stopped")
            self.reconnect()

    def subscribe(self, patterns: Filters, qos: int = 1, timeout: float = CONNECT_SECONDS) -> None:
        checked = check_filters(patterns)
        with self._hub.changed:
            self._check_open()
            self._subscribed |= dict.fromkeys(checked, min(qos, 1))
            session = self._await_session(timeout)
            for pattern in checked:
                known = pattern in session.filters and self._options.retained_once
                self._hub.subscribe(session, pattern, min(qos, 1), greeted=known)

    def unsubscribe(self, patterns: Filters, timeout: float = CONNECT_SECONDS) -> None:
        checked = check_filters(patterns)
        with self._hub.changed:
            self._check_open()
            for pattern in checked:
                self._subscribed.pop(pattern, None)
            session = self._await_session(timeout)
            for pattern in checked:
                session.filters.pop(pattern, None)

    def receive(self, max_messages: int = RECEIVE_MESSAGES, timeout: float = 1.0) -> Batch:
        deadline = time.monotonic() + timeout
        with self._hub.changed:
            while True:
                self._check_open()
                if self._connected and self._session is not None:
                    taken = self._session.take(max_messages, self._options.receive_maximum)
                    if taken[0]:
                        return Batch(*taken, self._connection)
                left = deadline - time.monotonic()
                if left <= 0:
                    return Batch([], (), self._connection)
                self._hub.changed.wait(left)

    def acknowledge(self, batch: Batch) -> None:
        with self._hub.changed:
            self._check_open()
            if self._session is not None and batch.connection == self._connection:
                for packet_id in batch.tokens:
                    self._session.unacknowledged.pop(packet_id, None)

    def publish(
        self, messages: Sequence[Message], timeout: float = PUBLISH_SECONDS
    ) -> DeliveryFuture:
        check_messages(messages)
        delivery = self._outbox.put(messages, timeout)
        with self._hub.changed:
            self._send()
        return delivery

    def close(self, timeout: float = 5.0) -> None:
        with self._hub.changed:
            self._closed, self._connected = True, False
            if self._session is not None:
                self._hub.leave(self, self._session)
            self._hub.changed.notify_all()
        self._outbox.close()

    def __repr__(self) -> str:
        return f"MemoryBroker({self._client_id})"

    # ── what the hub calls, with its condition held ──────────────────────────────────────────────

    def connection_lost(self, reason: str) -> None:
        self._connected = False
        self._problem = reason

    def reconnect(self) -> None:
        """The hub can be reached (again): takes up the session and what was left undone."""
        options = self._options
        self._session, present = self._hub.attach(self, self._client_id, options.persistent)
        self._session.will = options.will
        self._connection += 1
        self._connected = True
        for pattern, qos in self._subscribed.items():
            if not present or pattern not in self._session.filters:
                self._hub.subscribe(self._session, pattern, qos)
        self._send()

    def _send(self) -> None:
        while self._connected and (message := self._outbox.next()) is not None:
            self._outbox.note_sent(0)
            error: BrokerError | None = None
            try:
                self._hub.route(message)
            except BrokerError as refused:
                error = refused
            self._outbox.confirm(0, error)
        self._outbox.announce()

    def _await_session(self, timeout: float) -> MemorySession:
        self._hub.changed.wait_for(lambda: self._connected or self._closed, timeout)
        self._check_open()
        if not self._connected or self._session is None:
            raise BrokerTimeoutError(f"no connection within {timeout:g} s: {self._problem}")
        return self._session

    def _check_open(self) -> None:
        if self._closed:
            raise BrokerClosedError("the broker connection is closed")
