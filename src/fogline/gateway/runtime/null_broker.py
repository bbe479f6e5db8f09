"""Where records go that are for a node nobody has seen yet: nowhere, so that they wait on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from fogline.broker import Batch, Broker, BrokerUnreachableError, DeliveryFuture, Message
from fogline.broker.interface import Filters


class Nowhere(Broker):
    """A broker that never connects."""

    def __init__(self, node: str) -> None:
        self._node = node

    @property
    def connected(self) -> bool:
        return False

    @property
    def problem(self) -> str:
        return f"{self._node} was never seen, what is for it waits here"

    def connect(self, timeout: float = 0.0) -> None:
        self._refuse()

    def subscribe(self, patterns: Filters, qos: int = 1, timeout: float = 0.0) -> None:
        self._refuse()

    def unsubscribe(self, patterns: Filters, timeout: float = 0.0) -> None:
        self._refuse()

    def receive(self, max_messages: int = 0, timeout: float = 0.0) -> Batch:
        self._refuse()

    def acknowledge(self, batch: Batch) -> None:
        """There is none."""

    def publish(self, messages: Sequence[Message], timeout: float = 0.0) -> DeliveryFuture:
        self._refuse()

    def close(self, timeout: float = 0.0) -> None:
        """It never was open."""

    def _refuse(self) -> NoReturn:
        raise BrokerUnreachableError(self.problem)
