"""What people see of jobs and nodes: the desired state beside what the nodes report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fogline.coordinator.reconcile.decide import is_local
from fogline.coordinator.reconcile.planner import DesiredState
from fogline.coordinator.reconcile.state import DesiredJob, Memory
from fogline.coordinator.repository.pipelines_table import Stored
from fogline.model.nodes import SETTLED, NodeView, Observed

WAITING, UNREACHABLE = "waiting", "unreachable"


def job_status(
    name: str, plan: DesiredState, views: Mapping[str, NodeView], memory: Memory
) -> dict[str, Any]:
    """State, counts and problem of one desired job."""
    pipeline, job = plan.jobs[name]
    desired = plan.desired.get(name)
    node = desired.node if desired else job.node
    view = views.get(node)
    observed = view.jobs.get(name) if view else None
    version = desired.version if desired else ""
    state, problem = _state(name, version, view, observed)
    problem = problem or memory.problem(node, name)
    if state == WAITING and not problem:
        problem = _waits_for(name, plan, views)
    problem = problem or (_held_back(desired) if desired else "")
    return {
        "name": name,
        "pipeline": pipeline,
        "node": node,
        "state": state,
        "problem": problem,
        "parameters": dict(job.parameters),
        "running": job.running,
        "muted": list(job.muted),
        **_counts(observed),
    }


def _state(
    name: str, version: str, view: NodeView | None, observed: Observed | None
) -> tuple[str, str]:
    if view is None:
        return UNREACHABLE, "its node has never been seen"
    if not view.online:
        return UNREACHABLE, f"its node is {view.state}"
    if is_local(view, name):
        return WAITING, "the node runs another job of this name from its own configuration"
    if observed is None or observed.version != version:
        return WAITING, ""
    return observed.state, observed.problem


def _waits_for(name: str, plan: DesiredState, views: Mapping[str, NodeView]) -> str:
    """Who has to be there first: somebody who reads what the job writes."""
    for reader in sorted(plan.order.downstream.get(name, ())):
        desired = plan.desired.get(reader)
        view = views.get(desired.node) if desired else None
        seen = view.jobs.get(reader) if view else None
        if desired is not None and (seen is None or seen.version != desired.version):
            return f"waits for {reader} at {desired.node}, which reads what it writes"
    return ""


def _held_back(desired: DesiredJob) -> str:
    """Its results are for a node that nobody has seen."""
    unknown = sorted({route.node for route in desired.assignment.routes if route.waits})
    if not unknown:
        return ""
    return f"what it sends to {', '.join(unknown)} waits at {desired.node}: never seen yet"


def progress(plan: DesiredState, views: Mapping[str, NodeView]) -> dict[str, Any]:
    """How far everything is, in few words: quick to ask for again and again."""
    states = Counter(
        _state_at(name, item, views.get(item.node)) for name, item in plan.desired.items()
    )
    extra = sum(
        _is_extra(name, job, view, plan) for name, view in views.items() for job in view.jobs
    )
    settled = not extra and SETTLED.issuperset(states) and plan.jobs.keys() <= plan.desired.keys()
    return {"jobs": len(plan.jobs), "states": dict(states), "extra": extra, "settled": settled}


def _state_at(name: str, desired: DesiredJob, view: NodeView | None) -> str:
    return _state(name, desired.version, view, view.jobs.get(name) if view else None)[0]


def _is_extra(node: str, job: str, view: NodeView, plan: DesiredState) -> bool:
    """Whether a node reports a job of ours that is not desired there."""
    desired = plan.desired.get(job)
    ours = job in plan.order.ours and not is_local(view, job)
    return ours and (desired is None or desired.node != node)


def _counts(observed: Observed | None) -> dict[str, Any]:
    seen = observed or Observed("", "", "")
    return {
        "runs": list(seen.runs),
        "records_in": seen.records_in,
        "records_out": seen.records_out,
        "bad": seen.bad,
        "late": seen.late,
        "lag_bytes": seen.lag_bytes,
    }


def node_status(view: NodeView) -> dict[str, Any]:
    return {
        **view.node.as_json(),
        "state": view.state,
        "healthy": view.healthy if view.online else None,
        "since": view.since,
        "told": view.reported_at,
        "jobs": [item.as_json() for _, item in sorted(view.jobs.items())],
        "links": {name: asdict(link) for name, link in sorted(view.links.items())},
    }


def pipeline_summary(stored: Stored) -> dict[str, Any]:
    return {
        "name": stored.name,
        "format": stored.format,
        "revision": stored.revision,
        "at": stored.at,
        "jobs": [job.name for job in stored.pipeline.jobs],
    }
