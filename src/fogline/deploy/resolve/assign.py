"""From jobs to the assignments of their nodes: routes to whoever reads, over all pipelines.

Records take the logs (`log`, `link`) to readers that run where the topic is. Where a reader runs
elsewhere and subscribes from afar, the place's broker must have them: then they are published
there, and readers beside it get them from the broker too, so nobody gets them twice. A route to a
node that was never seen has its name and no broker: records wait at the job's node until it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set

from fogline.deploy.resolve.flow import Flow, FlowKey, key_of
from fogline.deploy.resolve.query_topics import signed_topics
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
from fogline.model.topics import TopicTree

JobAssignments = dict[str, tuple[str, Assignment]]


"""Of each job: its node, and the job as that node gets it."""


def connect(pipelines: Iterable[Pipeline], topology: Topology) -> tuple[Flow, JobAssignments]:
    """The graph of all jobs of these pipelines, and what their nodes get."""
    named = sorted(pipelines, key=lambda pipeline: pipeline.name)
    owners = [(pipeline.name, job) for pipeline in named for job in pipeline.jobs]
    flow = Flow.of(job for _, job in owners)
    return flow, _assign_all(owners, flow, topology)


def assignments(pipelines: Iterable[Pipeline], topology: Topology) -> JobAssignments:
    return connect(pipelines, topology)[1]


def _assign_all(owners: list[tuple[str, Job]], flow: Flow, topology: Topology) -> JobAssignments:
    routes = _Routes(flow, {job.name: job.node for _, job in owners}, topology)
    made = _find_computed(flow, {job.name for _, job in owners if not isinstance(job.work, Steps)})
    signed = TopicTree[tuple[str, str]]()
    for job in (job for _, job in owners if isinstance(job.work, Query)):
        for topic, key in signed_topics(job):
            signed.add(topic, (topic, key))
    return {
        job.name: (job.node, _assignment(owner, job, topology, routes, made, signed))
        for owner, job in owners
    }


def _find_computed(flow: Flow, makers: Set[str]) -> Mapping[FlowKey, list[str]]:
    """Of each filter: the topics it takes that jobs compute. What gateways pass on is not: they
    store nothing."""
    found: dict[FlowKey, list[str]] = defaultdict(list)
    for key, filters in flow.meets.items() if makers else ():
        if not makers.isdisjoint(flow.writers[key]):
            for pattern in filters:
                found[pattern].append(key[0])
    return found


def _assignment(
    pipeline: str,
    job: Job,
    topology: Topology,
    routes: _Routes,
    made: Mapping[FlowKey, list[str]],
    signed: TopicTree[tuple[str, str]],
) -> Assignment:
    return Assignment(
        job=job.name,
        pipeline=pipeline,
        work=job.work,
        reads=tuple(_read_place(place, job, topology) for place in job.reads),
        routes=routes.of(job),
        parameters=job.parameters,
        input=job.input,
        running=job.running,
        muted=job.muted,
        made=_read_topics(job, made) if isinstance(job.work, Code) else (),
        signed=_signed_topics(job, signed) if signed else {},
    )


def _read_topics(job: Job, made: Mapping[FlowKey, list[str]]) -> tuple[str, ...]:
    return tuple(sorted({topic for place in job.reads for topic in made.get(key_of(place), ())}))


def _signed_topics(job: Job, signed: TopicTree[tuple[str, str]]) -> dict[str, str]:
    return dict(pair for place in job.reads for pair in signed.find_overlapping(place.topic))


def _read_place(place: Place, job: Job, topology: Topology) -> Place:
    """As the job's node gets it."""
    if place.node == job.node:
        return Place(place.topic)
    return Place(place.topic, place.node, place.broker or topology.broker_of(place.node))


class _Routes:
    def __init__(self, flow: Flow, homes: Mapping[str, str], topology: Topology) -> None:
        self._topology = topology
        self._flow = flow
        self._homes = homes

    def of(self, job: Job) -> tuple[Route, ...]:
        """One route for each place, in their order. With `publish: true` everybody gets the records
        from the broker, so nobody gets them twice.

        A query's results are on topics of their own besides, without a route.
        """
        routes = (self._route(place, place.node == job.node, job.publish) for place in job.writes)
        return tuple(dict.fromkeys(routes))

    def _route(self, place: Place, own: bool, publish: bool) -> Route:
        if publish or not place.node or not self._is_read_only_at(place):
            return Route(PUBLISH, place.topic) if own else self._make_route(place)
        if own:
            return Route(LOG, place.topic)
        return Route(LINK, place.topic, self._topology.broker_of(place.node), place.node)

    def _is_read_only_at(self, place: Place) -> bool:
        """Whether somebody reads what is written there, and only jobs of that node."""
        readers = self._flow.read_by(key_of(place))
        return bool(readers) and {self._homes[name] for name in readers} == {place.node}

    def _make_route(self, place: Place) -> Route:
        broker = place.broker or self._topology.broker_of(place.node)
        return Route(PUBLISH, place.topic, broker, "" if broker else place.node)
