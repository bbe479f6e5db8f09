"""What the coordinator and its nodes have in common: being asked, and asking."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from fogline.broker import BrokerError, BrokerOptions, DeliveryFuture, Message
from fogline.control import topics
from fogline.control.calls import Body, Calls, OutgoingRequest
from fogline.control.connection import CLOSE_SECONDS, ControlConnection, Hooks
from fogline.control.worker import Operations, Worker


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ServedTopic:
    """What may be asked on one topic."""

    operations: Operations
    listens: Callable[[], bool] = _always
    """Whether requests are carried out; while not, they are left to others."""


class Peer:
    """A connection, the requests that come and those that go. `start` once, then `close`.

    `name` is where answers come to, `asked` what comes on which topic. `hooks.received`
    gets what is neither a request nor an answer.
    """

    def __init__(
        self,
        url: str,
        options: BrokerOptions,
        name: str,
        asked: Mapping[str, ServedTopic],
        filters: Sequence[str],
        hooks: Hooks,
        settle: Callable[[], None] | None = None,
    ) -> None:
        self._asked = dict(asked)
        self._by_node = {topics.requested_node(topic): found for topic, found in asked.items()}
        self._answers = topics.answers(name)
        self._hooks = hooks
        own = Hooks(self._handle_message, self._connected, hooks.turned)
        self._connection = ControlConnection(url, options, [*asked, self._answers, *filters], own)
        self._worker = Worker(self._connection.publish, settle)
        self._calls = Calls(self._answers, self._connection)

    @property
    def connected(self) -> bool:
        return self._connection.connected

    @property
    def problem(self) -> str:
        return self._connection.problem

    @property
    def bad_messages(self) -> int:
        """Messages that were neither requests nor answers and should have been."""
        return self._worker.bad + self._calls.bad

    def start(self) -> None:
        self._worker.start()
        self._connection.start()

    def publish(self, *messages: Message) -> DeliveryFuture:
        return self._connection.publish(*messages)

    def ask(self, topic: str, op: str, body: Mapping[str, Any], timeout: float) -> Future[Body]:
        return self._calls.send(topic, op, body, timeout)

    def ask_all(self, asks: Iterable[OutgoingRequest], timeout: float) -> list[Future[Body]]:
        return self._calls.send_all(asks, timeout)

    def close(self, last_words: Sequence[Message] = ()) -> None:
        """Ends everything; the last words are confirmed before, if the broker is there."""
        self._calls.close()
        self._worker.stop()
        if self.connected:
            with contextlib.suppress(BrokerError):
                self.publish(*last_words).wait(CLOSE_SECONDS)
        self._connection.close()

    def _connected(self) -> None:
        self._calls.connected()
        self._hooks.connected()

    def _handle_message(self, message: Message) -> None:
        if message.topic == self._answers:
            self._calls.take_answers(message.payload)
            return
        asked = self._asked.get(message.topic)
        if asked is None:
            self._hooks.received(message)
        else:
            self._worker.take(message.payload, partial(self._operations, asked))

    def _operations(self, asked: ServedTopic, node: str) -> Operations | None:
        """Of whom a request is for: the topic's own, or a node that it names."""
        found = self._by_node.get(node) if node else asked
        return found.operations if found is not None and found.listens() else None
