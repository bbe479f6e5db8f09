"""A connection to the control broker that is always there or being made.

`start` returns at once. A thread connects for as long as it takes, subscribes, and hands over what
comes in; nothing that a handler raises ends it. A lost connection is noticed when it is back, by
its number.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fogline.broker import (
    BrokerClosedError,
    BrokerError,
    BrokerOptions,
    DeliveryFuture,
    Message,
    Tls,
    open_broker,
)
from fogline.common.backoff import Backoff

TURN_SECONDS = 0.25
PUBLISH_SECONDS = 1.0
CLOSE_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """How a node or the coordinator keeps in touch; the defaults are what the contract says."""

    tls: Tls | None = None
    protocol: int = 5
    """MQTT 5, or 4 for 3.1.1."""
    announcement_seconds: float = 10.0
    status_seconds: float = 2.0
    keepalive_seconds: int = 5
    retry_longest: float = 5.0
    """Seconds between attempts to connect, at most."""

    def for_broker(self, client_id: str, will: Message | None = None) -> BrokerOptions:
        return BrokerOptions(
            client_id=client_id,
            will=will,
            tls=self.tls,
            protocol=self.protocol,
            keepalive_seconds=self.keepalive_seconds,
            retry_longest=self.retry_longest,
        )


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the connection calls, always in its own thread."""

    received: Callable[[Message], None]
    connected: Callable[[], None] = _nothing
    """All subscriptions stand, for the first time or again."""
    turned: Callable[[], None] = _nothing
    """After every batch of messages, and several times a second."""


class ControlConnection:
    """Raises `UsageError` when made with an address that is none. `start` once, then `close`."""

    def __init__(
        self, url: str, options: BrokerOptions, filters: Sequence[str], hooks: Hooks
    ) -> None:
        self._broker = open_broker(url, options)
        self._options = options
        self._filters = tuple(filters)
        self._hooks = hooks
        self._ready = False
        self._number = -1
        self._trouble = "not connected yet"
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    @property
    def connected(self) -> bool:
        """Whether what is published now is sent now, and answers to it arrive."""
        return self._ready and self._broker.connected

    @property
    def problem(self) -> str:
        """Why there is no connection; empty while there is one."""
        return self._broker.problem if self._ready else self._trouble

    def start(self) -> None:
        self._thread.start()

    def publish(self, *messages: Message) -> DeliveryFuture:
        """Never waits long. What is published while the connection is lost is sent later. Many
        messages at once wake the thread of the network once.

        Raises `BrokerError` when too much waits already, or after `close`.
        """
        return self._broker.publish(messages, PUBLISH_SECONDS)

    def close(self) -> None:
        self._closing.set()
        self._broker.close(CLOSE_SECONDS)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            self._keep_trying(self._broker.connect)
            self._keep_trying(self._subscribe)
            self._ready = True
            self._turn(0.0)
            while True:
                self._turn(TURN_SECONDS)
        except BrokerClosedError:
            # Closing may have come before the attempt it should have ended.
            self._broker.close(CLOSE_SECONDS)

    def _keep_trying(self, attempt: Callable[[], None]) -> None:
        backoff = Backoff(self._options.retry_first, self._options.retry_longest)
        while not self._closing.is_set():
            try:
                attempt()
            except BrokerClosedError:
                raise
            except BrokerError as error:
                self._trouble = str(error)
            else:
                return
            self._closing.wait(backoff.next())
        raise BrokerClosedError("the connection to the control broker is closed")

    def _subscribe(self) -> None:
        for pattern in self._filters:
            self._broker.subscribe(pattern)

    def _turn(self, seconds: float) -> None:
        batch = self._broker.receive(timeout=seconds)
        if batch.connection != self._number:
            self._number = batch.connection
            self._call_safely(self._hooks.connected)
        for message in batch:
            self._call_safely(partial(self._hooks.received, message))
        self._broker.acknowledge(batch)
        self._call_safely(self._hooks.turned)

    def _call_safely(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            _log.exception("a handler of control messages failed")
