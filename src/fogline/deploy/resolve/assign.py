"""From jobs to what their nodes are told: routes to whoever reads, over all pipelines.

Records take the logs (`log`, `link`) to readers that run where the topic is. Where a reader runs
elsewhere and subscribes from afar, the place's broker must have them: then they are published
there, and readers beside it get them from the broker too, so nobody gets them twice. A route to a
node that was never seen has its name and no broker: records wait at the job's node until it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from fogline.deploy.resolve.flow import Flow, Flows, Key, key_of, same_jobs
from fogline.deploy.resolve.query_topics import signed_topics
from fogline.deploy.resolve.topics import TopicTree
from fogline.deploy.resolve.topology import Topology
from fogline.model.jobs import (
    LINK,
    LOG,
    PUBLISH,
    Assignment,
    Code,
    Job,
    Pipeline,
    Place,
    Query,
    Route,
    Steps,
)
from fogline.model.nodes import Node

Assignments = dict[str, tuple[str, Assignment]]


@dataclass(frozen=True, slots=True)
class Whole:
    """All jobs of some pipelines together: their graph, and what their nodes are told."""

    flow: Flow
    assignments: Assignments


class Wholes:
    """The whole that was made last is remembered: it is looked at before it is stored, and asked
    for again right afterwards. For several threads."""

    def __init__(self) -> None:
        self.flows = Flows()
        self._last: tuple[list[Pipeline], Mapping[str, Node], Whole] | None = None

    def of(self, pipelines: Iterable[Pipeline], topology: Topology) -> Whole:
        named = sorted(pipelines, key=lambda pipeline: pipeline.name)
        last = self._last
        if last is None or not _same(named, last[0]) or last[1] != topology.nodes:
            owners = _owners(named)
            flow = self.flows.of(tuple(job for _, job in owners))
            whole = Whole(flow, _told_all(owners, flow, topology))
            self._last = last = (named, topology.nodes, whole)
        return last[2]


def assignments(pipelines: Iterable[Pipeline], topology: Topology) -> Assignments:
    """Of each job: its node, and the job as that node gets it."""
    owners = _owners(pipelines)
    return _told_all(owners, Flow.of(job for _, job in owners), topology)


def _owners(pipelines: Iterable[Pipeline]) -> list[tuple[str, Job]]:
    return [(pipeline.name, job) for pipeline in pipelines for job in pipeline.jobs]


def _same(these: list[Pipeline], those: list[Pipeline]) -> bool:
    """Whether they are the very same jobs, of pipelines of the same names."""
    pairs = zip(these, those, strict=False)
    alike = (a.name == b.name and same_jobs(a.jobs, b.jobs) for a, b in pairs)
    return len(these) == len(those) and all(alike)


def _told_all(owners: list[tuple[str, Job]], flow: Flow, topology: Topology) -> Assignments:
    reads = _Reads(topology)
    routes = _Routes(flow, {job.name: job.node for _, job in owners}, topology)
    made = _made(flow, {job.name for _, job in owners if not isinstance(job.work, Steps)})
    signed = TopicTree[tuple[str, str]]()
    for job in (job for _, job in owners if isinstance(job.work, Query)):
        for topic, key in signed_topics(job):
            signed.add(topic, (topic, key))
    return {
        job.name: (job.node, _assignment(owner, job, reads, routes, made, signed))
        for owner, job in owners
    }


def _made(flow: Flow, makers: Set[str]) -> Mapping[Key, list[str]]:
    """Of each filter: the topics it takes that jobs compute. What gateways pass on is not: they
    store nothing."""
    found: dict[Key, list[str]] = defaultdict(list)
    for key, filters in flow.meets.items() if makers else ():
        if not makers.isdisjoint(flow.writers[key]):
            for pattern in filters:
                found[pattern].append(key[0])
    return found


def _assignment(
    pipeline: str,
    job: Job,
    reads: _Reads,
    routes: _Routes,
    made: Mapping[Key, list[str]],
    signed: TopicTree[tuple[str, str]],
) -> Assignment:
    return Assignment(
        job=job.name,
        pipeline=pipeline,
        work=job.work,
        reads=reads.of(job),
        routes=routes.of(job),
        parameters=job.parameters,
        input=job.input,
        running=job.running,
        muted=job.muted,
        made=_taken(job, made) if isinstance(job.work, Code) else (),
        signed=_signed(job, signed) if signed else {},
    )


def _taken(job: Job, made: Mapping[Key, list[str]]) -> tuple[str, ...]:
    return tuple(sorted({topic for place in job.reads for topic in made.get(key_of(place), ())}))


def _signed(job: Job, signed: TopicTree[tuple[str, str]]) -> dict[str, str]:
    return dict(pair for place in job.reads for pair in signed.meeting(place.topic))


class _Reads:
    """Places as nodes are told them. Each is made once: many nodes are told the same."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: dict[tuple[str, ...], Place] = {}

    def of(self, job: Job) -> tuple[Place, ...]:
        return tuple([self._place(*self._parts(place, job)) for place in job.reads])

    def _place(self, *parts: str) -> Place:
        known = self._known.get(parts)
        if known is None:
            known = self._known[parts] = Place(*parts)
        return known

    def _parts(self, place: Place, job: Job) -> tuple[str, ...]:
        if place.node == job.node:
            return (place.topic,)
        broker = place.broker or self._topology.broker_of(place.node)
        return place.topic, place.node, broker


class _Routes:
    """Each route is made once, like the places that are read."""

    def __init__(self, flow: Flow, homes: Mapping[str, str], topology: Topology) -> None:
        self._topology = topology
        self._flow = flow
        self._homes = homes
        self._known: dict[tuple[str, ...], Route] = {}
        self._to: dict[tuple[Place, bool, bool], Route] = {}
        """By place, whether that is the job's own and whether all is published: many jobs write to
        one place."""

    def of(self, job: Job) -> tuple[Route, ...]:
        """One route for each place, in their order. With `publish: true` everybody gets the records
        from the broker, so nobody gets them twice.

        A query's results are on topics of their own besides, without a route.
        """
        node, publish = job.node, job.publish
        found = [self._route(place, place.node == node, publish) for place in job.writes]
        return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)

    def _route(self, place: Place, own: bool, publish: bool) -> Route:
        key = place, own, publish
        route = self._to.get(key)
        if route is None:
            parts = self._parts(place, own, publish)
            if parts not in self._known:
                self._known[parts] = Route(*parts)
            self._to[key] = route = self._known[parts]
        return route

    def _parts(self, place: Place, own: bool, publish: bool) -> tuple[str, ...]:
        if publish or not place.node or not self._is_read_only_at(place):
            return (PUBLISH, place.topic) if own else self._published(place)
        if own:
            return LOG, place.topic
        return LINK, place.topic, self._topology.broker_of(place.node), place.node

    def _is_read_only_at(self, place: Place) -> bool:
        """Whether somebody reads what is written there, and only jobs of that node."""
        readers = self._flow.read_by(key_of(place))
        return bool(readers) and {self._homes[name] for name in readers} == {place.node}

    def _published(self, place: Place) -> tuple[str, ...]:
        broker = place.broker or self._topology.broker_of(place.node)
        return PUBLISH, place.topic, broker, "" if broker else place.node
