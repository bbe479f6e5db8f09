"""Copies of nodes' values that are desired: what several decisions make together. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.coordinator.nodes.store_reports import Metrics, Report, is_prefix, matches

STABILITY, QUERY, MANUAL, REFUSED = "stability", "query", "manual", "refused"
AUTOMATIC = (STABILITY, QUERY)

CopiesByNode = Mapping[str, Metrics]
"""Of one holder: by origin, all values (None) or some metrics."""


@dataclass(frozen=True, slots=True)
class Decision:
    """That `holder` shall keep values of `origin`; with the reason REFUSED, that it shall not."""

    origin: str
    holder: str
    reason: str
    job: str = ""
    """Of a query: the job that reads them."""
    metrics: Metrics = None
    since: float = 0.0
    detail: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The figures that led to it."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.origin, self.holder, self.reason, self.job

    @property
    def pair(self) -> tuple[str, str]:
        return self.origin, self.holder


def refused_pairs(decisions: Iterable[Decision]) -> frozenset[tuple[str, str]]:
    return frozenset(item.pair for item in decisions if item.reason == REFUSED)


def desired_copies(decisions: Iterable[Decision]) -> dict[str, dict[str, Metrics]]:
    """By holder and origin. All values win over some; some and some are both."""
    found: dict[str, dict[str, Metrics]] = {}
    for item in decisions:
        if item.reason != REFUSED:
            copies = found.setdefault(item.holder, {})
            known = copies.get(item.origin, ())
            copies[item.origin] = unite_metrics(known, item.metrics)
    return found


def unite_metrics(one: Metrics, other: Metrics) -> Metrics:
    """In order, without what a prefix among them covers."""
    if one is None or other is None:
        return None
    names = set(one) | set(other)
    prefixes = [name for name in names if is_prefix(name)]
    return tuple(
        sorted(
            name
            for name in names
            if not any(prefix != name and _covers(prefix, name) for prefix in prefixes)
        )
    )


def covers(one: Metrics, other: Metrics) -> bool:
    """Whether who holds `one` holds all of `other`."""
    return one is None or (
        other is not None and unite_metrics(one, other) == unite_metrics(one, ())
    )


def _covers(prefix: str, name: str) -> bool:
    return matches(prefix, name.removesuffix("%").removesuffix("\\"))


def to_hold(
    desired_here: CopiesByNode, report: Report, may_drop: Mapping[str, bool], holder: str
) -> dict[str, Metrics]:
    """What a holder is to keep, given what it holds.

    `may_drop` says of an origin whether its values are surely elsewhere or surely not desired. Of
    any other (it is offline, or was never seen) a copy is not dropped and not made smaller: it may
    be the only one left.
    """
    copies = {origin: metrics for origin, metrics in desired_here.items() if origin != holder}
    for origin, held in report.copies.items():
        if origin != holder and not may_drop.get(origin, False):
            copies[origin] = unite_metrics(
                copies.get(origin, ()), unite_metrics(held.metrics, held.desired)
            )
    return copies


def holds(report: Report, desired: CopiesByNode) -> bool:
    """Whether a holder has exactly the desired copies, or is making them."""
    held = {origin: _as_set(item.desired) for origin, item in report.copies.items()}
    return held == {origin: _as_set(metrics) for origin, metrics in desired.items()}


def _as_set(metrics: Metrics) -> frozenset[str] | None:
    return None if metrics is None else frozenset(metrics)
