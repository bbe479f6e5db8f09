"""The coordinator's side of the control broker: who is there, and asking nodes to do things."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Self

from fogline.broker import BrokerError, Message
from fogline.common.errors import DataError
from fogline.control import topics
from fogline.control.calls import Body, OutgoingRequest
from fogline.control.connection import ControlOptions, Hooks
from fogline.control.envelope import NodePart
from fogline.control.errors import ControlError
from fogline.control.groups import Outcome, outcomes_of
from fogline.control.peer import Peer, ServedTopic
from fogline.control.registry import NodeRegistry
from fogline.control.rivals import new_instance
from fogline.control.worker import OperationHandler
from fogline.model.nodes import NodeView, is_name

OnOutcomes = Callable[[Mapping[str, Outcome]], None]
"""Gets what became of a request at some nodes."""
MOST_NODES = 250
"""That are asked with one request."""


class ControlClient:
    """`start` once, then everything else from any thread, then `close`.

    `on_change` is called by the connection's thread when `views` or `connected` would say
    something new, silence included; it must not wait for anything. Callbacks of futures run in
    that thread too. Requests to the coordinator are carried out one after the other by a thread
    of their own; without operations they are left to whoever has some.

    The constructor raises `UsageError` when the address is none.
    """

    def __init__(
        self,
        url: str,
        operations: Mapping[str, OperationHandler],
        on_change: Callable[[], None],
        name: str,
        options: ControlOptions | None = None,
    ) -> None:
        options = options or ControlOptions()
        self._on_change = on_change
        self._registry = NodeRegistry()
        self._lock = threading.Lock()
        self._seen: tuple[bool, dict[str, str]] = (False, {})
        self._news = False
        self._peer = Peer(
            url,
            options.for_broker(f"fog{new_instance()}"),
            name,
            {topics.COORDINATOR: ServedTopic(operations)} if operations else {},
            [topics.ANNOUNCEMENTS, topics.STATUSES],
            Hooks(self._handle_message, turned=self._report_changes),
        )

    @property
    def connected(self) -> bool:
        return self._peer.connected

    @property
    def problem(self) -> str:
        """Why there is no connection; empty while there is one."""
        return self._peer.problem

    @property
    def bad_messages(self) -> int:
        """Messages that could not be read, of any kind."""
        return self._registry.bad + self._peer.bad_messages

    def start(self) -> None:
        """Returns at once; the connection is made in the background, for as long as it takes."""
        self._peer.start()

    def views(self) -> Mapping[str, NodeView]:
        """All nodes ever heard of and not forgotten, by name."""
        with self._lock:
            return self._registry.views(time.time())

    def send(self, node: str, op: str, body: Mapping[str, Any], timeout: float) -> Future[Body]:
        """Asks a node. The future gets the answer's body, or a `ControlError`; it always ends.

        Does not wait and raises nothing. While the broker is unreachable the request waits for it.
        One that is sent while the node is offline is lost: it fails at its deadline.
        """
        future: Future[Body] = Future()
        future.set_running_or_notify_cancel()

        def on_outcomes(outcomes: Mapping[str, Outcome]) -> None:
            for outcome in outcomes.values():
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

        self.send_each(op, body, {node: {}}, timeout, on_outcomes)
        return future

    def send_each(
        self,
        op: str,
        body: NodePart,
        parts: Mapping[str, NodePart],
        timeout: float,
        on_outcomes: OnOutcomes,
    ) -> None:
        """Like `send` to each of these nodes, with the body and its own part, but on their way all
        at once, and those that share a topic with one request. `on_outcomes` is called by any
        thread, as often as it takes to report on every node once."""
        if wrong := [node for node in parts if not is_name(node)]:
            on_outcomes({node: ControlError(f"invalid node name {node[:100]!r}") for node in wrong})
            parts = {node: part for node, part in parts.items() if is_name(node)}
        shared: dict[str, list[str]] = {}
        with self._lock:
            for node in parts:
                shared.setdefault(self._registry.through(node), []).append(node)
        alone = shared.pop("", [])
        asks = [OutgoingRequest(topics.do(node), op, {**body, **parts[node]}) for node in alone]
        for through, nodes in shared.items():
            for some in _in_pieces(nodes):
                ours = {node: parts[node] for node in some}
                asks.append(OutgoingRequest(topics.do(through), op, body, ours))
        sent = iter(self._peer.ask_all(asks, timeout))
        for node in alone:
            next(sent).add_done_callback(partial(_report_one, node, on_outcomes))
        for ask, future in zip(asks[len(alone) :], sent, strict=True):
            future.add_done_callback(partial(_report_all, ask.nodes, on_outcomes))

    def forget(self, name: str) -> None:
        """Clears what the broker keeps of a node. One that is there announces itself again.

        Raises `ControlError` when it cannot be published.
        """
        with self._lock:
            self._registry.forget(name, time.time())
        try:
            for topic in (topics.announcement(name), topics.status(name)):
                self._peer.publish(Message(topic, b"", retain=True))
        except (BrokerError, DataError) as error:
            raise ControlError(f"cannot forget {name}: {error.message}", error.hint) from error

    def close(self) -> None:
        """Ends; every open future fails with a `ControlError`."""
        self._peer.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ── in the connection's thread ───────────────────────────────────────────────────────────────

    def _handle_message(self, message: Message) -> None:
        node, kind = topics.parse_topic(message.topic)
        note = {
            topics.ANNOUNCEMENT: self._registry.note_announcement,
            topics.STATUS: self._registry.note_status,
        }
        if kind in note:
            with self._lock:
                self._news |= note[kind](node, message.payload, time.time())

    def _report_changes(self) -> None:
        with self._lock:
            seen = (self.connected, self._registry.states(time.time()))
        news = self._news or seen != self._seen
        self._news, self._seen = False, seen
        if news:
            self._on_change()


def _in_pieces(nodes: list[str]) -> Iterator[list[str]]:
    return (nodes[begin : begin + MOST_NODES] for begin in range(0, len(nodes), MOST_NODES))


def _report_one(node: str, on_outcomes: OnOutcomes, sent: Future[Body]) -> None:
    on_outcomes({node: sent.exception() or sent.result()})


def _report_all(nodes: Iterable[str], on_outcomes: OnOutcomes, sent: Future[Body]) -> None:
    error = sent.exception()
    on_outcomes(outcomes_of(sent.result(), nodes) if error is None else dict.fromkeys(nodes, error))
