"""What was given to be published and is not confirmed yet.

Any thread puts, one thread (the network's) takes and confirms. The counts have one writer each.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from fogline.broker.delivery import DeliveryFuture
from fogline.broker.errors import BrokerClosedError, BrokerError, BrokerTimeoutError
from fogline.broker.interface import Message


class Outbox:
    """A bounded queue of messages; a batch is taken in whole as soon as there is any room."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._waiting: deque[tuple[Message, DeliveryFuture]] = deque()
        self._sent: dict[int, tuple[Message, DeliveryFuture]] = {}
        self._again: deque[int] = deque()
        self._put = self._put_bytes = 0
        self._confirmed = self._confirmed_bytes = 0
        self._closed = False
        self._room = threading.Condition()

    def put(self, messages: Sequence[Message], timeout: float) -> DeliveryFuture:
        """Waits for room, then takes all messages or, when there is none in time, raises."""
        delivery = DeliveryFuture(len(messages))
        deadline = time.monotonic() + timeout
        with self._room:
            while not self._closed and self._full():
                left = deadline - time.monotonic()
                if left <= 0 or not self._room.wait(left):
                    text = f"the broker confirmed too little for {timeout:g} s, nothing was taken"
                    raise BrokerTimeoutError(text, "is the broker up?")
            if self._closed:
                raise BrokerClosedError("the broker connection is closed")
            self._put += len(messages)
            self._put_bytes += sum(len(message.payload) for message in messages)
            self._waiting.extend((message, delivery) for message in messages)
        return delivery

    def again(self) -> tuple[int, Message] | None:
        """The next of the messages to be sent once more, under its old number; before `next`."""
        while self._again:
            number = self._again.popleft()
            if number in self._sent:
                return number, self._sent[number][0]
        return None

    def next(self) -> Message | None:
        """The message to send next; it stays until `sent`."""
        return self._waiting[0][0] if self._waiting else None

    def is_free(self, number: int) -> bool:
        """Whether no message is on its way under this number."""
        return number not in self._sent

    def sent(self, number: int) -> None:
        """The next message is on its way under this number."""
        self._sent[number] = self._waiting.popleft()

    def done(self) -> None:
        """The next message was sent, and nobody will answer for it."""
        self._confirm(*self._waiting.popleft())

    @property
    def unconfirmed(self) -> int:
        return len(self._sent)

    def confirm(self, number: int, error: BrokerError | None = None) -> None:
        """The broker has answered for a message that was sent."""
        if (entry := self._sent.pop(number, None)) is not None:
            self._confirm(*entry, error)

    def _confirm(
        self, message: Message, delivery: DeliveryFuture, error: BrokerError | None = None
    ) -> None:
        self._confirmed += 1
        self._confirmed_bytes += len(message.payload)
        delivery.confirm(error, message)

    def connection_lost(self) -> None:
        """What was on its way with QoS 1 goes again."""
        self._again = deque(n for n, (message, _) in self._sent.items() if message.qos == 1)

    def announce(self) -> None:
        """Wakes who waits for room; called once for many confirmations."""
        with self._room:
            self._room.notify_all()

    def close(self) -> None:
        """Every open delivery ends with `BrokerClosedError`."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        for _, delivery in [*self._sent.values(), *self._waiting]:
            delivery.abandon()
        self._waiting.clear()
        self._sent.clear()

    def _full(self) -> bool:
        held = self._put - self._confirmed
        held_bytes = self._put_bytes - self._confirmed_bytes
        return held >= self._max_messages or held_bytes >= self._max_bytes
