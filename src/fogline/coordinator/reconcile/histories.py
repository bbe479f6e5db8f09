"""The histories of all nodes: watched by the control loop, kept in the store. For many threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fogline.adapt.replication.stability import NodeHistory, instability, stability
from fogline.common.errors import NotFoundError
from fogline.coordinator.nodes.node_history import (
    FAIL,
    FORGOTTEN,
    RESTART,
    KnownNode,
    NodeChange,
    Watch,
)
from fogline.coordinator.repository import history_table
from fogline.coordinator.repository.store import Store
from fogline.model.nodes import NodeView

MOST_SHOWN = 1_000


class Histories:
    """What could not be written down is written with the next look."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        with store.look() as connection:
            self._watch = Watch(history_table.read_known(connection))
            self._counts = history_table.read_counts(connection)
        self._unwritten: list[NodeChange] = []

    def look(self, views: Mapping[str, NodeView], connected: bool, now: float) -> None:
        """Raises RepositoryError when it cannot be written down."""
        with self._lock:
            self._unwritten += self._watch.look(views, connected, now)
            if not self._unwritten:
                return
            with self._store.change() as connection:
                history_table.write(connection, self._unwritten)
            for change in self._unwritten:
                counts = self._counts.setdefault(change.node, Counter())
                counts.update(item.kind for item in change.happened)
            self._unwritten = []

    def forget(self, name: str) -> None:
        """The node is already forgotten in the store."""
        with self._lock:
            self._watch.forget(name)
            self._counts.pop(name, None)
            self._unwritten = [change for change in self._unwritten if change.node != name]

    def forgotten_nodes(self) -> frozenset[str]:
        with self._lock:
            known = self._watch.known_nodes.items()
            return frozenset(name for name, item in known if item.state == FORGOTTEN)

    def counts(self, name: str) -> dict[str, int]:
        with self._lock:
            found = self._counts.get(name, Counter())
            return {"failures": found[FAIL], "restarts": found[RESTART]}

    def all(self) -> dict[str, NodeHistory]:
        with self._store.look() as connection:
            return history_table.read_histories(connection)

    def describe(self, name: str, now: float) -> dict[str, Any]:
        """One node's history, as REST shows it."""
        with self._store.look() as connection:
            history = history_table.read_histories(connection, name).get(name)
            events = history_table.read_events(connection, name, MOST_SHOWN)
        known: KnownNode | None = self._watch.known_nodes.get(name)
        if history is None or known is None:
            raise NotFoundError(f"nothing is known of a node {name!r}")
        return {
            "name": name,
            "first": history.start,
            "state": known.state,
            **self.counts(name),
            **scores(history, now),
            "events": events,
        }


def scores(history: NodeHistory, now: float) -> dict[str, float]:
    """U and S of docs/replicas.md."""
    return {"instability": instability(history, now), "stability": stability(history, now)}
