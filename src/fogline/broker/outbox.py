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
    """A bounded queue of messages; a batch is taken in whole as soon as there is any space."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._waiting: deque[tuple[Message, DeliveryFuture]] = deque()
        self._sent: dict[int, tuple[Message, DeliveryFuture]] = {}
        self._again: deque[int] = deque()
        self._put = self._put_bytes = 0
        self._confirmed = self._confirmed_bytes = 0
        self._closed = False
        self._space = threading.Condition()

    def put(self, messages: Sequence[Message], timeout: float) -> DeliveryFuture:
        """Waits for space, then takes all messages or, when there is none in time, raises."""
        delivery = DeliveryFuture(len(messages))
        deadline = time.monotonic() + timeout
        with self._space:
            while not self._closed and self._full():
                left = deadline - time.monotonic()
                if left <= 0 or not self._space.wait(left):
                    text = f"the broker confirmed too little for {timeout:g} s, nothing was taken"
                    raise BrokerTimeoutError(text, "is the broker up?")
            if self._closed:
                raise BrokerClosedError("the broker connection is closed")
            self._put += len(messages)
            self._put_bytes += sum(len(message.payload) for message in messages)
            self._waiting.extend((message, delivery) for message in messages)
        return delivery

    def again(self) -> tuple[int, Message] | None:
        """The next of the messages to be sent once more, under its old packet id; before `next`."""
        while self._again:
            packet_id = self._again.popleft()
            if packet_id in self._sent:
                return packet_id, self._sent[packet_id][0]
        return None

    def next(self) -> Message | None:
        """The message to send next; it stays until `note_sent`."""
        return self._waiting[0][0] if self._waiting else None

    def is_free(self, packet_id: int) -> bool:
        """Whether no message is on its way under this packet id."""
        return packet_id not in self._sent

    def note_sent(self, packet_id: int) -> None:
        """The next message is on its way under this packet id."""
        self._sent[packet_id] = self._waiting.popleft()

    def done(self) -> None:
        """The next message was sent, and nobody will answer for it."""
        self._confirm(*self._waiting.popleft())

    @property
    def unconfirmed(self) -> int:
        return len(self._sent)

    def confirm(self, packet_id: int, error: BrokerError | None = None) -> None:
        """The broker has answered for a message that was sent."""
        if (entry := self._sent.pop(packet_id, None)) is not None:
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
        """Wakes who waits for space; called once for many acknowledgements."""
        with self._space:
            self._space.notify_all()

    def close(self) -> None:
        """Every open delivery ends with `BrokerClosedError`."""
        with self._space:
            self._closed = True
            self._space.notify_all()
        for _, delivery in [*self._sent.values(), *self._waiting]:
            delivery.abandon()
        self._waiting.clear()
        self._sent.clear()

    def _full(self) -> bool:
        held = self._put - self._confirmed
        held_bytes = self._put_bytes - self._confirmed_bytes
        return held >= self._max_messages or held_bytes >= self._max_bytes
