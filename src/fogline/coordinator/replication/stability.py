"""One round of decisions by stability: `fogline.adapt.replication.stability` over what the nodes
reported. No I/O.

A copy that was decided stays: scores move all the time, and data that was sent once is best kept.
It goes when its origin or its holder is forgotten, or when a person refuses it.

Where no holder has room for all values of an origin, as many of its metrics are copied as fit,
those first that no such copy holds yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fogline.adapt.replication.stability import (
    NodeHistory,
    Placement,
    Replica,
    Replicas,
    RoundLimits,
    choose,
    instability,
    stability,
)
from fogline.adapt.replication.uncopied import find_uncopied
from fogline.coordinator.nodes.replicas import (
    STABILITY,
    Decision,
    desired_copies,
    refused_pairs,
    unite_metrics,
)
from fogline.coordinator.nodes.store_reports import Metrics, Report, as_pattern

MOST_NAMED = 1000
"""Metrics that a copy of a part gets at a time."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a round knows."""

    now: float
    reports: Mapping[str, Report] = field(default_factory=dict)
    """What each node with a store reported last."""
    here: frozenset[str] = frozenset()
    """Who reported in this round: the others neither give nor take."""
    histories: Mapping[str, NodeHistory] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    links: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Milliseconds between two nodes, as one of them measured."""
    mbits: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Mbit/s between two nodes, where one of them measured it."""

    def copy_size(self, origin: str, holder: str, metrics: Metrics) -> int:
        """What a copy takes at its holder, or will take once it is complete.

        A copy of some metrics is always less than the whole: it can still be completed.
        """
        source, target = self.reports.get(origin), self.reports.get(holder)
        held = target.copies.get(origin) if target else None
        size = max(source.size_of(metrics) if source else 0, held.bytes if held else 0)
        return size if metrics is None or source is None else min(size, max(source.bytes - 1, 0))

    def copies(self) -> tuple[Replica, ...]:
        """All desired copies, for whatever reason."""
        stable = {item.pair for item in self.decisions if item.reason == STABILITY}
        return tuple(
            Replica(
                origin,
                holder,
                self.copy_size(origin, holder, metrics),
                metrics is None or (origin, holder) in stable,
            )
            for holder, copies in desired_copies(self.decisions).items()
            for origin, metrics in copies.items()
        )

    def room(self, capacity: int) -> dict[str, int]:
        """Bytes of copies that each node can still take."""
        left = dict.fromkeys(self.reports, capacity)
        for copy in self.copies():
            if copy.destination in left:
                left[copy.destination] -= copy.size
        return left


def by_stability(situation: Situation, limits: RoundLimits) -> tuple[Decision, ...]:
    """The copies decided before, and up to N new ones."""
    known = {item.pair: item for item in situation.decisions if item.reason == STABILITY}
    histories, replicas = _histories(situation), _replicas(situation)
    for placed in choose(histories, replicas, limits, situation.now):
        metrics = None if placed.whole else _part(situation, placed)
        known[placed.origin, placed.destination] = Decision(
            placed.origin,
            placed.destination,
            STABILITY,
            metrics=metrics,
            since=situation.now,
            detail={
                "instability": instability(histories[placed.origin], situation.now),
                "stability": stability(histories[placed.destination], situation.now),
                "bytes": placed.size,
                "completes": placed.completes,
            },
        )
    return tuple(known.values())


def without_copy(situation: Situation, limits: RoundLimits) -> dict[str, str]:
    """Why nodes that have failed have no copy of all their values, after a round."""
    return find_uncopied(_histories(situation), _replicas(situation), limits, situation.now)


def _histories(situation: Situation) -> dict[str, NodeHistory]:
    new = NodeHistory(situation.now)
    return {name: situation.histories.get(name, new) for name in situation.reports}


def _replicas(situation: Situation) -> Replicas:
    chosen: dict[str, float] = {}
    for item in situation.decisions:
        if item.reason == STABILITY:
            chosen[item.origin] = max(chosen.get(item.origin, item.since), item.since)
    pieces = {name: _uncovered_sizes(situation, name) for name in situation.reports}
    return Replicas(
        {name: report.bytes for name, report in situation.reports.items()},
        situation.copies(),
        chosen,
        frozenset(situation.reports.keys() - situation.here),
        refused_pairs(situation.decisions),
        {name: min(sizes.values()) for name, sizes in pieces.items() if sizes},
    )


def _uncovered_sizes(situation: Situation, origin: str) -> dict[str, int]:
    """The sizes of a node's metrics that no copy by stability holds."""
    report = situation.reports[origin]
    sizes = {name: size for name, size in report.metrics.items() if size > 0}
    for item in situation.decisions:
        if item.reason == STABILITY and item.origin == origin:
            held = set(sizes) if item.metrics is None else report.match_metrics(item.metrics)
            sizes = {name: size for name, size in sizes.items() if name not in held}
    return sizes


def _part(situation: Situation, placed: Placement) -> Metrics:
    """What the destination is to hold of the origin: what it does by now, and as many more
    metrics as fit, the smallest first."""
    room, names = placed.size, []
    uncovered = sorted(
        _uncovered_sizes(situation, placed.origin).items(), key=lambda item: item[::-1]
    )
    for name, size in uncovered[:MOST_NAMED]:
        if size > room:
            break
        room -= size
        names.append(as_pattern(name))
    here = desired_copies(item for item in situation.decisions if item.reason == STABILITY)
    return unite_metrics(here.get(placed.destination, {}).get(placed.origin, ()), tuple(names))
