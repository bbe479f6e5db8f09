"""What the threads of a program and the network thread of an MQTT connection share."""

from __future__ import annotations

import contextlib
import socket
from collections import deque

from fogline.broker.inbox import Inbox
from fogline.broker.interface import Batch
from fogline.broker.options import Options
from fogline.broker.outbox import Outbox
from fogline.broker.requests import Subscriptions


class Queues:
    """Everything in both directions, and a way to wake the network thread."""

    def __init__(self, options: Options) -> None:
        self.inbox = Inbox(options.queue_messages, options.queue_bytes)
        self.outbox = Outbox(options.queue_messages, options.queue_bytes)
        self.subscriptions = Subscriptions()
        self.acknowledged: deque[Batch] = deque()
        self._waker, self.woken = socket.socketpair()
        self._waker.setblocking(False)
        self.woken.setblocking(False)

    def wake(self) -> None:
        # When the pipe is full, or closed, there is nobody left to wake.
        with contextlib.suppress(OSError):
            self._waker.send(b"\0")

    def drain_wakes(self) -> None:
        with contextlib.suppress(OSError):
            self.woken.recv(4096)

    def close(self) -> None:
        """Ends all waiting with `BrokerClosedError`."""
        self.inbox.close()
        self.outbox.close()
        self.subscriptions.close()
        self._waker.close()
        self.woken.close()
