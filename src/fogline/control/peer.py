"""What the coordinator and a node have in common: being asked, and asking."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from fogline.broker import BrokerError, Message, Options, Ticket
from fogline.control import topics
from fogline.control.calls import Body, Calls
from fogline.control.connection import CLOSE_SECONDS, Connection, Hooks
from fogline.control.worker import Operation, Worker


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Identity:
    """Who one is at the control broker."""

    name: str
    """Answers come to the topic of this name."""
    asked: str
    """The topic of the requests to us; empty when there are none."""
    listens: Callable[[], bool] = _always
    """Whether requests are carried out; while not, they are left to others."""


class Peer:
    """A connection, the requests that come and those that go. `start` once, then `close`.

    `hooks.received` gets what is neither a request nor an answer.
    """

    def __init__(
        self,
        url: str,
        options: Options,
        identity: Identity,
        filters: Sequence[str],
        operations: Mapping[str, Operation],
        hooks: Hooks,
    ) -> None:
        self._identity = identity
        self._answers = topics.answers(identity.name)
        self._hooks = hooks
        wanted = [topic for topic in (identity.asked, self._answers, *filters) if topic]
        own = Hooks(self._received, self._connected, hooks.turned)
        self._connection = Connection(url, options, wanted, own)
        self._worker = Worker(operations, self._connection.publish)
        self._calls = Calls(self._answers, self._connection)

    @property
    def connected(self) -> bool:
        return self._connection.connected

    @property
    def problem(self) -> str:
        return self._connection.problem

    @property
    def bad(self) -> int:
        """Messages that were neither requests nor answers and should have been."""
        return self._worker.bad + self._calls.bad

    def start(self) -> None:
        self._worker.start()
        self._connection.start()

    def publish(self, message: Message) -> Ticket:
        return self._connection.publish(message)

    def ask(self, topic: str, op: str, body: Mapping[str, Any], timeout: float) -> Future[Body]:
        return self._calls.send(topic, op, body, timeout)

    def close(self, last_words: Message | None = None) -> None:
        """Ends everything; the last words are confirmed before, if the broker is there."""
        self._calls.close()
        self._worker.stop()
        if last_words is not None and self.connected:
            with contextlib.suppress(BrokerError):
                self.publish(last_words).wait(CLOSE_SECONDS)
        self._connection.close()

    def _connected(self) -> None:
        self._calls.connected()
        self._hooks.connected()

    def _received(self, message: Message) -> None:
        if message.topic == self._answers:
            self._calls.answered(message.payload)
        elif message.topic != self._identity.asked:
            self._hooks.received(message)
        elif self._identity.listens():
            self._worker.take(message.payload)
