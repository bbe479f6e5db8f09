"""A query file over many nodes: which insights run where, and how their data gets there.

Every insight runs at one site, which its `ALLOW WHEN` and the scheduler choose; insights of one
site are one job. When the file is deployed again, those that have changed get a job beside it. Of
streams that come from elsewhere the first stage runs at their origin, so that only panes travel;
where a query's first stage cannot stand alone, the messages themselves do. An insight made from one
that runs at another site reads its results as a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fogline.common import settings
from fogline.common.errors import START_SITE, PipelineError, Problem
from fogline.deploy.manifest.problems import list_names
from fogline.deploy.query.insight_groups import InsightGroups, fed_by, streams_of
from fogline.deploy.query.insight_jobs import jobs_of
from fogline.deploy.query.reuse import Before
from fogline.deploy.resolve.flow import Flow, describe_cycle, find_cycle
from fogline.deploy.resolve.topology import Topology
from fogline.deploy.resolve.workloads import StepsCheck, any_steps
from fogline.language.ast import Insight, Position
from fogline.model.jobs import Job, Pipeline
from fogline.model.nodes import GATEWAY, Node
from fogline.model.streams import StreamSource
from fogline.placement import Task, scheduler_named
from fogline.placement.allow import allows
from fogline.placement.schedulers import is_edge
from fogline.plan.analysis.query_file import LoadedQuery, check_text


def deploy_query(
    text: str,
    name: str,
    topology: Topology,
    check_steps: StepsCheck = any_steps,
    before: Pipeline | None = None,
) -> Pipeline:
    """`before`: the pipeline as it was deployed last; what has not changed since goes on.

    Raises QueryError for a wrong text, PipelineError where no node may or can run it.
    """
    loaded = check_text(text, settings.load())
    sites = _place(loaded, topology)

    def origins(stream: StreamSource) -> tuple[str, ...]:
        return tuple(_origins([stream], topology))

    grouping = InsightGroups(name, loaded, sites, topology, Before(before), origins)
    jobs = list(grouping.kept_jobs)
    for group in grouping.groups():
        jobs += jobs_of(group, topology, check_steps)
    _check_together(jobs)
    return Pipeline(name, tuple(jobs))


def _check_together(jobs: Sequence[Job]) -> None:
    names = [job.name for job in jobs]
    wrong = [f"there are two jobs {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
    problems = [Problem("DUPLICATE", text, 1, 1, hint="rename an insight") for text in wrong]
    if cycle := find_cycle(Flow.of(jobs)):
        problems.append(Problem("CYCLE", describe_cycle(cycle), 1, 1, hint="read narrower topics"))
    if problems:
        raise PipelineError(tuple(problems))


def _place(loaded: LoadedQuery, topology: Topology) -> dict[str, str]:
    """The site of every insight."""
    sites = [node for node in topology.nodes.values() if node.computes]
    chosen: dict[str, str] = {}
    problems = _unknown_nodes(loaded, topology)
    for insight in loaded.query.insights:
        emit = loaded.plan.emit(insight.name)
        allowed = [site for site in sites if allows(insight.options.allow, site)]
        if not allowed:
            problems.append(_nowhere(insight, loaded.text, sites))
            continue
        allowed = [site for site in allowed if site.name not in topology.offline] or allowed
        fed = fed_by(emit)
        origins = _origins(streams_of(emit, fed), topology)
        origins += [chosen[name] for name in fed if name in chosen]
        task = Task((insight.name,), tuple(dict.fromkeys(origins)))
        chosen[insight.name] = scheduler_named(insight.options.scheduler)(task, allowed).name
    if problems:
        raise PipelineError(tuple(problems))
    return chosen


def _origins(streams: Iterable[StreamSource], topology: Topology) -> list[str]:
    return [node.name for stream in streams for node in origin_nodes(stream, topology)]


def origin_nodes(stream: StreamSource, topology: Topology) -> list[Node]:
    """The nodes that a stream's messages come to: those it names, else all gateways, else the sites
    of the edge, else all sites that compute. None where its broker belongs to no node."""
    nodes = list(topology.nodes.values())
    if named := stream.parameter("nodes"):
        names = _split_names(str(named))
        return [node for node in nodes if node.name in names and _takes_part(node)]
    if broker := stream.parameter("broker"):
        at = topology.at_broker(str(broker))
        return [node for node in nodes if node.name in at and _takes_part(node)]
    if stream.provider != "mqtt":
        return []
    gateways = [node for node in nodes if node.kind == GATEWAY]
    sites = [node for node in nodes if node.computes]
    return gateways or [site for site in sites if is_edge(site)] or sites


def _split_names(nodes: str) -> list[str]:
    return [part.strip() for part in nodes.split(",")]


def _unknown_nodes(loaded: LoadedQuery, topology: Topology) -> list[Problem]:
    """What streams say of nodes that nobody knows, or to whom no messages come."""
    found: list[Problem] = []
    known = list_names(node.name for node in topology.nodes.values() if _takes_part(node))
    for stream in loaded.query.streams:
        for name in _split_names(str(stream.provider.get("nodes") or "")):
            node = topology.node(name)
            if not name or (node is not None and _takes_part(node)):
                continue
            message = f"there is no node {name!r}" if node is None else f"{name} has no engine"
            found.append(_problem("NODE", message, stream.at, loaded.text, f"nodes: {known}"))
    return found


def _takes_part(node: Node) -> bool:
    """What comes to a site without an engine stays there."""
    return node.kind == GATEWAY or node.computes


def _nowhere(insight: Insight, text: str, sites: Sequence[Node]) -> Problem:
    names = ", ".join(site.name for site in sites)
    if sites:
        message, hint = f"no site may run {insight.name}: see its ALLOW", f"sites: {names}"
    else:
        message, hint = "there is no site to run it", START_SITE
    return _problem("NO_SITE", message, insight.at, text, hint)


def _problem(code: str, message: str, at: Position, text: str, hint: str) -> Problem:
    lines = text.splitlines()
    source = lines[at.line - 1] if 0 < at.line <= len(lines) else ""
    return Problem(code, message, at.line, at.column, source, hint)
