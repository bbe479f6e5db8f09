"""The jobs of some insights that run together: stages near the data, and the rest at their site."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fogline.common import settings
from fogline.deploy.resolve.query_topics import redirect_stream
from fogline.deploy.resolve.topology import Topology
from fogline.deploy.resolve.workloads import StepsCheck
from fogline.language.parser import parse
from fogline.model.jobs import FIRST, SECOND, WHOLE, Job, Place, Query, Steps, Work
from fogline.model.nodes import GATEWAY
from fogline.model.streams import INSIGHT, RELAYED, StreamSource
from fogline.plan.analysis.query_file import check_text
from fogline.plan.lowering.pane_spec import program_panes
from fogline.plan.lowering.program import lower
from fogline.plan.lowering.split import split_live
from fogline.plan.operators import Plan, Scan, walk_plan
from fogline.plan.rules import optimise

_PANES = "panes/"


@dataclass(frozen=True, slots=True)
class Group:
    """Insights that one job computes at one site."""

    name: str
    outlet: str
    """The job under whose name its results are published."""
    site: str
    text: str
    insights: tuple[str, ...]
    origins: Mapping[str, tuple[str, ...]]
    """Of every stream, the nodes that its messages come to."""
    writes: tuple[Place, ...] = ()
    """Where other sites read its results."""


def jobs_of(group: Group, topology: Topology, check: StepsCheck) -> Iterator[Job]:
    """Downstream last; whoever deploys them orders them anyway. Where `check` says that a gateway
    cannot make the panes, messages travel."""
    plan = check_text(group.text, settings.load()).plan
    streams = list(dict.fromkeys(op.stream for op in walk_plan(plan) if isinstance(op, Scan)))
    elsewhere = {node for name in group.origins for node in group.origins[name]} - {group.site}
    panes = _panes(plan) if elsewhere else None
    at_gateways = [
        stream.name
        for stream in streams
        if any(_is_gateway(node, topology) for node in group.origins.get(stream.name, ()))
    ]
    if panes is None or any(check(pane_steps(panes[name]), {}, {}) for name in at_gateways):
        yield from _forwarding(group, streams)
        return
    nodes = sorted({node for stream in streams for node in group.origins.get(stream.name, ())})
    for node in nodes:
        here = [s for s in streams if node in group.origins.get(s.name, ())]
        yield from _firsts(group, node, here, panes, topology)
    places = [
        job_place for node in nodes for job_place in _pane_places(group, node, streams, topology)
    ]
    yield _main(group, SECOND, places)


def _panes(plan: Plan) -> dict[str, dict[str, str]] | None:
    optimised, _ = optimise(plan)
    live, steady = split_live(optimised)
    adapts = any(emit.sampling is not None for emit in optimised.emits)
    results = any(
        op.stream.format == INSIGHT or op.stream.provider != "mqtt"
        for op in walk_plan(optimised)
        if isinstance(op, Scan)
    )
    return None if live.emits or adapts or results else program_panes(lower(steady))


def _main(group: Group, stage: str, reads: Iterable[Place]) -> Job:
    outlet = "" if group.outlet == group.name else group.outlet
    work = Query(group.text, stage, group.insights, outlet)
    return Job(group.name, group.site, work, tuple(reads), group.writes)


# ── first stages ─────────────────────────────────────────────────────────────────────────────────


def _firsts(
    group: Group,
    node: str,
    streams: list[StreamSource],
    panes: Mapping[str, Mapping[str, str]],
    topology: Topology,
) -> Iterator[Job]:
    """A site takes all its streams in one job, a gateway each in one of its own."""
    if not _is_gateway(node, topology):
        reads = tuple(Place(topic_of(stream), node) for stream in streams)
        work: Work = Query(group.text, FIRST, group.insights)
        place = _pane_place(group, node)
        yield Job(_first_name(group, node), node, work, reads, (place,))
        return
    for stream in streams:
        work = Steps(pane_steps(panes[stream.name]))
        place = _pane_place(group, node, stream.name)
        name = _first_name(group, node, stream.name)
        yield Job(name, node, work, (Place(topic_of(stream), node),), (place,))


def pane_steps(options: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    """The options of the connector's source as steps of a gateway."""
    decode = {key: value for key, value in options.items() if key not in ("filter", "panes")}
    structured = {"fields", "header"}
    step = {key: json.loads(v) if key in structured else v for key, v in decode.items()}
    steps: list[Mapping[str, Any]] = [{"op": "decode", **step}]
    if "filter" in options:
        steps.append({"op": "filter", "condition": json.loads(options["filter"])})
    steps.append({"op": "panes", **json.loads(options["panes"])})
    return tuple(steps)


def _pane_places(
    group: Group, node: str, streams: list[StreamSource], topology: Topology
) -> Iterator[Place]:
    if not _is_gateway(node, topology):
        yield _pane_place(group, node)
        return
    for stream in streams:
        if node in group.origins.get(stream.name, ()):
            yield _pane_place(group, node, stream.name)


def _pane_place(group: Group, node: str, stream: str = "") -> Place:
    """Every origin has a topic of its own: what one has not sent yet is waited for."""
    parts = [group.name, node, *([stream] if stream else [])]
    return Place(_PANES + "/".join(parts), group.site)


def _first_name(group: Group, node: str, stream: str = "") -> str:
    return f"{group.name}-{stream}@{node}" if stream else f"{group.name}@{node}"


# ── messages themselves ──────────────────────────────────────────────────────────────────────────


def _forwarding(group: Group, streams: Iterable[StreamSource]) -> Iterator[Job]:
    """Messages of a stream that also come elsewhere have topics of the job's own at its site, one
    for each origin: nobody else reads or writes them, so they cannot go round or count twice."""
    text, reads = group.text, []
    for stream in streams:
        if not _local(stream):
            continue
        origins = group.origins.get(stream.name, ())
        if not travels(stream, origins, group.site):
            reads.append(Place(topic_of(stream), group.site))
            continue
        for node in origins:
            name = f"{group.name}-{stream.name}@{node}"
            place = _message_place(group, stream, node)
            yield Job(name, node, Steps(()), (Place(topic_of(stream), node),), (place,))
        gathered = _message_place(group, stream, "+")
        text = redirect_stream(parse(text), stream.name, gathered.topic, "")
        reads.append(gathered)
    yield _main(replace(group, text=text), WHOLE, reads)


def _message_place(group: Group, stream: StreamSource, node: str) -> Place:
    return Place(relayed_topic(group.name, stream.name) + node, group.site)


def relayed_topic(job: str, stream: str) -> str:
    """What the topics begin with on which a job gets the messages of a stream."""
    return f"{RELAYED}{job}/{stream}/"


def topic_of(stream: StreamSource) -> str:
    return str(stream.parameter("topic"))


def feeds(job: Job, main: str) -> bool:
    """Whether a job makes panes for another one, or sends messages to it."""
    own = (f"{_PANES}{main}/", f"{RELAYED}{main}/")
    return any(place.topic.startswith(own) for place in job.writes)


def travels(stream: StreamSource, origins: Collection[str], site: str) -> bool:
    """Whether a whole query at that site has messages of the stream sent to it."""
    return _local(stream) and not set(origins) <= {site}


def _local(stream: StreamSource) -> bool:
    """Whether its messages are those of a topic of the site's own broker."""
    return stream.provider == "mqtt" and stream.parameter("broker") is None


def _is_gateway(node: str, topology: Topology) -> bool:
    found = topology.node(node)
    return found is not None and found.kind == GATEWAY
