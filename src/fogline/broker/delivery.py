"""Delivery futures: whether what was published has been acknowledged by the broker."""

from __future__ import annotations

import threading
from typing import Any

from fogline.broker.errors import BrokerClosedError, BrokerError, BrokerTimeoutError


class DeliveryFuture:
    """The acknowledgement of one `publish`: done when every message of it has been answered for.

    QoS 1 and 2 are acknowledged by the broker, QoS 0 by having been written to the connection.
    """

    def __init__(self, count: int) -> None:
        self._open = count
        self._error: BrokerError | None = None
        self._done = threading.Event()
        self.refused: list[tuple[Any, BrokerError]] = []
        """The messages that the broker refused, and why; complete when `done`."""
        if not count:
            self._done.set()

    @property
    def done(self) -> bool:
        """Whether nothing is open any more: all acknowledged, or failed."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Returns when all messages are acknowledged.

        Raises `BrokerTimeoutError` when that takes longer (waiting again is allowed),
        `BrokerRefusedError` when the broker refused one of them, and `BrokerClosedError` when the
        connection was closed before.
        """
        if not self._done.wait(timeout):
            text = f"{self._open} messages are not acknowledged after {timeout:g} s"
            raise BrokerTimeoutError(text, "is the broker up?")
        if self._error is not None:
            raise self._error

    def confirm(self, error: BrokerError | None = None, message: Any = None) -> None:
        """One more message is answered for. Called by one thread only, the broker's."""
        if error is not None and message is not None:
            self.refused.append((message, error))
        self._error = self._error or error
        self._open -= 1
        if not self._open:
            self._done.set()

    def abandon(self) -> None:
        """No more answers will come."""
        if not self._done.is_set():
            text = f"closed before {self._open} messages were acknowledged"
            self._error = BrokerClosedError(text)
            self._done.set()
