"""What a broker has delivered and nobody has received yet.

One thread adds, any thread takes. Adding is two appends without a lock, because it happens for
every message; the byte counts have one writer each.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from fogline.broker.errors import BrokerClosedError
from fogline.broker.interface import Batch, Message


class Inbox:
    """Messages in order, how many bytes they hold, and the connection their packet ids belong
    to."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._messages: deque[Message] = deque()
        self._packet_ids: deque[int] = deque()
        self._added = 0
        self._taken = 0
        self._connection = 0
        self._closed = False
        self._lock = threading.Lock()
        self._arrived = threading.Event()

    @property
    def connection(self) -> int:
        return self._connection

    @property
    def full(self) -> bool:
        held = self._added - self._taken
        return len(self._messages) >= self._max_messages or held >= self._max_bytes

    def add(self, message: Message, packet_id: int) -> None:
        """`packet_id` is how the message is acknowledged, 0 when it is not."""
        self._added += len(message.payload)
        # In this order: who sees the message finds its packet id.
        self._packet_ids.append(packet_id)
        self._messages.append(message)

    def announce(self) -> None:
        """Wakes who is waiting; called once for many messages."""
        if self._messages:
            self._arrived.set()

    def take(self, most: int, timeout: float) -> Batch:
        """At most `most` messages as soon as there is one; raises when the inbox is closed."""
        deadline = time.monotonic() + timeout
        while True:
            self._arrived.clear()
            if self._closed:
                raise BrokerClosedError("the broker connection is closed")
            with self._lock:
                if self._messages:
                    return self._pop(most)
            left = deadline - time.monotonic()
            if left <= 0 or not self._arrived.wait(left):
                return Batch([], (), self._connection)

    def new_connection(self) -> None:
        """Numbers start anew, those of messages that wait here count no more.

        The messages stay: the broker should send them again, but one that has crashed may not.
        """
        with self._lock:
            self._connection += 1
            self._packet_ids = deque([0] * len(self._messages))

    def close(self) -> None:
        self._closed = True
        self._arrived.set()

    def _pop(self, most: int) -> Batch:
        count = min(most, len(self._messages))
        messages = [self._messages.popleft() for _ in range(count)]
        packet_ids = [self._packet_ids.popleft() for _ in range(count)]
        self._taken += sum([len(message.payload) for message in messages])
        return Batch(
            messages, [packet_id for packet_id in packet_ids if packet_id], self._connection
        )
