"""What Fogline asks of a broker, whichever it is.

The life of a `Broker`: it is made, `connect` is called once, then everything else in any order and
from any thread, then `close`. After `connect` has returned, a lost connection is repaired in the
background: subscriptions come back, what was unconfirmed is sent again, what was unacknowledged
is delivered again. Nothing is called on a closed broker but `close` itself; other calls raise
`BrokerClosedError`, those that were waiting too.

Delivery is at least once for QoS 1 and 2: the broker may forget a message only after
`acknowledge`, so the ingest loop is

    batch = broker.receive()
    log.append(batch); log.sync()
    broker.acknowledge(batch)

Memory is bounded on both sides. Who does not call `receive` stops the broker from sending: first
the unacknowledged messages block it, and when the queue here is full the socket is not read. Who
publishes faster than the broker confirms waits in `publish`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from fogline.broker.delivery import DeliveryFuture

RECEIVE_MESSAGES = 10_000
CONNECT_SECONDS = 10.0
PUBLISH_SECONDS = 60.0

Filters = str | Sequence[str]
"""One filter of topics, or several."""


class Message(NamedTuple):
    """One message, as published or as received. A tuple, because there are very many of them."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    """Published: keep it for later subscribers. Received: it is such a kept one, not fresh."""
    dup: bool = False
    """Received: the broker has sent it before and saw no acknowledgement."""


class Batch:
    """Messages in the order the broker sent them, and what is needed to acknowledge them."""

    __slots__ = ("connection", "messages", "tokens")

    def __init__(
        self, messages: list[Message], tokens: Sequence[int] = (), connection: int = 0
    ) -> None:
        self.messages = messages
        self.tokens = tokens
        """The packet ids of those messages that need an acknowledgement."""
        self.connection = connection
        """Which connection the packet ids belong to; on a later one they mean other messages."""

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)


class Broker(ABC):
    """One connection to a broker. All methods may be called from any thread."""

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether the connection stands right now."""

    @property
    @abstractmethod
    def problem(self) -> str:
        """Why it does not stand; empty while it does."""

    @abstractmethod
    def connect(self, timeout: float = CONNECT_SECONDS) -> None:
        """Connects; called once, before anything else. One attempt, it does not retry.

        Raises `BrokerUnreachableError`, `BrokerRefusedError` or `BrokerCertificateError`; then the
        object is as before and `connect` may be called again.
        """

    @abstractmethod
    def subscribe(self, patterns: Filters, qos: int = 1, timeout: float = CONNECT_SECONDS) -> None:
        """Takes messages of filters, from when this returns; `$share/group/filter` shares them.

        Several go to the broker together. Repeating a subscription is harmless (retained messages
        come again, unless the options say `retained_once`). Raises `TopicError`,
        `BrokerRefusedError`, or `BrokerTimeoutError`: then it is made as soon as there is a
        connection.
        """

    @abstractmethod
    def unsubscribe(self, patterns: Filters, timeout: float = CONNECT_SECONDS) -> None:
        """Ends subscriptions; messages that are under way may still come."""

    @abstractmethod
    def receive(self, max_messages: int = RECEIVE_MESSAGES, timeout: float = 1.0) -> Batch:
        """The next messages, as soon as there is one; an empty batch when none comes in time.

        While the connection is lost it waits for it in the same way and raises nothing.
        """

    @abstractmethod
    def acknowledge(self, batch: Batch) -> None:
        """Acknowledges these messages: the broker may forget them. Never waits.

        Batches are acknowledged in the order they were received. When the connection was lost in
        between this does nothing: the broker delivers them again, marked `dup`.
        """

    @abstractmethod
    def publish(
        self, messages: Sequence[Message], timeout: float = PUBLISH_SECONDS
    ) -> DeliveryFuture:
        """Takes all messages to be sent, in order, and returns a future of their delivery.

        Waits while too much is unconfirmed, also when the broker is down. Raises `TopicError`, or
        `BrokerTimeoutError` when there was no space in time; then none of the messages is taken.
        """

    @abstractmethod
    def close(self, timeout: float = 5.0) -> None:
        """Sends the acknowledgements given so far, says good-bye (no last will), ends all waiting.

        Does not wait for unacknowledged messages: their futures raise `BrokerClosedError`. A
        persistent session stays at the broker and collects. Closing twice is allowed.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
