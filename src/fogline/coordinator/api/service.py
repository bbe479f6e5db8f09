"""Everything a coordinator can be asked; REST and tests call it. Safe for many threads.

What a method has accepted is in the store when it returns; the control loop makes it so afterwards.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fogline.common.errors import (
    ConflictError,
    DataError,
    FoglineError,
    NotFoundError,
    UnavailableError,
)
from fogline.coordinator.pipelines.changes import (
    apply_actions,
    merge_pipelines,
    patch_job,
    with_job,
    without_job,
)
from fogline.coordinator.pipelines.packages import PackageStore, Pinned
from fogline.coordinator.pipelines.ports import (
    FORMATS,
    PLAN,
    CompileContext,
    CompiledPipeline,
    Compiler,
    ControlPort,
)
from fogline.coordinator.reconcile.loop import Loop
from fogline.coordinator.reconcile.planner import DesiredState, Nodes, Planner
from fogline.coordinator.reconcile.secret_handover import SecretHandover
from fogline.coordinator.reconcile.status import job_status, node_status, pipeline_summary, progress
from fogline.coordinator.replication.loop import ReplicaLoop
from fogline.coordinator.replication.service import ReplicaService
from fogline.coordinator.repository.pipelines_table import Stored
from fogline.coordinator.repository.store import Entry, Store
from fogline.deploy.diff.diff import Diff, diff
from fogline.deploy.resolve.binaries import step_parameters
from fogline.model.jobs import Code, Job, Pipeline, Scalar, Steps
from fogline.model.nodes import is_name

T = TypeVar("T")

LOGS_SECONDS = 10.0
_GATHER_SECONDS = 0.002
"""Nodes report one after the other: so much later there are more of them to count at once."""
_REPORT_SECONDS = 0.05
"""How long a change waits until it is sent to the nodes, before it is answered."""
SINGLE = "job"
"""The format of a job that was posted alone."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a service is made of."""

    store: Store
    packages: PackageStore
    control: ControlPort
    nodes: Nodes
    planner: Planner
    loop: Loop
    compiler: Compiler
    replicas: ReplicaLoop | None = None
    secret: SecretHandover | None = None


class Service:
    def __init__(self, parts: Parts, clock: Callable[[], float] = time.time) -> None:
        self.packages = parts.packages
        self._parts = parts
        self._clock = clock
        self._lock = threading.RLock()
        self._replicas: ReplicaService | None = None
        if parts.replicas is not None:
            self._replicas = ReplicaService(parts.replicas, parts.nodes, parts.store, clock)

    @property
    def replicas(self) -> ReplicaService:
        if self._replicas is None:
            raise UnavailableError("copies of stored values are not looked after here")
        return self._replicas

    # ── pipelines ────────────────────────────────────────────────────────────────────────────────

    def put_pipeline(
        self,
        name: str,
        text: str,
        format: str,
        dry_run: bool = False,
        packages: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Replaces a pipeline, or with `dry_run` only returns what would change. `packages`: hashes
        of files that the text names, instead of what is known under these names."""
        _check_name(name, "pipeline")
        if format not in FORMATS:
            raise DataError(f"no format {format!r}", ", ".join(FORMATS))

        pinned = Pinned(self.packages, packages or {})

        def compile(plan: DesiredState) -> CompiledPipeline:
            world = replace(self._world(plan, pinned), before=_find_deployed(plan, name))
            return self._parts.compiler.compile(name, text, format, world)

        with self._with_stable_plan(compile) as (plan, compiled):
            return self._put(plan, _with_name(compiled, name), text, format, dry_run)

    def own_diff(self, name: str) -> dict[str, Any]:
        """From what is deployed to what the pipeline's own text says, with the packages and query
        files it was deployed with, whatever their names stand for now."""

        def compile(plan: DesiredState) -> tuple[Stored, CompiledPipeline]:
            stored = _there(plan.stored.get(name), f"pipeline {name!r}")
            if stored.format == SINGLE:
                return stored, CompiledPipeline(stored.pipeline)
            bound = stored.pipeline
            world = replace(self._world(plan), bound=bound, before=_find_deployed(plan, name))
            compiler = self._parts.compiler
            return stored, compiler.compile(name, stored.text, stored.format, world)

        with self._with_stable_plan(compile) as (plan, (stored, compiled)):
            return self._put(plan, _with_name(compiled, name), stored.text, stored.format, True)

    def delete_pipeline(self, name: str) -> dict[str, Any]:
        with self._lock:
            plan = self._plan()
            stored = _there(plan.stored.get(name), f"pipeline {name!r}")
            difference = diff(stored.pipeline, None)
            self._drop(plan, stored)
            return {"name": name, "deleted": True, "diff": difference.as_json()}

    def pipelines(self) -> list[dict[str, Any]]:
        return [pipeline_summary(stored) for stored in self._plan().stored.values()]

    def pipeline(self, name: str) -> dict[str, Any]:
        plan = self._plan()
        stored = _there(plan.stored.get(name), f"pipeline {name!r}")
        jobs = self._statuses(plan, (job.name for job in stored.pipeline.jobs))
        return pipeline_summary(stored) | {"text": stored.text, "jobs": jobs}

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────

    def post_job(self, description: Mapping[str, Any]) -> dict[str, Any]:
        """Takes a job that is described alone: a pipeline of one, named like it."""

        def compile(plan: DesiredState) -> CompiledPipeline:
            return self._parts.compiler.compile_job(description, self._world(plan))

        with self._with_stable_plan(compile) as (plan, compiled):
            job = compiled.pipeline.jobs[0]
            _check_name(job.name, "job")
            known = plan.jobs.get(job.name)
            if known is not None and known[1] != job:
                hint = f"delete it first, or change pipeline {known[0]!r}"
                raise ConflictError(f"there is another job {job.name!r}", hint)
            if known is None and job.name in plan.stored:
                raise ConflictError(f"there is a pipeline {job.name!r} already")
            if known is None:
                self._put(plan, _with_name(compiled, job.name), "", SINGLE, False)
            return self.job(job.name) | {"changed": known is None}

    def jobs(self) -> list[dict[str, Any]]:
        plan = self._plan()
        return self._statuses(plan, plan.jobs)

    def job(self, name: str) -> dict[str, Any]:
        plan = self._plan()
        _, job = _there(plan.jobs.get(name), f"job {name!r}")
        return self._statuses(plan, [name])[0] | {"description": job.as_json()}

    def delete_job(self, name: str) -> dict[str, Any]:
        """A pipeline whose last job goes is deleted with it."""
        with self._lock:
            plan = self._plan()
            home, _ = _there(plan.jobs.get(name), f"job {name!r}")
            self._store_changed(plan, without_job(plan.stored[home].pipeline, name))
            return {"name": name, "deleted": True}

    def patch_job(
        self, name: str, parameters: Mapping[str, Scalar | None], running: bool | None
    ) -> dict[str, Any]:
        """Updates parameters, starts or stops; the computation goes on. A parameter that is None
        is taken back. Raises DataError for parameters that are not for what the job computes."""

        def change(plan: DesiredState) -> tuple[str, Job, Job]:
            home, job = _there(plan.jobs.get(name), f"job {name!r}")
            values = parameters
            if plan.stored[home].format == PLAN and isinstance(job.work, Steps):
                values = step_parameters(job.work.steps, parameters)
            new = patch_job(job, values, running)
            if dict(new.parameters) != dict(job.parameters):
                self._parts.compiler.check_job(new, self._world(plan))
            return home, job, new

        with self._with_stable_plan(change) as (plan, (home, job, new)):
            if new != job:
                self._store_changed(plan, with_job(plan.stored[home].pipeline, new))
            return self.job(name) | {"changed": new != job}

    def logs(self, name: str, lines: int) -> dict[str, Any]:
        """What the job said last, asked from its node."""
        plan = self._plan()
        _, job = _there(plan.jobs.get(name), f"job {name!r}")
        view = self._parts.nodes.views().get(job.node)
        if view is None or not view.online:
            hint = "start it there with fogline agent or gateway, and its --config"
            raise UnavailableError(f"node {job.node!r} cannot be asked: it is not online", hint)
        body = {"job": name, "lines": lines}
        try:
            future = self._parts.control.send(job.node, "logs", body, LOGS_SECONDS)
            return dict(future.result(LOGS_SECONDS + 2))
        except (FoglineError, TimeoutError) as error:
            text = f"node {job.node!r} did not send its log: {error}"
            raise UnavailableError(text) from error

    # ── the rest ─────────────────────────────────────────────────────────────────────────────────

    def nodes(self) -> list[dict[str, Any]]:
        history = self._parts.nodes.history
        return [
            node_status(view) | history.counts(name)
            for name, view in sorted(self._parts.nodes.views().items())
        ]

    def history(self, name: str) -> dict[str, Any]:
        """When a node was first seen, failed and was restarted, and its scores."""
        return self._parts.nodes.history.describe(name, self._clock())

    def forget_node(self, name: str) -> dict[str, Any]:
        """For a node that will not come back."""
        view = _there(self._parts.nodes.views().get(name), f"node {name!r}")
        if view.online:
            raise ConflictError(f"node {name!r} is online", "stop it first")
        self._parts.nodes.forget(name)
        if self._replicas is not None:
            self._replicas.forgot()
        return {"name": name, "forgotten": True}

    def fabric(self) -> dict[str, Any]:
        """Which sites have the fabric's secret; never the secret itself."""
        return self._secret().status()

    def rotate_secret(self, accept_seconds: float) -> dict[str, Any]:
        """Makes a new secret of the fabric; the one of before counts for so many seconds."""
        secret = self._secret()
        secret.rotate(accept_seconds)
        entry = Entry(self._clock(), "secret rotated", {"accept_old_seconds": accept_seconds})
        self._parts.store.log([entry])
        return secret.status()

    def _secret(self) -> SecretHandover:
        if self._parts.secret is None:
            raise UnavailableError("the fabric's secret is not looked after here")
        return self._parts.secret

    def remove_packages(self) -> list[str]:
        """Those that no job refers to, and none did for a day; returns their hashes."""
        with self._lock:
            jobs = (job for _, job in self._plan().jobs.values())
            used = {job.work.package for job in jobs if isinstance(job.work, Code)}
            removed = self.packages.remove_unused(used)
        if removed:
            entry = Entry(self._clock(), "packages", {"removed": removed[:20]})
            self._parts.store.log([entry])
        return removed

    def packages_known(self) -> list[dict[str, Any]]:
        known = self._parts.store.aliases().values()
        return [{key: getattr(a, key) for key in a.__dataclass_fields__} for a in known]

    def events(self, limit: int = 100, after: int = 0) -> list[dict[str, Any]]:
        entries = self._parts.store.events(limit, after)
        return [{"id": e.id, "at": e.at, "kind": e.kind, **e.body} for e in entries]

    def progress(self, settle: float = 0.0) -> dict[str, Any]:
        """How many jobs are in which state, and how many are still where they should not be. Waits
        up to `settle` seconds until the observed state is the desired one."""
        deadline, news = time.monotonic() + settle, self._parts.loop.news
        while True:
            seen, views = news.number, self._parts.nodes.views()
            summary = progress(self._parts.planner.plan(views), views)
            left = deadline - time.monotonic()
            if summary["settled"] or left <= 0:
                return summary
            news.wait(seen, left)
            time.sleep(min(left, _GATHER_SECONDS))

    def health(self) -> dict[str, Any]:
        parts = self._parts
        healthy = parts.loop.alive and parts.control.connected and not parts.loop.problem
        healthy = healthy and (parts.replicas is None or parts.replicas.alive)
        return {
            "ok": healthy,
            "control": "connected" if parts.control.connected else "away",
            "problem": parts.control.problem or parts.loop.problem,
            "failures": parts.loop.failures,
        }

    # ── inside ───────────────────────────────────────────────────────────────────────────────────

    def _plan(self) -> DesiredState:
        return self._parts.planner.plan()

    @contextlib.contextmanager
    def _with_stable_plan(
        self, make: Callable[[DesiredState], T]
    ) -> Iterator[tuple[DesiredState, T]]:
        """What is made of the plan, and the plan, which stays as it is until the end. Made outside
        the lock, since code may be tried for it; again where the plan has changed meanwhile, which
        is quick: what is known of the code is remembered."""
        plan = self._plan()
        made = make(plan)
        with self._lock:
            now = self._plan()
            yield now, made if now is plan else make(now)

    def _world(self, plan: DesiredState, pinned: Pinned | None = None) -> CompileContext:
        return CompileContext(
            self._parts.nodes.views(),
            {**self._parts.store.aliases(), **(pinned.code if pinned else {})},
            pinned.text_of if pinned else self.packages.text_of,
            self.packages.check_code,
            {job: home for job, (home, _) in plan.jobs.items()},
        )

    def _statuses(self, plan: DesiredState, names: Iterable[str]) -> list[dict[str, Any]]:
        views, memory = self._parts.nodes.views(), self._parts.loop.memory
        return [job_status(name, plan, views, memory) for name in names]

    def _put(
        self, plan: DesiredState, compiled: CompiledPipeline, text: str, format: str, dry_run: bool
    ) -> dict[str, Any]:
        before = plan.stored.get(compiled.pipeline.name)
        old = before.pipeline if before else None
        new = merge_pipelines(old, compiled.pipeline) if compiled.partial else compiled.pipeline
        pipelines = {name: stored.pipeline for name, stored in plan.stored.items()}
        others = apply_actions({**pipelines, new.name: new}, compiled.actions)
        new = others.pop(new.name, new)
        rest = {name: p for name, p in {**pipelines, **others}.items() if name != new.name}
        difference = diff(old, new)
        new = difference.apply(old) or new
        self._check(plan, new, rest, compiled)
        if compiled.partial and before is not None:
            text, format = before.text, before.format
        empty = compiled.partial and not new.jobs
        fresh = before is None or (before.text, before.format, old) != (text, format, new)
        fresh = fresh and not (empty and before is None)
        revision = before.revision if before else 0
        if fresh and not dry_run and empty:
            self._store_changed(plan, new)
        elif fresh and not dry_run:
            revision = self._keep(plan, new, format, text)
        for other in others.values() if not dry_run else ():
            self._store_changed(plan, other)
        change = _change_payload(new.name, revision, difference, compiled.notes) | {
            "left": len(new.jobs)
        }
        changes = [diff(pipelines[o.name], o).as_json() for o in others.values()]
        changed = fresh or bool(others)
        return change | {"changed": changed and not dry_run, "dry_run": dry_run, "others": changes}

    def _check(
        self,
        plan: DesiredState,
        new: Pipeline,
        others: Mapping[str, Pipeline],
        compiled: CompiledPipeline,
    ) -> None:
        compiler, world = self._parts.compiler, self._world(plan)
        for package in {job.work.package for job in new.jobs if isinstance(job.work, Code)}:
            self.packages.path(package)  # it may have been removed since the text was read
        for action in compiled.actions:
            found = (pipeline.job(action.job) for pipeline in (new, *others.values()))
            job = next((job for job in found if job is not None), None)
            if job is not None and action.parameters:
                compiler.check_job(job, world)
        compiler.check_whole(new, others.values(), world, compiled.where)

    def _store_changed(self, plan: DesiredState, pipeline: Pipeline) -> None:
        stored = plan.stored[pipeline.name]
        if pipeline.jobs:
            self._keep(plan, pipeline, stored.format, stored.text)
        else:
            self._drop(plan, stored)

    def _keep(self, plan: DesiredState, pipeline: Pipeline, format: str, text: str) -> int:
        before = plan.stored.get(pipeline.name)
        names = [job.name for job in before.pipeline.jobs] if before else []
        at = self._clock()
        revision = self._parts.store.put(pipeline, format, text, at, plan.upstream(names))
        self._note(at, "pipeline", {"pipeline": pipeline.name, "revision": revision})
        return revision

    def _drop(self, plan: DesiredState, stored: Stored) -> None:
        at = self._clock()
        names = [job.name for job in stored.pipeline.jobs]
        self._parts.store.delete(stored.name, at, plan.upstream(names))
        self._note(at, "deleted", {"pipeline": stored.name})

    def _note(self, at: float, kind: str, body: dict[str, Any]) -> None:
        self._parts.planner.note_change()
        self._parts.loop.hurry(_REPORT_SECONDS)
        self._parts.store.log([Entry(at, kind, body)])
        self._parts.store.tidy()


def _change_payload(
    name: str, revision: int, difference: Diff, notes: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "name": name,
        "revision": revision,
        "diff": difference.as_json(),
        "text": str(difference),
        "empty": difference.empty,
        "notes": list(notes),
    }


def _there(found: T | None, what: str) -> T:
    if found is None:
        raise NotFoundError(f"there is no {what}")
    return found


def _find_deployed(plan: DesiredState, name: str) -> Pipeline | None:
    stored = plan.stored.get(name)
    return stored.pipeline if stored is not None else None


def _check_name(name: str, what: str) -> None:
    if not is_name(name):
        raise DataError(
            f"a {what} cannot be called {name[:100]!r}", "no / + # $, 120 bytes at most"
        )


def _with_name(compiled: CompiledPipeline, name: str) -> CompiledPipeline:
    """The address names the pipeline, whatever its text says."""
    pipeline = Pipeline(name, compiled.pipeline.jobs)
    return replace(compiled, pipeline=pipeline)
