"""What the threads of a program and the network thread of an MQTT connection share.

The queues live as long as the caller's side; a waker as long as the thread it wakes.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque

from fogline.broker.interface import Batch
from fogline.broker.mqtt.inbox import Inbox
from fogline.broker.mqtt.requests import Subscriptions
from fogline.broker.options import BrokerOptions
from fogline.broker.outbox import Outbox


class Queues:
    """Everything in both directions, and whom to wake for it."""

    def __init__(self, options: BrokerOptions) -> None:
        self.inbox = Inbox(options.queue_messages, options.queue_bytes)
        self.outbox = Outbox(options.queue_messages, options.queue_bytes)
        self.subscriptions = Subscriptions()
        self.acknowledged: deque[Batch] = deque()
        self.waker: Waker | None = None
        """Of the network thread, once there is one."""

    def wake(self) -> None:
        if self.waker is not None:
            self.waker.wake()

    def close(self) -> None:
        """Ends all waiting with `BrokerClosedError`."""
        self.inbox.close()
        self.outbox.close()
        self.subscriptions.close()


class Waker:
    """Wakes the thread that polls it, which also closes it: nobody else knows when it is done."""

    def __init__(self) -> None:
        self._waking, self._woken = socket.socketpair()
        self._waking.setblocking(False)
        self._woken.setblocking(False)

    def wake(self) -> None:
        """From any thread."""
        # When the pipe is full, or closed, there is nobody left to wake.
        with contextlib.suppress(OSError):
            self._waking.send(b"\0")

    def fileno(self) -> int:
        return self._woken.fileno()

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)

    def close(self) -> None:
        self._waking.close()
        self._woken.close()
