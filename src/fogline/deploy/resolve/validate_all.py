"""What only all pipelines together show: names that are taken, circles, what gateways refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fogline.common.errors import PipelineError, Problem
from fogline.deploy.manifest.problems import Where
from fogline.deploy.resolve.assign import JobAssignments, assignments, connect
from fogline.deploy.resolve.flow import Flow, describe_cycle, find_cycle
from fogline.deploy.resolve.topology import Topology
from fogline.model.jobs import LOG, Assignment, Pipeline
from fogline.model.nodes import GATEWAY

GatewayCheck = Callable[[Assignment], str | None]
"""Why a gateway would not take an assignment, or None."""


def check_whole(
    new: Pipeline,
    others: Iterable[Pipeline],
    topology: Topology,
    check: GatewayCheck,
    where: Where,
) -> None:
    """Raises PipelineError where the new pipeline does not go with the others, or where a gateway
    would refuse a job as it is assigned. `where` its jobs are written, problems are placed."""
    pipelines = [new, *others]
    found = [*_check_names(new, pipelines[1:], where)]
    if not found:
        flow, assigned = connect(pipelines, topology)
        found += [*_circles(new, pipelines, flow, where)]
        found += [*_check_gateways(pipelines, assigned, topology, check, where)]
    if found:
        raise PipelineError(tuple(found))


def _check_names(new: Pipeline, others: Iterable[Pipeline], where: Where) -> Iterator[Problem]:
    homes = {job.name: other.name for other in others for job in other.jobs}
    for job in new.jobs:
        if job.name in homes:
            message = f"there is a job {job.name} already, in pipeline {homes[job.name]}"
            yield where.problem("EXISTS", message, job.name, "names are unique among all jobs")


def _circles(
    new: Pipeline, pipelines: list[Pipeline], flow: Flow, where: Where
) -> Iterator[Problem]:
    cycle = find_cycle(flow, [job.name for job in new.jobs])
    if not cycle:
        return
    homes = {job.name: pipeline.name for pipeline in pipelines for job in pipeline.jobs}
    ours = [name for name in cycle if homes[name] == new.name]
    if ours:
        others = dict.fromkeys(homes[name] for name in cycle if homes[name] != new.name)
        hint = f"it goes through {', '.join(others)}" if others else ""
        yield where.problem("CYCLE", describe_cycle(cycle), ours[0], hint)


def _check_gateways(
    pipelines: list[Pipeline],
    assigned: JobAssignments,
    topology: Topology,
    check: GatewayCheck,
    where: Where,
) -> Iterator[Problem]:
    """Of the new jobs, and of those that are assigned otherwise because of them."""
    gateways = {name for name, node in topology.nodes.items() if node.kind == GATEWAY}
    if not any(job.node in gateways for pipeline in pipelines for job in pipeline.jobs):
        return
    before = assignments(pipelines[1:], topology)
    for name, (node, assignment) in assigned.items():
        if node not in gateways or before.get(name) == (node, assignment):
            continue
        if reason := check(assignment):
            chained = any(route.mode == LOG for route in assignment.routes)
            hint = "one job cannot feed another on its gateway: join them" if chained else ""
            yield where.problem("GATEWAY", f"{name} at {node}: {reason}", name, hint)
