"""Many random queries: how often reading at replicas pays, and by how much.

One run draws nodes with uniform latencies between them, some of them slow by a Zipf factor, a node
that computes, and sources at other nodes, each of which may have replicas at some nodes. Reading at
home, without replicas, is the baseline; what is reported is how far the placement stays below it.
Seeded: the same arguments give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from fogline.adapt.replication.query import Candidate, QueryPlacement, ReplicaQuery, Source, at_home
from fogline.adapt.replication.query_placement import sample, solve
from fogline.common.errors import DataError


@dataclass(frozen=True, slots=True)
class Experiment:
    """The settings of one experiment."""

    nodes: int
    replicas: int
    """At how many other nodes a source can have replicas at most; each has 0 to so many."""
    sources: int = 10
    bottlenecks: bool = True
    zipf: float = 2.5
    """The exponent of the factor by which nodes are slow: k with probability ~ 1 / k^zipf."""
    anywhere: bool = False
    """The other reading of `replicas`: replicas may be at all nodes, so many at each."""

    def __post_init__(self) -> None:
        if not 0 < self.sources < self.nodes or not 0 <= self.replicas < self.nodes:
            raise DataError("a case needs more nodes than it has sources, and than replicas")
        if not self.zipf > 1:
            raise DataError("the Zipf exponent must be over 1")


@dataclass(frozen=True, slots=True)
class Gain:
    """One run in which replicas paid: reductions against the baseline, in percent."""

    latency: float
    objective: float
    latency_sampled: float
    """Both sides sampled as far as Q allows without a higher F."""
    degraded: float
    """The largest quality reduction of a source, in percent."""
    degraded_home: float
    staleness_ratio: float
    """Staleness / L."""


@dataclass(frozen=True, slots=True)
class Gains:
    """All runs of a case."""

    case: Experiment
    runs: int
    found: tuple[Gain, ...]
    proven: bool

    @property
    def share(self) -> float:
        """In percent of the runs: replicas paid."""
        return 100 * len(self.found) / self.runs

    def mean(self, field: str) -> float:
        return fmean(self.values(field) or [0.0])

    def median(self, field: str) -> float:
        return median(self.values(field) or [0.0])

    def values(self, field: str) -> Sequence[float]:
        return [getattr(gain, field) for gain in self.found]


def simulate(case: Experiment, runs: int, seed: int, seconds: float = 10.0) -> Gains:
    """Places `runs` random queries; `seconds` bounds each of them."""
    random = np.random.default_rng(seed)
    found, proven = [], True
    for _ in range(runs):
        query = draw(case, random)
        home = at_home(query)
        assert home is not None
        placed = solve(query, seconds, sampling=False)
        proven = proven and placed.proven
        if placed.objective < home.objective:
            found.append(_gain(query, placed, home, seconds))
    return Gains(case, runs, tuple(found), proven)


def draw(case: Experiment, random: np.random.Generator) -> ReplicaQuery:
    """A random query. Staleness is the latency between a source's home and the replica's node."""
    latencies = draw_latencies(case, random)
    computes, *homes = (int(n) for n in random.permutation(case.nodes)[: case.sources + 1])
    sources = []
    for home in homes:
        others = [int(n) for n in random.permutation(case.nodes) if n != home]
        count = case.nodes if case.anywhere else int(random.integers(0, case.replicas + 1))
        at = [home, *others[:count]]
        found = [Candidate(f"n{u}", latencies[u, computes], latencies[home, u]) for u in at]
        sources.append(Source(f"s{home}", tuple(found), home=f"n{home}"))
    return ReplicaQuery(tuple(sources), slots=case.replicas if case.anywhere else None)


def draw_latencies(case: Experiment, random: np.random.Generator) -> NDArray[np.float64]:
    """Symmetric, uniform in [0.1, 10], times the factors of both ends; 0 to itself."""
    upper = np.triu(random.uniform(0.1, 10, (case.nodes, case.nodes)), 1)
    latencies = upper + upper.T
    if case.bottlenecks:
        factors = random.zipf(case.zipf, case.nodes).clip(max=10**4).astype(np.float64)
        latencies *= np.outer(factors, factors)
    return latencies


def _gain(
    query: ReplicaQuery, placed: QueryPlacement, home: QueryPlacement, seconds: float
) -> Gain:
    ours, theirs = sample(query, placed, seconds), sample(query, home, seconds)
    return Gain(
        latency=_percent(placed.latency, home.latency),
        objective=_percent(placed.objective, home.objective),
        latency_sampled=_percent(ours.latency, theirs.latency),
        degraded=100 * (1 - min(ours.quality.values())),
        degraded_home=100 * (1 - min(theirs.quality.values())),
        staleness_ratio=placed.staleness / placed.latency if placed.latency else 0.0,
    )


def _percent(ours: float, theirs: float) -> float:
    return 100 * (1 - ours / theirs) if theirs else 0.0
