"""One round of decisions for queries: where each running query over stored values reads them.

For each such job `fogline.adapt.replication.query_placement` finds the least F; where it is best
not to read a source where it arises, a copy is desired elsewhere, and the query reads that one.
Latencies are in milliseconds, D in seconds. Reading costs a millisecond wherever it happens, so a
copy pays only if the way is longer than that.

How much of a source is sent the query itself says (`SAMPLE`); its results are exact where it does
not. So the q of F are given, and nothing is lost by that: no choice of q lowers F. For a query that
samples, the second step finds how far below its own fractions L could go with a mean fraction of at
least Q; that is reported with the decision, and put in force where the configuration says so: see
`fogline.coordinator.replication.sampling`.

A copy stays as long as its job runs, unless another placement has an F at least a fifth lower. A
source whose origin or copy is offline is left as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from fogline.adapt.replication.query import (
    LONGEST,
    MOST_CANDIDATES,
    MOST_SOURCES,
    Candidate,
    QueryPlacement,
    ReplicaQuery,
    Source,
    evaluate,
)
from fogline.adapt.replication.query_placement import sample, solve
from fogline.coordinator.nodes.replicas import (
    QUERY,
    Decision,
    covers,
    desired_copies,
    refused_pairs,
    unite_metrics,
)
from fogline.coordinator.nodes.store_reports import Metrics
from fogline.coordinator.replication.config import ReplicaConfig
from fogline.coordinator.replication.fabric_jobs import FabricJob, FabricStream
from fogline.coordinator.replication.stability import Situation
from fogline.coordinator.replication.staleness import behind

READ_MS = 1.0
"""What reading costs anywhere, the own node included."""
GAIN = 0.8
"""Another placement is taken when its F is less than this fraction of the present one."""
MOST_TRIES = 4


def by_queries(
    situation: Situation,
    jobs: Iterable[FabricJob],
    config: ReplicaConfig,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Decision, ...]:
    """The copies desired for these jobs; those of other jobs are not among them any more.

    `situation` holds what is decided by stability already. The time to solve is shared out among
    the jobs that are left.
    """
    items = sorted(jobs, key=lambda job: job.name)
    deadline = clock() + config.solve_seconds
    room = situation.room(config.capacity)
    found: list[Decision] = []
    for place, job in enumerate(items):
        seconds = max(deadline - clock(), 0.0) / (len(items) - place)
        found += _Placing(situation, job, config, room).decide(seconds)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class QueryReads:
    """Where a job reads each source now, by the decisions that are in force."""

    query: ReplicaQuery
    nodes: Mapping[str, str]
    sources: Mapping[str, tuple[str, FabricStream]]
    """Of each source: its origin, and what is read there."""


def reading(situation: Situation, job: FabricJob, config: ReplicaConfig) -> QueryReads | None:
    """None for a job that has no source."""
    placing = _Placing(situation, job, config, situation.room(config.capacity))
    query = placing.query(set())
    return None if query is None else QueryReads(query, placing.present(query), placing.read)


class _Placing:
    """One job: `room` is what holders can take, and is lowered by what is decided."""

    def __init__(
        self, situation: Situation, job: FabricJob, config: ReplicaConfig, room: dict[str, int]
    ) -> None:
        self._situation, self._job, self._config, self._room = situation, job, config, room
        self._refused = refused_pairs(situation.decisions)
        self._desired = desired_copies(situation.decisions)
        self._before = [i for i in situation.decisions if i.reason == QUERY and i.job == job.name]
        self.read: dict[str, tuple[str, FabricStream]] = {}
        """By source: its origin, and what is read there."""

    def decide(self, seconds: float) -> list[Decision]:
        kept = [item for item in self._before if self._is_offline(item)]
        query = self.query({item.origin for item in kept})
        if query is None:
            return kept
        present = evaluate(query, self.present(query))
        best = self._fitting(query, seconds)
        better = best.objective < GAIN * present.objective
        return kept + self._decisions(query, best if better else present, seconds / MOST_TRIES)

    def _is_offline(self, item: Decision) -> bool:
        return not {item.origin, item.holder} <= self._situation.here

    def query(self, left_alone: set[str]) -> ReplicaQuery | None:
        sources = []
        for stream in self._job.streams:
            for origin in sorted(self._situation.here - left_alone):
                report = self._situation.reports[origin]
                if stream.reads(origin, report) and self._latency(origin) is not None:
                    name = f"{stream.name} of {origin}"
                    self.read[name] = (origin, stream)
                    sources.append(Source(name, self._candidates(origin, stream), origin))
        if not sources:
            return None
        # What is read fastest at home matters least.
        sources.sort(key=lambda source: -source.at(source.home).latency)
        chosen, config = tuple(sources[:MOST_SOURCES]), self._config
        return ReplicaQuery(chosen, config.beta, config.least_quality)

    def _candidates(self, origin: str, stream: FabricStream) -> tuple[Candidate, ...]:
        found = []
        for node in sorted(self._situation.here):
            latency = self._latency(node)
            usable = node == origin or (
                (origin, node) not in self._refused
                and self._cost(origin, node, stream.metrics) <= self._room.get(node, 0)
            )
            late = 0.0 if node == origin else behind(self._situation, origin, node, stream.metrics)
            if latency is not None and usable and late is not None and late <= LONGEST:
                found.append(Candidate(node, (READ_MS + latency) * stream.fraction, late))
        found.sort(key=lambda candidate: (candidate.node != origin, candidate.latency))
        return tuple(found[: MOST_CANDIDATES // MOST_SOURCES])

    def _latency(self, node: str) -> float | None:
        """Milliseconds to where the job runs; None where nobody has measured them."""
        if node == self._job.node:
            return 0.0
        links = self._situation.links
        measured = links.get((self._job.node, node), links.get((node, self._job.node)))
        return measured if measured is not None and 0 <= measured < LONGEST - READ_MS else None

    def _cost(self, origin: str, holder: str, metrics: Metrics) -> int:
        """Bytes that a copy would take there besides what is desired there anyway."""
        here = self._desired.get(holder, {})
        if origin not in here:
            return self._situation.copy_size(origin, holder, metrics)
        both = unite_metrics(here[origin], metrics)
        size = self._situation.copy_size
        return max(size(origin, holder, both) - size(origin, holder, here[origin]), 0)

    def present(self, query: ReplicaQuery) -> dict[str, str]:
        """Where each source is read now: at the copy made for this job, else at home."""
        found = {source.name: source.home for source in query.sources}
        for source in query.sources:
            origin, stream = self.read[source.name]
            for item in self._before:
                able = any(c.node == item.holder for c in source.candidates)
                if item.origin == origin and able and covers(item.metrics, stream.metrics):
                    found[source.name] = item.holder
        return found

    def _fitting(self, query: ReplicaQuery, seconds: float) -> QueryPlacement:
        """The least F; sources that do not fit at a holder together are read elsewhere."""
        for _ in range(MOST_TRIES):
            best = solve(query, seconds / MOST_TRIES, sampling=False)
            too_much = self._too_much(best.nodes)
            if not too_much:
                return best
            query = _drop_candidates(query, too_much)
        return evaluate(query, {**best.nodes, **{name: self.read[name][0] for name in too_much}})

    def _sample_placement(
        self, query: ReplicaQuery, placed: QueryPlacement, seconds: float
    ) -> QueryPlacement:
        """The second step: how much less could be sent of what `SAMPLE` leaves, at the same F."""
        copies = [s for s in query.sources if placed.nodes[s.name] != s.home]
        return sample(query, placed, seconds) if copies else placed

    def _too_much(self, nodes: Mapping[str, str]) -> dict[str, str]:
        """Sources, with their nodes, for which there is no room any more."""
        left, found = dict(self._room), {}
        for name, node in sorted(nodes.items()):
            origin, stream = self.read[name]
            cost = 0 if node == origin else self._cost(origin, node, stream.metrics)
            if cost > left.get(node, 0):
                found[name] = node
            else:
                left[node] = left.get(node, 0) - cost
        return found

    def _decisions(
        self, query: ReplicaQuery, placed: QueryPlacement, seconds: float
    ) -> list[Decision]:
        found: dict[tuple[str, str], Decision] = {}
        home = evaluate(query, {source.name: source.home for source in query.sources})
        least_fraction = min(self.read[source.name][1].fraction for source in query.sources)
        figures = {
            "latency_ms": placed.latency,
            "objective": placed.objective / least_fraction,
            "home_latency_ms": home.latency,
            "home_objective": home.objective / least_fraction,
            "proven": placed.proven,
        }
        sampled = self._sample_placement(query, placed, seconds) if least_fraction < 1 else None
        if sampled is not None:
            figures["sampled_latency_ms"] = sampled.latency
        for name, node in placed.nodes.items():
            origin, stream = self.read[name]
            if node != origin:
                known = found.get((origin, node))
                both = unite_metrics(known.metrics, stream.metrics) if known else stream.metrics
                detail = figures | {"share": stream.fraction}
                if sampled is not None:
                    detail["sampled_share"] = stream.fraction * sampled.quality[name]
                now, job = self._situation.now, self._job.name
                found[origin, node] = Decision(origin, node, QUERY, job, both, now, detail)
        return [self._keep_or_reserve(item) for item in found.values()]

    def _keep_or_reserve(self, item: Decision) -> Decision:
        """As it was decided before, if it was; else the room it takes is taken."""
        for before in self._before:
            if before.pair == item.pair and before.metrics == item.metrics:
                return before
        self._room[item.holder] -= self._cost(item.origin, item.holder, item.metrics)
        here = self._desired.setdefault(item.holder, {})
        here[item.origin] = unite_metrics(here.get(item.origin, ()), item.metrics)
        return item


def _drop_candidates(query: ReplicaQuery, places: Mapping[str, str]) -> ReplicaQuery:
    """The query with these nodes left out for these sources."""
    sources = tuple(
        replace(s, candidates=tuple(c for c in s.candidates if c.node != places.get(s.name)))
        for s in query.sources
    )
    return replace(query, sources=sources)
