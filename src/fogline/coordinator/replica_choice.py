"""One round of decisions by stability: `fogline.adapt.stability` over what the nodes told. No I/O.

A copy that was decided stays: scores move all the time, and data that was sent once is best kept.
It goes when its origin or its holder is forgotten, or when a person refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fogline.adapt.stability import (
    Limits,
    NodeHistory,
    Replica,
    Replicas,
    choose,
    instability,
    stability,
)
from fogline.coordinator.replicas import STABILITY, Decision, refused, wanted
from fogline.coordinator.store_reports import Metrics, Report


@dataclass(frozen=True, slots=True)
class Situation:
    """What a round knows."""

    now: float
    reports: Mapping[str, Report] = field(default_factory=dict)
    """What each node with a store told last."""
    here: frozenset[str] = frozenset()
    """Who told it in this round: the others neither give nor take."""
    histories: Mapping[str, NodeHistory] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    links: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Milliseconds between two nodes, as one of them measured."""

    def copy_size(self, origin: str, holder: str, metrics: Metrics) -> int:
        """What a copy takes at its holder, or will take once it is complete.

        A copy of some metrics is always less than the whole: it can still be completed.
        """
        source, target = self.reports.get(origin), self.reports.get(holder)
        held = target.copies.get(origin) if target else None
        size = max(source.size_of(metrics) if source else 0, held.bytes if held else 0)
        return size if metrics is None or source is None else min(size, max(source.bytes - 1, 0))

    def copies(self) -> tuple[Replica, ...]:
        """All that are wanted, whoever wants them."""
        stable = {item.pair for item in self.decisions if item.reason == STABILITY}
        return tuple(
            Replica(
                origin,
                holder,
                self.copy_size(origin, holder, metrics),
                metrics is None or (origin, holder) in stable,
            )
            for holder, copies in wanted(self.decisions).items()
            for origin, metrics in copies.items()
        )

    def room(self, capacity: int) -> dict[str, int]:
        """Bytes of copies that each node can still take."""
        left = dict.fromkeys(self.reports, capacity)
        for copy in self.copies():
            if copy.destination in left:
                left[copy.destination] -= copy.size
        return left


def by_stability(situation: Situation, limits: Limits) -> tuple[Decision, ...]:
    """The copies decided before, and up to N new ones."""
    known = tuple(item for item in situation.decisions if item.reason == STABILITY)
    histories = {
        name: situation.histories.get(name, NodeHistory(situation.now))
        for name in situation.reports
    }
    chosen: dict[str, float] = {}
    for item in known:
        chosen[item.origin] = max(chosen.get(item.origin, item.since), item.since)
    replicas = Replicas(
        {name: report.bytes for name, report in situation.reports.items()},
        situation.copies(),
        chosen,
        frozenset(situation.reports.keys() - situation.here),
        refused(situation.decisions),
    )
    found = choose(histories, replicas, limits, situation.now)
    new = {
        (placed.origin, placed.destination): Decision(
            placed.origin,
            placed.destination,
            STABILITY,
            since=situation.now,
            detail={
                "instability": instability(histories[placed.origin], situation.now),
                "stability": stability(histories[placed.destination], situation.now),
                "bytes": placed.size,
                "completes": placed.completes,
            },
        )
        for placed in found
    }
    return (*(item for item in known if item.pair not in new), *new.values())
