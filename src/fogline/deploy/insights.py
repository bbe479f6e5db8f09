"""A query file over many nodes: which insights run where, and how their data gets there.

Every insight runs at one site, which its `ALLOW WHEN` and the scheduler choose; insights of one
site are one job. Of streams that come from elsewhere the first stage runs at their origin, so that
only panes travel; where a query's first stage cannot stand alone, the messages themselves do. An
insight made from one that runs at another site reads its results as a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fogline import settings
from fogline.deploy.flow import Flow, find_cycle, told_cycle
from fogline.deploy.insight_jobs import Group, jobs_of
from fogline.deploy.insight_text import group_text
from fogline.deploy.problems import listed
from fogline.deploy.topology import Topology
from fogline.deploy.works import StepsCheck, any_steps
from fogline.errors import PipelineError, Problem
from fogline.language.ast import Insight, Position
from fogline.model.jobs import Job, Pipeline
from fogline.model.nodes import GATEWAY, Node
from fogline.model.streams import StreamSource
from fogline.placement import Task, scheduler_named
from fogline.placement.allow import allows
from fogline.placement.schedulers import is_edge
from fogline.plan.operators import Emit, Operator, Requery, Scan, inputs_of, walk
from fogline.plan.query_file import LoadedQuery, check_text


def deploy_query(
    text: str, name: str, topology: Topology, check_steps: StepsCheck = any_steps
) -> Pipeline:
    """Raises QueryError for a wrong text, PipelineError where no node may or can run it."""
    loaded = check_text(text, settings.load())
    placed = _place(loaded, topology)
    jobs: list[Job] = []
    for group in _groups(loaded, placed, name, topology):
        jobs += jobs_of(group, topology, check_steps)
    _check_together(jobs)
    return Pipeline(name, tuple(jobs))


def _check_together(jobs: Sequence[Job]) -> None:
    names = [job.name for job in jobs]
    wrong = [f"there are two jobs {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
    problems = [Problem("DUPLICATE", text, 1, 1, hint="rename an insight") for text in wrong]
    if cycle := find_cycle(Flow.of(jobs)):
        problems.append(Problem("CYCLE", told_cycle(cycle), 1, 1, hint="read narrower topics"))
    if problems:
        raise PipelineError(tuple(problems))


@dataclass(frozen=True, slots=True)
class _Placed:
    """Which site each insight runs at, and the insights that others read from elsewhere."""

    sites: dict[str, str]
    exported: frozenset[str]


def _place(loaded: LoadedQuery, topology: Topology) -> _Placed:
    sites = [node for node in topology.nodes.values() if node.computes]
    chosen: dict[str, str] = {}
    problems = _unknown_nodes(loaded, topology)
    for insight in loaded.query.insights:
        emit = loaded.plan.emit(insight.name)
        allowed = [site for site in sites if allows(insight.options.allow, site)]
        if not allowed:
            problems.append(_nowhere(insight, loaded.text, sites))
            continue
        allowed = [site for site in allowed if site.name not in topology.gone] or allowed
        origins = _origins(_streams(emit), topology)
        origins += [chosen[name] for name in _fed(emit) if name in chosen]
        task = Task((insight.name,), tuple(dict.fromkeys(origins)))
        chosen[insight.name] = scheduler_named(insight.options.scheduler)(task, allowed).name
    if problems:
        raise PipelineError(tuple(problems))
    exported = {
        fed
        for name, site in chosen.items()
        for fed in _fed(loaded.plan.emit(name))
        if chosen.get(fed, site) != site
    }
    return _Placed(chosen, frozenset(exported))


def _groups(loaded: LoadedQuery, placed: _Placed, name: str, topology: Topology) -> Iterable[Group]:
    """One for each site, and one for each insight that others read from elsewhere."""
    members: dict[tuple[str, str], list[str]] = {}
    for insight, site in placed.sites.items():
        alone = insight if insight in placed.exported else ""
        members.setdefault((site, alone), []).append(insight)
    names = {key: _job_name(name, *key, topology) for key in members}
    jobs = {insight: names[key] for key, found in members.items() for insight in found}
    for (site, alone), insights in members.items():
        readers = [
            placed.sites[other]
            for other in placed.sites
            if alone in _fed(loaded.plan.emit(other)) and placed.sites[other] != site
        ]
        foreign = {
            fed: jobs[fed]
            for insight in insights
            for fed in _fed(loaded.plan.emit(insight))
            if fed in placed.sites and jobs[fed] != names[site, alone]
        }
        query = group_text(loaded, insights, foreign)
        origins = {
            stream.name: tuple(_origins([stream], topology))
            for insight in insights
            for stream in _streams(loaded.plan.emit(insight))
        }
        yield Group(
            names[site, alone], site, query, tuple(insights), origins, tuple(dict.fromkeys(readers))
        )


def _job_name(name: str, site: str, alone: str, topology: Topology) -> str:
    """The same however many others there are, so that jobs go on when some are added."""
    if not alone:
        return f"{name}-{site}"
    return f"{name}-{site}-{alone}" if topology.node(alone) else f"{name}-{alone}"


def _streams(emit: Emit) -> list[StreamSource]:
    """Those that an insight reads itself; not those of insights it is made from."""
    found: list[StreamSource] = []
    waiting: list[Operator] = [emit]
    while waiting:
        operator = waiting.pop()
        if isinstance(operator, Scan):
            found.append(operator.stream)
        elif not isinstance(operator, Requery):
            waiting += inputs_of(operator)
    return list(dict.fromkeys(reversed(found)))


def _fed(emit: Emit) -> list[str]:
    """Insights whose results an insight aggregates."""
    return list(dict.fromkeys(op.insight for op in walk(emit) if isinstance(op, Requery)))


def _origins(streams: Iterable[StreamSource], topology: Topology) -> list[str]:
    return [node.name for stream in streams for node in origin_nodes(stream, topology)]


def origin_nodes(stream: StreamSource, topology: Topology) -> list[Node]:
    """The nodes that a stream's messages come to: those it names, else all gateways, else the sites
    of the edge, else all sites that compute. None where its broker belongs to no node."""
    nodes = list(topology.nodes.values())
    if named := stream.parameter("nodes"):
        wanted = _named(str(named))
        return [node for node in nodes if node.name in wanted and _takes_part(node)]
    if broker := stream.parameter("broker"):
        at = topology.at_broker(str(broker))
        return [node for node in nodes if node.name in at and _takes_part(node)]
    if stream.provider != "mqtt":
        return []
    gateways = [node for node in nodes if node.kind == GATEWAY]
    sites = [node for node in nodes if node.computes]
    return gateways or [site for site in sites if is_edge(site)] or sites


def _named(nodes: str) -> list[str]:
    return [part.strip() for part in nodes.split(",")]


def _unknown_nodes(loaded: LoadedQuery, topology: Topology) -> list[Problem]:
    """What streams say of nodes that nobody knows, or to whom no messages come."""
    found: list[Problem] = []
    known = listed(node.name for node in topology.nodes.values() if _takes_part(node))
    for stream in loaded.query.streams:
        for name in _named(str(stream.provider.get("nodes") or "")):
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
        message, hint = "there is no site to run it", "start one: fogline agent --config FILE"
    return _problem("NO_SITE", message, insight.at, text, hint)


def _problem(code: str, message: str, at: Position, text: str, hint: str) -> Problem:
    lines = text.splitlines()
    source = lines[at.line - 1] if 0 < at.line <= len(lines) else ""
    return Problem(code, message, at.line, at.column, source, hint)
