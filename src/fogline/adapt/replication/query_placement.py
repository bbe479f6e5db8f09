"""From which node each source of a query is read, and how much of it: the least F, exactly.

F is `fogline.adapt.replication.query`'s. It is solved in two steps: first the nodes with every q =
1, then the q for those nodes. Nothing is lost by that. For the slowest source s, L ≥ lat_s · q_s ≥
lat_s · min q, so F is never below what it is without sampling: sampling cannot lower F, it can
lower L at the same F. The second step therefore looks, among all q that keep the least F, for the
lowest L, and at that L for the highest quality.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from fogline.adapt.replication import solver
from fogline.adapt.replication.query import (
    LEAST_FRACTION,
    QueryPlacement,
    ReplicaQuery,
    Source,
    at_home,
    evaluate,
)
from fogline.common.errors import DataError


def solve(
    query: ReplicaQuery,
    seconds: float = 10.0,
    sampling: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> QueryPlacement:
    """The least F. After `seconds` the best found so far, marked as not proven.

    Raises DataError when the slots do not suffice for any placement.
    """
    if not (math.isfinite(seconds) and seconds >= 0):
        raise DataError(f"invalid time to solve in: {seconds}")
    deadline = clock() + seconds
    best, proven = _place(query, lambda: deadline - clock())
    return _sample(query, best, proven, deadline - clock()) if sampling else _mark(best, proven)


def sample(query: ReplicaQuery, placed: QueryPlacement, seconds: float = 10.0) -> QueryPlacement:
    """The second step alone: the same nodes and F with the lowest L that Q allows."""
    return _sample(query, evaluate(query, placed.nodes), placed.proven, seconds)


def _place(query: ReplicaQuery, left: Callable[[], float]) -> tuple[QueryPlacement, bool]:
    """Tries each possible L, the most promising first, until no other can be better.

    For one L the solver finds the least staleness; without regard to slots that is known at once,
    and gives the lower bound by which the possible L are ordered and left out.
    """
    best = at_home(query) or evaluate(query, _any_placement(query))
    names = [source.name for source in query.sources]
    for bound, level in sorted(_bounds(query)):
        if bound >= best.objective:
            break
        if left() <= 0:
            return best, False
        found = solver.least_stale(
            names, _usable(query, level, best.objective), query.slots, left()
        )
        if found.nodes and (placed := evaluate(query, found.nodes)).objective < best.objective:
            best = placed
        if not found.proven:
            return best, False
    return best, True


def _bounds(query: ReplicaQuery) -> list[tuple[float, float]]:
    """(lower bound of F, L) for every latency that L can take, were there slots for all."""
    reached = [
        (c.latency, c.staleness, i) for i, s in enumerate(query.sources) for c in s.candidates
    ]
    freshest: dict[int, float] = {}
    stalest: list[tuple[float, int]] = []
    found: dict[float, float] = {}
    for latency, staleness, i in sorted(reached):
        if staleness < freshest.get(i, math.inf):
            freshest[i] = staleness
            heapq.heappush(stalest, (-staleness, i))
        while -stalest[0][0] != freshest[stalest[0][1]]:
            heapq.heappop(stalest)
        if len(freshest) == len(query.sources):
            found[latency] = latency * (query.beta - stalest[0][0])
    return [(bound, latency) for latency, bound in found.items()]


def _usable(query: ReplicaQuery, level: float, beaten: float) -> list[solver.Choice]:
    """What may be chosen when L is at most `level` and F is to be less than `beaten`.

    With n sources each needs its n freshest nodes only: the others cannot fill all of those.
    """
    enough = 1 if query.slots is None else len(query.sources)
    found = []
    for source in query.sources:
        near = [
            c
            for c in source.candidates
            if c.latency <= level and level * (query.beta + c.staleness) < beaten
        ]
        if query.slots == 0:
            near = [c for c in near if c.node == source.home]
        near.sort(key=lambda c: (c.staleness, c.node != source.home, c.latency))
        found += [
            solver.Choice(source.name, c.node, c.staleness, c.node != source.home)
            for c in near[:enough]
        ]
    return found


def _any_placement(query: ReplicaQuery) -> dict[str, str]:
    """Some placement that keeps the slots; there is none if this finds none (augmenting paths)."""
    seated: dict[str, list[Source]] = {}
    slots = len(query.sources) if query.slots is None else query.slots

    def seat(source: Source, tried: set[str]) -> bool:
        for node in (c.node for c in source.candidates if c.node not in tried):
            tried.add(node)
            readers = seated.setdefault(node, [])
            if len(readers) < slots:
                readers.append(source)
                return True
            for other in readers:
                if seat(other, tried):
                    readers[readers.index(other)] = source
                    return True
        return False

    remote = [s for s in query.sources if all(c.node != s.home for c in s.candidates)]
    for source in remote:
        if not seat(source, set()):
            hint = "more slots, or more nodes to read it at"
            raise DataError(f"no node has a slot left for source {source.name}", hint)
    placed = {source.name: node for node, readers in seated.items() for source in readers}
    return {source.name: source.home for source in query.sources} | placed


def _sample(query: ReplicaQuery, best: QueryPlacement, proven: bool, left: float) -> QueryPlacement:
    latencies = {s.name: s.at(best.nodes[s.name]).latency for s in query.sources}
    slowest = max(latencies.values())
    if slowest == 0 or query.least_quality == 1:
        return _mark(best, proven)
    speeds = {name: latency / slowest for name, latency in latencies.items()}
    least = solver.least_fraction(list(speeds.values()), LEAST_FRACTION, query.least_quality, left)
    if least is None:
        return _mark(best, False)
    fractions = _find_fractions(speeds, least, query.least_quality)
    return _mark(evaluate(query, best.nodes, fractions), proven)


def _find_fractions(speeds: Mapping[str, float], least: float, quality: float) -> dict[str, float]:
    """The highest q at L = slowest · least; rounding of the solver never takes the mean below Q."""
    step = 1e-12
    while True:
        fractions = {n: min(1.0, least / speed) if speed else 1.0 for n, speed in speeds.items()}
        if math.fsum(fractions.values()) >= quality * len(fractions):
            return fractions
        least, step = min(1.0, least + step), step * 2


def _mark(placed: QueryPlacement, proven: bool) -> QueryPlacement:
    return replace(placed, proven=proven)
