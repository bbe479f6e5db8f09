"""Changes to pipelines as pure functions: what is stored and what is asked make the new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fogline.common.errors import DataError, NotFoundError
from fogline.coordinator.pipelines.ports import START, STOP, UNINSTALL, UPDATE, Action
from fogline.deploy.resolve.binaries import step_parameters
from fogline.model.jobs import Job, Pipeline, Scalar, Steps


def patch_job(job: Job, parameters: Mapping[str, Scalar | None], running: bool | None) -> Job:
    """Parameters are added to those the job has; one that is None is taken back."""
    desired = job.running if running is None else running
    merged = {**job.parameters, **parameters}
    kept = {name: value for name, value in merged.items() if value is not None}
    return replace(job, parameters=kept, running=desired)


def with_job(pipeline: Pipeline, job: Job) -> Pipeline:
    return replace(pipeline, jobs=tuple(job if j.name == job.name else j for j in pipeline.jobs))


def without_job(pipeline: Pipeline, name: str) -> Pipeline:
    return replace(pipeline, jobs=tuple(job for job in pipeline.jobs if job.name != name))


def merge_pipelines(old: Pipeline | None, new: Pipeline) -> Pipeline:
    """The old pipeline with the new one's jobs put in."""
    fresh = {job.name: job for job in new.jobs}
    kept = [fresh.pop(job.name, job) for job in (old.jobs if old else ())]
    return replace(new, jobs=(*kept, *fresh.values()))


def apply_actions(
    pipelines: Mapping[str, Pipeline], actions: Iterable[Action]
) -> dict[str, Pipeline]:
    """The pipelines that are different afterwards. Raises NotFoundError for a job nobody has."""
    changed: dict[str, Pipeline] = {}
    for action in actions:
        now = {**pipelines, **changed}
        home = next((p for p in now.values() if p.job(action.job) is not None), None)
        if home is None:
            raise NotFoundError(f"there is no job {action.job!r} to {action.kind}")
        changed[home.name] = _apply_action(home, action)
    return {name: new for name, new in changed.items() if new != pipelines.get(name)}


def _apply_action(pipeline: Pipeline, action: Action) -> Pipeline:
    job = pipeline.job(action.job)
    if job is None or action.kind == UNINSTALL:
        return without_job(pipeline, action.job)
    if action.kind == UPDATE:
        steps = job.work.steps if isinstance(job.work, Steps) else ()
        return with_job(pipeline, patch_job(job, step_parameters(steps, action.parameters), None))
    if action.kind in (START, STOP):
        return with_job(pipeline, patch_job(job, {}, action.kind == START))
    raise DataError(f"no action {action.kind!r}")


def scalars(data: object) -> dict[str, Scalar | None]:
    """Parameters as they come from outside."""
    if not isinstance(data, dict):
        raise DataError("`parameters` must be a mapping")
    for key, value in data.items():
        if not isinstance(key, str) or not isinstance(value, str | float | int | bool | None):
            raise DataError(f"parameter {str(key)[:80]!r} must be a text, a number, true or false")
    return dict(data)
