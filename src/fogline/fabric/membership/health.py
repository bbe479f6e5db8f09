"""How the other nodes are, and what of it becomes values of the own store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fogline.fabric.errors import NodeRefused
from fogline.fabric.membership.peers import PeerReport, PeerView
from fogline.fabric.query.query_types import ANSWERED, REFUSED, UNREACHABLE
from fogline.storage.errors import StoreError
from fogline.storage.values import Value

REACHABLE, LATENCY, VIA = "fabric.reachable", "fabric.latency_ms", "fabric.via"
_MINUTE_US = 60_000_000
_TEN_SECONDS_US = 10_000_000


class Health:
    """For any thread. `nodes` gives the address of every other node that is known now."""

    def __init__(self, nodes: Callable[[], Mapping[str, str]]) -> None:
        self._nodes = nodes
        self._guard = threading.Lock()
        self._seen: dict[str, PeerView] = {}

    def all(self) -> dict[str, PeerView]:
        """Every other node. One whose address has changed was not looked at yet."""
        nodes = self._nodes()
        with self._guard:
            self._seen = {name: self._at(name, address) for name, address in nodes.items()}
            return dict(self._seen)

    def get(self, node: str) -> PeerView | None:
        return self.all().get(node)

    def note_answer(self, node: str, address: str, report: PeerReport, latency_ms: float) -> None:
        with self._guard:
            self._seen[node] = self._at(node, address).with_answer(report, latency_ms)

    def note_failure(self, node: str, address: str, error: StoreError) -> None:
        """It gave no answer; it counts as unreachable, or as refusing, until it answers again."""
        state = REFUSED if isinstance(error, NodeRefused) else UNREACHABLE
        with self._guard:
            self._seen[node] = self._at(node, address).with_failure(error.message, state)

    def _at(self, node: str, address: str) -> PeerView:
        known = self._seen.get(node)
        if known is None:
            return PeerView(address)
        # What it reported of its copies still holds when only its address is another.
        return known if known.address == address else PeerView(address, report=known.report)


@dataclass(frozen=True, slots=True)
class _Noted:
    reachable: bool
    via: str
    at: int
    latency_at: int


class HealthValues:
    """Which values a look at the nodes is worth: no I/O, for one thread."""

    def __init__(self) -> None:
        self._noted: dict[str, _Noted] = {}

    def of(self, seen: Mapping[str, PeerView], now: int) -> list[Value]:
        """Values of this moment. A node that was never looked at has none."""
        values = []
        for node, one in seen.items():
            values += self._of(node, one, now)
        self._noted = {node: noted for node, noted in self._noted.items() if node in seen}
        return values

    def _of(self, node: str, seen: PeerView, now: int) -> list[Value]:
        if seen.state not in (ANSWERED, UNREACHABLE, REFUSED):
            return []
        reachable = seen.state == ANSWERED
        before = self._noted.get(node)
        values = []
        at, latency_at = (before.at, before.latency_at) if before else (0, 0)
        via = before.via if before else ""
        if before is None or before.reachable != reachable or _due(at, now, _MINUTE_US):
            values.append(Value(REACHABLE, node, now, float(reachable)))
            at = now
        if reachable and seen.latency_ms is not None and _due(latency_at, now, _TEN_SECONDS_US):
            values.append(Value(LATENCY, node, now, seen.latency_ms))
            latency_at = now
        if reachable and via != seen.address:
            values.append(Value(VIA, node, now, seen.address))
            via = seen.address
        self._noted[node] = _Noted(reachable, via, at, latency_at)
        return values


def _due(last: int, now: int, every: int) -> bool:
    """Also when the clock was set back."""
    return abs(now - last) >= every
