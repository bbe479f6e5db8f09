"""Where to ask for a node's values: the node itself, or copies of them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fogline.fabric.membership.peers import CopyInfo, PeerView
from fogline.storage.names import parse_all
from fogline.storage.values import END_TIME

MetricNames = Sequence[str] | None
_READ_MS = 1.0
_NEARER = 3.0
"""A copy is a little behind, so it has to be so much nearer than its origin to be followed."""


@dataclass(frozen=True, slots=True)
class ReplicaRoute:
    """Values are asked for at a node; `copy` says which of its copies, nothing its own values."""

    at: str
    copy: CopyInfo | None = None
    partial: bool = False
    """The copy does not hold all that is asked for."""
    since: int | None = None
    """Before this time, which is asked for too, some of it is missing."""


def routes(
    node: str,
    here: str,
    seen: Mapping[str, PeerView],
    own_copies: Mapping[str, CopyInfo],
    metrics: MetricNames,
    fresh_since: int | None = None,
    start: int | None = None,
) -> list[ReplicaRoute]:
    """What to try for a node's values, the best first.

    That is the node itself, unless it is known to be unreachable, then the copies: those that hold
    all metrics asked for, from `start` on, before others, the most up to date first. With
    `fresh_since`, copies that are complete up to then come with the node itself, the nearest of all
    first.
    """
    copies = _copies(node, here, seen, own_copies, metrics, start)
    itself = seen[node].can_be_asked
    first = [ReplicaRoute(node)] if itself else []
    if fresh_since is not None:
        fresh = [r for r in copies if not r.partial and _until(r) >= fresh_since]
        first = sorted([*first, *fresh], key=lambda route: _distance(route, here, seen))
    return [*first, *(route for route in copies if route not in first)]


def to_follow(
    node: str,
    here: str,
    seen: Mapping[str, PeerView],
    own_copies: Mapping[str, CopyInfo],
    metrics: MetricNames,
    fresh_since: int,
) -> ReplicaRoute | None:
    """Where to read a node's values as they come; None when nobody has them all.

    That is a copy that keeps up, if it is here or much nearer than the node: values cross the way
    once, for the copy and for who follows. Else it is the node itself, and for one that is
    unreachable the copy that knows most; one that has evicted what comes next says so itself.
    """
    held = _copies(node, here, seen, own_copies, metrics, END_TIME)
    copies = [route for route in held if not route.partial]
    itself, report = ReplicaRoute(node), seen[node].report
    if not (seen[node].can_be_asked and report.id):
        return copies[0] if copies else None
    far = _distance(itself, here, seen)
    near = [
        route
        for route in copies
        if route.copy is not None and route.copy.id == report.id and _until(route) >= fresh_since
        if route.copy.since is None
        if _NEARER * (_distance(route, here, seen) + _READ_MS) < far + _READ_MS
    ]
    return min(near, key=lambda route: _distance(route, here, seen), default=itself)


def covers(held: MetricNames, asked: MetricNames) -> bool:
    """Whether everything that is asked for is among what is held; prefixes as in questions."""
    known, requested = parse_all(held), parse_all(asked)
    if known is None or requested is None:
        return known is None
    exact = frozenset(known.exact)
    return all(
        name in exact or name.startswith(known.prefixes) for name in requested.exact
    ) and all(prefix.startswith(known.prefixes) for prefix in requested.prefixes)


def _copies(
    node: str,
    here: str,
    seen: Mapping[str, PeerView],
    own_copies: Mapping[str, CopyInfo],
    metrics: MetricNames,
    start: int | None,
) -> list[ReplicaRoute]:
    held = {
        at: other.report.copies[node]
        for at, other in seen.items()
        if at != node and other.can_be_asked and node in other.report.copies
    }
    if node in own_copies:
        held[here] = own_copies[node]
    found = [_route(at, copy, metrics, start) for at, copy in held.items()]
    return sorted(found, key=lambda r: (r.partial, -_until(r), _distance(r, here, seen), r.at))


def _route(at: str, copy: CopyInfo, metrics: MetricNames, start: int | None) -> ReplicaRoute:
    early = copy.since is not None and (start is None or start < copy.since)
    partial = early or not covers(copy.metrics, metrics)
    return ReplicaRoute(at, copy, partial, copy.since if early else None)


def _until(route: ReplicaRoute) -> int:
    until = route.copy.until if route.copy else None
    return -1 if until is None else until


def _distance(route: ReplicaRoute, here: str, seen: Mapping[str, PeerView]) -> float:
    """Milliseconds; an unknown way is longer than every known one, a copy is no nearer than its
    origin where both are as near."""
    if route.at == here:
        return -1.0
    latency = seen[route.at].latency_ms
    return float("inf") if latency is None else latency
