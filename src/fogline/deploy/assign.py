"""From jobs to what their nodes are told: routes to whoever reads, over all pipelines.

Records take the logs (`log`, `link`) to readers that run where the topic is. Where a reader runs
elsewhere and subscribes from afar, the place's broker must have them: then they are published
there, and readers beside it get them from the broker too, so nobody gets them twice. A route to a
node that was never seen has its name and no broker: records wait at the job's node until it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from fogline.deploy.flow import Flow, Key, key_of
from fogline.deploy.query_topics import signed_topics
from fogline.deploy.topics import TopicTree
from fogline.deploy.topology import Topology
from fogline.model.jobs import (
    LINK,
    LOG,
    PUBLISH,
    Assignment,
    Code,
    Job,
    Pipeline,
    Place,
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
        self._last: tuple[list[tuple[str, Job]], Mapping[str, Node], Whole] | None = None

    def of(self, pipelines: Iterable[Pipeline], topology: Topology) -> Whole:
        owners = _owners(sorted(pipelines, key=lambda pipeline: pipeline.name))
        last = self._last
        if last is None or not _same(owners, last[0]) or last[1] != topology.nodes:
            flow = Flow.of(job for _, job in owners)
            self._last = last = (
                owners,
                topology.nodes,
                Whole(flow, _told_all(owners, flow, topology)),
            )
        return last[2]


def assignments(pipelines: Iterable[Pipeline], topology: Topology) -> Assignments:
    """Of each job: its node, and the job as that node gets it."""
    owners = _owners(pipelines)
    return _told_all(owners, Flow.of(job for _, job in owners), topology)


def _owners(pipelines: Iterable[Pipeline]) -> list[tuple[str, Job]]:
    return [(pipeline.name, job) for pipeline in pipelines for job in pipeline.jobs]


def _same(these: list[tuple[str, Job]], those: list[tuple[str, Job]]) -> bool:
    """Whether they are the very same jobs, of pipelines of the same names."""
    alike = (a[1] is b[1] and a[0] == b[0] for a, b in zip(these, those, strict=False))
    return len(these) == len(those) and all(alike)


def _told_all(owners: list[tuple[str, Job]], flow: Flow, topology: Topology) -> Assignments:
    routes = _Routes(flow, {job.name: job.node for _, job in owners}, topology)
    made = _made(flow, {job.name for _, job in owners if not isinstance(job.work, Steps)})
    signed = TopicTree[tuple[str, str]]()
    for _, job in owners:
        for topic, key in signed_topics(job):
            signed.add(topic, (topic, key))
    return {
        job.name: (job.node, _assignment(owner, job, routes, made, signed)) for owner, job in owners
    }


def _made(flow: Flow, makers: Set[str]) -> Mapping[Key, list[str]]:
    """Of each filter: the topics it takes that jobs compute. What gateways pass on is not: they
    store nothing."""
    found: dict[Key, list[str]] = defaultdict(list)
    for key, filters in flow.meets.items():
        if not makers.isdisjoint(flow.writers[key]):
            for pattern in filters:
                found[pattern].append(key[0])
    return found


def _assignment(
    pipeline: str,
    job: Job,
    routes: _Routes,
    made: Mapping[Key, list[str]],
    signed: TopicTree[tuple[str, str]],
) -> Assignment:
    taken = [topic for place in job.reads for topic in made.get(key_of(place), ())]
    return Assignment(
        job=job.name,
        pipeline=pipeline,
        work=job.work,
        reads=tuple(_told(place, job, routes.topology) for place in job.reads),
        routes=tuple(dict.fromkeys(routes.of(job))),
        parameters=job.parameters,
        input=job.input,
        running=job.running,
        muted=job.muted,
        made=tuple(sorted(set(taken))) if isinstance(job.work, Code) else (),
        signed=_signed(job, signed) if signed else {},
    )


def _signed(job: Job, signed: TopicTree[tuple[str, str]]) -> dict[str, str]:
    return dict(pair for place in job.reads for pair in signed.meeting(place.topic))


def _told(place: Place, job: Job, topology: Topology) -> Place:
    if place.node == job.node:
        return Place(place.topic)
    return Place(place.topic, place.node, place.broker or topology.broker_of(place.node))


class _Routes:
    def __init__(self, flow: Flow, homes: Mapping[str, str], topology: Topology) -> None:
        self.topology = topology
        self._flow = flow
        self._homes = homes

    def of(self, job: Job) -> Iterator[Route]:
        """One route for each place, in their order. With `publish: true` everybody gets the records
        from the broker, so nobody gets them twice.

        A query's results are on topics of their own besides, without a route.
        """
        for place in job.writes:
            yield self._route(job, place)

    def _route(self, job: Job, place: Place) -> Route:
        homes = {self._homes[name] for name in self._flow.read_by(key_of(place))}
        if job.publish or not place.node or homes != {place.node}:
            return self._published(job, place)
        if place.node == job.node:
            return Route(LOG, place.topic)
        return Route(LINK, place.topic, self.topology.broker_of(place.node), place.node)

    def _published(self, job: Job, place: Place) -> Route:
        if place.node == job.node:
            return Route(PUBLISH, place.topic)
        broker = place.broker or self.topology.broker_of(place.node)
        return Route(PUBLISH, place.topic, broker, "" if broker else place.node)
