"""All decisions about copies: in memory for those who ask often, in the store for good.

Safe for many threads. Every change is one transaction; what is in memory is what the store holds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from fogline.common.errors import NotFoundError
from fogline.coordinator.nodes.replicas import AUTOMATIC, MANUAL, REFUSED, Decision, refused_pairs
from fogline.coordinator.nodes.store_reports import Metrics
from fogline.coordinator.repository import replicas_table
from fogline.coordinator.repository.store import Store


@dataclass(frozen=True, slots=True)
class Settled:
    """What a round has changed."""

    added: tuple[Decision, ...] = ()
    dropped: tuple[Decision, ...] = ()


class Decisions:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._all: tuple[Decision, ...] = ()
        self.reload()

    def all(self) -> tuple[Decision, ...]:
        return self._all

    def reload(self) -> None:
        """After somebody else has changed the store."""
        with self._lock, self._store.look() as connection:
            self._all = replicas_table.read(connection)

    def add_manual(self, origin: str, holder: str, metrics: Metrics, at: float) -> Decision:
        """What a person asks for; it holds until it is taken back."""
        made = Decision(origin, holder, MANUAL, metrics=metrics, since=at)
        with self._lock:
            no_longer = [i for i in self._all if i.pair == made.pair and i.reason == REFUSED]
            self._change([made], no_longer)
        return made

    def refuse(self, origin: str, holder: str, at: float) -> Settled:
        """Removes a manual copy. One decided here is refused from now on, until added manually."""
        with self._lock:
            found = tuple(item for item in self._all if item.pair == (origin, holder))
            if not found:
                raise NotFoundError(f"no copy of {origin!r} is desired at {holder!r}")
            mark = Decision(origin, holder, REFUSED, since=at)
            decided = any(item.reason in AUTOMATIC for item in found)
            self._change([mark] if decided else [], [i for i in found if i.reason != REFUSED])
            return Settled(dropped=tuple(item for item in found if item.reason != REFUSED))

    def settle(self, decided: Iterable[Decision]) -> Settled:
        """Replaces what was decided before by what is decided now, in one step."""
        with self._lock:
            refused = refused_pairs(self._all)
            new = {item.key: item for item in decided if item.pair not in refused}
            old = {item.key: item for item in self._all if item.reason in AUTOMATIC}
            added = [item for key, item in new.items() if old.get(key) != item]
            dropped = [item for key, item in old.items() if key not in new]
            if added or dropped:
                self._change(added, dropped)
        return Settled(tuple(added), tuple(dropped))

    def _change(self, put: list[Decision], drop: list[Decision]) -> None:
        with self._store.change() as connection:
            replicas_table.drop(connection, drop)
            replicas_table.put(connection, put)
            changed = replicas_table.read(connection)
        self._all = changed
