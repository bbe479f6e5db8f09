"""One question to all nodes at once. A node that does not answer is replaced by a copy, and named.

No node is waited for longer than its client waits. What a node answers is checked there, so that
here only wrong questions raise. A question that is too much for another node is not answered by it,
which is reported with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from fogline.fabric.errors import NodeRefused, NodeUnreachable
from fogline.fabric.federation.routing import ReplicaRoute, routes
from fogline.fabric.membership.peers import CopyInfo, PeerView
from fogline.fabric.query.query_types import (
    ANSWERED,
    COPY,
    LIMITED,
    REFUSED,
    UNREACHABLE,
    NodeAnswer,
    NodeBackend,
    Selected,
)
from fogline.storage.errors import BadQuery, QueryLimit, StoreError
from fogline.storage.names import Patterns, parse_all

Found = TypeVar("Found")
"""What one node answers with."""
AskNode = Callable[[str, NodeBackend], Found]
"""Asks for the values of a node at whoever answers for it."""


class Around(Protocol):
    """What is around this node. For any thread."""

    def peer_views(self) -> Mapping[str, PeerView]: ...

    def own_copies(self) -> Mapping[str, CopyInfo]: ...

    def answers(self, node: str, route: ReplicaRoute) -> NodeBackend:
        """Raises `NodeUnreachable` when there is nobody to ask."""
        ...

    def note_failure(self, node: str, error: StoreError) -> None:
        """A node that was asked gave no answer."""
        ...


@dataclass(frozen=True, slots=True)
class Gathered(Generic[Found]):
    """Each node's answer, where there is one, and how each took part, by name."""

    tables: Mapping[str, Found]
    nodes: tuple[NodeAnswer, ...]


class Gather:
    """For any thread; `close` when nobody asks any more."""

    def __init__(self, here: str, own: NodeBackend, around: Around, threads: int) -> None:
        self._here = here
        self._own = own
        self._around = around
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="fabric")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def all(
        self,
        ask: AskNode[Found],
        names: Selected | None = None,
        fresh_since: int | None = None,
        start: int | None = None,
        copies: bool = True,
    ) -> Gathered[Found]:
        """Raises what the own store raises, and `BadQuery` of any node. Without `copies` each node
        answers for itself or not at all."""
        names = names or Selected()
        selected = parse_all(names.nodes)
        seen, held = self._around.peer_views(), self._around.own_copies()
        others: dict[str, Future[tuple[NodeAnswer, Found | None]]] = {}
        for node in seen:
            if _is_selected(node, selected):
                asked = names.metrics, fresh_since, start
                ways = routes(node, self._here, seen, held, *asked)
                own = [route for route in ways if copies or route.copy is None]
                others[node] = self._pool.submit(self._one, node, ask, own)
        try:
            found: dict[str, tuple[NodeAnswer, Found | None]] = {}
            if _is_selected(self._here, selected):
                found[self._here] = NodeAnswer(self._here, ANSWERED), ask(self._here, self._own)
            found |= {node: future.result() for node, future in others.items()}
        except StoreError:
            _forget(others)
            raise
        tables = {node: table for node, (_, table) in found.items() if table is not None}
        return Gathered(tables, tuple(found[node][0] for node in sorted(found)))

    def _one(
        self, node: str, ask: AskNode[Found], ways: list[ReplicaRoute]
    ) -> tuple[NodeAnswer, Found | None]:
        """The values of another node, from the first way that leads to an answer."""
        limit = ""
        for route in ways:
            try:
                table = ask(node, self._around.answers(node, route))
            except (NodeUnreachable, NodeRefused) as error:
                if route.at != self._here:
                    self._around.note_failure(route.at, error)
            except QueryLimit as error:
                limit = limit or error.message
            except BadQuery:
                if route.copy is None:
                    raise
            else:
                return self._make_answer(node, route), table
        return NodeAnswer(node, LIMITED, why=limit) if limit else self._missing(node), None

    def _make_answer(self, node: str, route: ReplicaRoute) -> NodeAnswer:
        if route.copy is None:
            now = self._around.peer_views().get(node)
            back = now is not None and now.report.restoring
            return NodeAnswer(node, ANSWERED, why="it takes its values back" if back else "")
        until = route.copy.until
        why = "it is not complete yet" if until is None else ""
        return NodeAnswer(node, COPY, route.at, until, route.partial, why, route.since)

    def _missing(self, node: str) -> NodeAnswer:
        now = self._around.peer_views().get(node)
        state = REFUSED if now is not None and now.state == REFUSED else UNREACHABLE
        return NodeAnswer(node, state, why=(now.why if now else "") or "it does not answer")


def _is_selected(node: str, patterns: Patterns | None) -> bool:
    return patterns is None or patterns.matches(node)


def _forget(others: Mapping[str, Future[Any]]) -> None:
    for future in others.values():
        future.cancel()
