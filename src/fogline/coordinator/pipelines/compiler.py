"""What pipeline texts mean, by way of `fogline.deploy`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fogline.common import settings
from fogline.common.errors import DataError
from fogline.coordinator.pipelines.ports import (
    INSIGHTS,
    PLAN,
    UPDATE,
    Action,
    CompileContext,
    CompiledPipeline,
)
from fogline.deploy.manifest.composition import read_composition
from fogline.deploy.manifest.deployment_plan import read_deployment_plan
from fogline.deploy.manifest.manifest import DEPLOY, Composition
from fogline.deploy.manifest.problems import Where
from fogline.deploy.query.insights import deploy_query
from fogline.deploy.resolve.resolve import DEFAULT_NAME, Package, resolve
from fogline.deploy.resolve.topology import Topology
from fogline.deploy.resolve.validate_all import check_whole
from fogline.gateway.jobs.checks import problems_of, steps_problem
from fogline.model.jobs import Assignment, Code, Job, Pipeline, Query, Scalar, Steps
from fogline.model.nodes import is_name
from fogline.plan.user_functions import UserFunctions


class DeployCompiler:
    """Compositions, deployment plans and query files."""

    def compile(self, name: str, text: str, format: str, world: CompileContext) -> CompiledPipeline:
        if format == INSIGHTS:
            topology = Topology.of(world.views.values())
            return CompiledPipeline(deploy_query(text, name, topology, _check_steps, world.before))
        read = read_deployment_plan if format == PLAN else read_composition
        # The address names the pipeline; a name in the text is for people.
        composition = replace(read(text), name="")
        compiled = _resolve_composition(composition, name, world)
        partial = any(job.action != DEPLOY for job in composition.jobs)
        brief = [job for job in composition.jobs if job.is_brief] if partial else []
        actions = tuple(
            Action(job.action, job.name.text, job.parameters if job.action == UPDATE else {})
            for job in brief
            if job.name.text in world.existing
        )
        return replace(compiled, actions=actions, partial=partial)

    def compile_job(
        self, description: Mapping[str, Any], world: CompileContext
    ) -> CompiledPipeline:
        """A job's JSON is a composition of one."""
        text = json.dumps({"jobs": [description]}, indent=1, ensure_ascii=False)
        composition = read_composition(text)
        named = (job.name.text for job in composition.jobs if is_name(job.name.text))
        return _resolve_composition(composition, next(named, DEFAULT_NAME), world)

    def check_job(self, job: Job, world: CompileContext) -> None:
        reason: str | None = None
        if isinstance(job.work, Steps):
            reason = _check_steps(job.work.steps, job.input, job.parameters)
        elif isinstance(job.work, Code):
            package = Package(job.work.package, job.work.file)
            reason = world.check(package, job.work.entry, job.parameters)
        elif job.parameters:
            reason = "a query has no parameters"
        if reason is not None:
            raise DataError(f"job {job.name}: {reason}", "nothing was changed")

    def check_whole(
        self, new: Pipeline, others: Iterable[Pipeline], world: CompileContext, where: Where
    ) -> None:
        topology = Topology.of(world.views.values())
        check_whole(new, others, topology, _check_gateway, where)


def _resolve_composition(
    composition: Composition, name: str, world: CompileContext
) -> CompiledPipeline:
    code = {
        alias: Package(package.sha256, package.file)
        for alias in composition.code_files
        if (package := world.code.get(alias)) is not None
    }
    files = {
        file: text for file in composition.query_files if (text := world.text_of(file)) is not None
    }
    for job in composition.jobs if world.bound is not None else ():
        stored = world.bound.job(job.name.text) if world.bound else None
        if stored is not None and isinstance(stored.work, Code) and job.code_file:
            code[job.code_file] = Package(stored.work.package, stored.work.file)
        if stored is not None and isinstance(stored.work, Query) and job.query_file:
            files[job.query_file] = stored.work.text
    functions = UserFunctions(settings.load().functions)
    found = resolve(
        composition,
        Topology.of(world.views.values()),
        code,
        world.check,
        world.existing,
        name=name,
        files=files,
        functions=functions.check,
        check_steps=_check_steps,
    )
    return CompiledPipeline(found.pipeline, found.notes, where=composition.where)


def _check_steps(
    steps: Sequence[Mapping[str, Any]], given: Mapping[str, str], parameters: Mapping[str, Scalar]
) -> str | None:
    """What a gateway would say to these steps."""
    return steps_problem(steps, given, parameters) or None


def _check_gateway(assignment: Assignment) -> str | None:
    """What a gateway would say to a job."""
    return "; ".join(problems_of(assignment)) or None
