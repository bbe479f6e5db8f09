"""How far a copy is behind its origin: D of the placement for queries, as measured. Pure.

A holder asks its origin every `EXCHANGE_SECONDS` for what has arisen since. With a way of l seconds
that carries w bytes a second, and r bytes a second arising, what comes is D seconds of values, and

    D = EXCHANGE_SECONDS + l + D · r / w        so D = (EXCHANGE_SECONDS + l) / (1 - r / w)

Where r is not below w a copy never catches up. Where a way was not measured, it counts as having no
length and any width.
"""

from __future__ import annotations

from collections.abc import Mapping

from fogline.coordinator.nodes.store_reports import Metrics
from fogline.coordinator.replication.stability import Situation

EXCHANGE_SECONDS = 2.0
"""Nodes ask each other so often."""
_BYTES_PER_MBIT = 1e6 / 8
_SHORTEST, _LONGEST = 3600.0, 168 * 3600.0
"""What a store holds is taken to have arisen within that, in seconds."""


def behind(situation: Situation, origin: str, holder: str, metrics: Metrics) -> float | None:
    """Seconds; None where a copy would never catch up."""
    latency = _measured_link(situation.links, origin, holder) or 0.0
    mbits = _measured_link(situation.mbits, origin, holder)
    load = 0.0 if not mbits else _write_rate(situation, origin, metrics) / (mbits * _BYTES_PER_MBIT)
    return (EXCHANGE_SECONDS + latency / 1000) / (1 - load) if load < 1 else None


def _write_rate(situation: Situation, origin: str, metrics: Metrics) -> float:
    """Bytes a second, on the average of what the origin stores."""
    known = situation.histories.get(origin)
    age = situation.now - known.start if known else _SHORTEST
    size = situation.reports[origin].size_of(metrics)
    return size / min(max(age, _SHORTEST), _LONGEST)


def _measured_link(ways: Mapping[tuple[str, str], float], one: str, other: str) -> float | None:
    """Who holds measures best, since it is who asks; what cannot be counts as not measured."""
    measured = ways.get((other, one), ways.get((one, other)))
    return measured if measured is not None and 0 <= measured < 1e9 else None
