"""A query's sources, the nodes they can be read at, and what a choice among them costs.

A source i (a spout) can be read at several nodes u: where its data arises, or where a copy is or
could be. Reading at u costs the latency lat(u, u_b) to the node u_b that computes, and the copy is
D(i, u) behind. A source may be sampled down to a fraction q_i of its data. A choice costs

    F = L · (β + max D(i, u_i)) / min q_i        where L = max lat(u_i, u_b) · q_i

with one node u_i for each source, 0.1 ≤ q_i ≤ 1, and the mean of the q_i at least Q.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fogline.common.errors import DataError

LEAST_FRACTION = 0.1
LONGEST = 1e15
MOST_SOURCES = 100
MOST_CANDIDATES = 100_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node a source can be read at."""

    node: str
    latency: float
    """lat(u, u_b): from here to the node that computes."""
    staleness: float = 0.0
    """D(i, u): how far the data here is behind where it arises."""

    def __post_init__(self) -> None:
        if not self.node:
            raise DataError("a node without a name cannot be read at")
        if not (0 <= self.latency <= LONGEST and 0 <= self.staleness <= LONGEST):
            times = f"latency {self.latency}, staleness {self.staleness}"
            raise DataError(f"node {self.node}: {times}", f"both lie between 0 and {LONGEST:g}")


@dataclass(frozen=True, slots=True)
class Source:
    """One input of the query and the nodes it can be read at."""

    name: str
    candidates: tuple[Candidate, ...]
    home: str = ""
    """Where its data arises: to read it there needs no replica."""

    def __post_init__(self) -> None:
        if not self.candidates:
            raise DataError(f"source {self.name} can be read nowhere", "give it a node")
        if len({c.node for c in self.candidates}) < len(self.candidates):
            raise DataError(f"source {self.name} names a node twice")

    def at(self, node: str) -> Candidate:
        found = next((c for c in self.candidates if c.node == node), None)
        if found is None:
            raise DataError(f"source {self.name} cannot be read at {node}")
        return found


@dataclass(frozen=True, slots=True)
class ReplicaQuery:
    """What F is computed of."""

    sources: tuple[Source, ...]
    beta: float = 1.0
    least_quality: float = 0.8
    """Q, for the mean of the q."""
    slots: int | None = None
    """How many replicas one node may serve; None: any number."""

    def __post_init__(self) -> None:
        size = sum(len(source.candidates) for source in self.sources)
        if not self.sources or len({source.name for source in self.sources}) < len(self.sources):
            raise DataError("a query needs sources, each with a name of its own")
        if len(self.sources) > MOST_SOURCES or size > MOST_CANDIDATES:
            hint = f"at most {MOST_SOURCES} sources and {MOST_CANDIDATES:,} candidates in all"
            raise DataError("the query is too large to place", hint)
        if not 0 <= self.beta <= LONGEST:
            raise DataError(f"beta is {self.beta}", f"between 0 and {LONGEST:g}")
        if not 0 <= self.least_quality <= 1:
            raise DataError(f"no sampling has a mean quality of {self.least_quality}", "at most 1")
        if self.slots is not None and self.slots < 0:
            raise DataError(f"a node cannot serve {self.slots} replicas")


@dataclass(frozen=True, slots=True)
class QueryPlacement:
    """Where each source is read, which sample fraction of it, and what that costs."""

    nodes: Mapping[str, str]
    quality: Mapping[str, float]
    latency: float
    staleness: float
    objective: float
    proven: bool = True
    """False when time ran out: then this is the best that was found."""


def evaluate(
    query: ReplicaQuery, nodes: Mapping[str, str], quality: Mapping[str, float] | None = None
) -> QueryPlacement:
    """L, the staleness and F of a choice, by the formulas; quality 1 where none is given."""
    fractions = {source.name: 1.0 for source in query.sources} | dict(quality or {})
    read = {source.name: source.at(nodes[source.name]) for source in query.sources}
    latency = max(c.latency * fractions[name] for name, c in read.items())
    staleness = max(c.staleness for c in read.values())
    objective = latency * (query.beta + staleness) / min(fractions.values())
    return QueryPlacement(dict(nodes), fractions, latency, staleness, objective)


def at_home(query: ReplicaQuery) -> QueryPlacement | None:
    """The baseline: every source read where its data arises, if it can be."""
    nodes = {source.name: source.home for source in query.sources}
    able = all(any(c.node == s.home for c in s.candidates) for s in query.sources)
    return evaluate(query, nodes) if able else None
