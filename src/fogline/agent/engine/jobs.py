"""One job inside the engine process: made from its assignment, kept running, counted."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

from fogline.agent.engine.counters import InputCounter
from fogline.agent.engine.rejects import RejectMover
from fogline.agent.engine.suppressed import MutedLogs, muted_file
from fogline.agent.jobs.job import AgentJob, job_folder, job_reader, make_job, read_log
from fogline.agent.jobs.start_positions import life_name, load_starts
from fogline.common import settings
from fogline.common.errors import FoglineError
from fogline.log import LogError, SiteLog, set_position
from fogline.log.counting import RecordCounter
from fogline.model.jobs import FIRST, SECOND, Assignment, Code
from fogline.model.sites import JobStatus, QueryStatus
from fogline.plan.analysis.query_file import LoadedQuery
from fogline.plan.rules import optimise

if TYPE_CHECKING:
    from fogline.spark.jobs.log_append import Append
    from fogline.spark.session.session import Session


class SparkJob(Protocol):
    """What runs a job on Spark. After `stop` nothing else is called."""

    def keep_running(self) -> None:
        """Called again and again; starts what does not run."""

    def status(self) -> JobStatus: ...

    def needed_positions(self) -> Mapping[str, int]:
        """For every log it reads, the position it would go on from."""

    def with_parameters(self, parameters: Mapping[str, Any]) -> SparkJob | None:
        """The same with other parameters, to be run when this one has stopped; None where it is
        to be made anew."""

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Workplace:
    """What all jobs of a site work with."""

    spark: Session
    folder: Path
    logs: SiteLog
    append: Append
    trigger_ms: int
    live_ms: int


class EngineJob:
    """`assign` changes its desired state, `tick` reconciles."""

    def __init__(self, place: Workplace, assignment: Assignment, package: str) -> None:
        self._place = place
        self._assignment = assignment
        self._package = package
        self._folder = job_folder(place.folder, assignment.job)
        self._muted = MutedLogs(muted_file(self._folder))
        self._job: SparkJob | None = None
        self._mover = RejectMover(assignment.job, self._folder / "rejects", place.logs)
        self._checked = make_job(assignment, settings.load())
        self._counters = self._make_counters()
        self._input = InputCounter(self._folder / "counted" / "taken.json")
        self.run = assignment.run
        """What the status is about: see `Assignment.run`."""
        self._needed: dict[str, int] = {}
        self.status = _starting_status(assignment.job)

    def assign(self, assignment: Assignment, package: str) -> None:
        """A changed computation or changed parameters end the query; it begins again from its
        checkpoint where what it computes is the same."""
        old, self._assignment, self._package = self._assignment, assignment, package
        same = old.computation == assignment.computation
        if old.run != assignment.run:
            following = self._job.with_parameters(assignment.parameters) if self._job else None
            self._end()
            self._job = following if same else None
            self.run = assignment.run
            self.status = _starting_status(assignment.job)
        if same:
            self._checked = replace(self._checked, assignment=assignment)
        else:
            self._checked = make_job(assignment, settings.load())
            self._needed = {}
            self._counters = self._make_counters()
        with contextlib.suppress(LogError):  # it is tried again
            self._mute()

    def counts(self) -> dict[str, int]:
        """Since it was deployed."""
        taken, given = self._input.total, sum(counter.records for counter in self._counters)
        return {
            "records_in": taken.records,
            "records_out": given,
            "bad": taken.bad,
            "late": taken.late,
        }

    def keep_counts(self) -> None:
        """Writes down what was taken as far as that is known: Spark may have ended."""
        if self._folder.exists():
            with contextlib.suppress(OSError):
                self._input.note()

    def tick(self) -> None:
        try:
            self._keep_running()
        except FoglineError as error:
            query = QueryStatus("job", "failed", problem=str(error))
            self._set_status(JobStatus(self._assignment.job, (query,)))
            return
        if self._job is not None:
            status = self._job.status()
            self._set_status(_add_problem(status, self._note(status)))

    def _set_status(self, status: JobStatus) -> None:
        """Keeps it, and says in the engine's log what is new about it."""
        said = [(q.name, q.state, q.problem, q.detail) for q in status.queries]
        if said != [(q.name, q.state, q.problem, q.detail) for q in self.status.queries]:
            for name, state, problem, detail in said:
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                head = f"{at} job {status.name}:"
                text = f"{head} {name} {state}"
                lines = [f"{text}: {problem}" if problem else text]
                lines += [f"{head}   {line}" for line in detail.splitlines()]
                print("\n".join(lines), file=sys.stderr, flush=True)
        self.status = status

    def _keep_running(self) -> None:
        self._mute()
        if self._job is None:
            place = replace(self._place, append=self._muted.around(self._place.append))
            self._job = _make_spark_job(place, self._checked, self._package, self._folder)
        self._job.keep_running()

    def _note(self, status: JobStatus) -> str:
        """Notes in the logs what is still needed, moves what was rejected, counts what came and
        went.

        Returns what went wrong with that (there may be no space), if anything: it is tried again,
        and the job goes on.
        """
        problems = []
        take = partial(self._input.add, status)
        for step in (self._note_needed, self._mover.move, self._count, take):
            try:
                step()
            except (LogError, OSError) as error:
                problems.append(str(error))
        return "; ".join(problems)

    def _note_needed(self) -> None:
        assert self._job is not None
        for log, position in self._job.needed_positions().items():
            folder = self._place.logs.folder(log)
            if self._needed.get(log) != position and folder.exists():
                set_position(folder, job_reader(self._assignment.job), position)
                self._needed[log] = position

    def _count(self) -> None:
        """What is muted is not counted: another job may write the same log."""
        dropped = self._checked.dropped_logs()
        for log, counter in zip(self._checked.computed_logs(), self._counters, strict=True):
            counter.count_on(log not in dropped)
            counter.update()

    def stop(self) -> None:
        """What cannot be moved or counted now is when it begins again."""
        self._end()
        for step in (self._mover.move, self._mover.close, self._count, self._close_counters):
            try:
                step()
            except (LogError, OSError) as error:
                print(f"job {self._assignment.job}: {error}", file=sys.stderr, flush=True)

    def _close_counters(self) -> None:
        if self._folder.exists():
            self._input.note()
            for counter in self._counters:
                counter.close()

    def _end(self) -> None:
        if self._job is not None:
            with contextlib.suppress(LogError, OSError):
                self._input.add(self._job.status())
            self._job.stop()
            self._job = None

    def _mute(self) -> None:
        self._muted.set(self._checked.dropped_logs())

    def _make_counters(self) -> list[RecordCounter]:
        job, logs = self._checked, self._place.logs
        shared = job.assignment.outlet != job.name
        return [
            RecordCounter(logs.folder(log), self._folder / "counted" / str(index), shared)
            for index, log in enumerate(job.computed_logs())
        ]


def _starting_status(name: str) -> JobStatus:
    return JobStatus(name, (QueryStatus("job", "starting"),))


def _add_problem(status: JobStatus, problem: str) -> JobStatus:
    """The problem beside a query that has none of its own; nothing else of it changes."""
    if not problem or not status.queries or status.queries[0].problem:
        return status
    first, *others = status.queries
    return replace(status, queries=(replace(first, problem=problem), *others))


def _make_spark_job(place: Workplace, job: AgentJob, package: str, folder: Path) -> SparkJob:
    if job.loaded is not None:
        return _make_query_job(place, job, job.loaded, folder)
    return _make_code_job(place, job.assignment, Path(package), folder)


def own_trigger(trigger_ms: int, job: str) -> int:
    """The interval of a job's micro-batches: up to a twenty-fifth longer, by its name. Spark begins
    batches at multiples of the interval since 1970. With one interval all jobs of all sites would
    begin theirs at once, and a record would wait for the next one at every job of a chain."""
    return trigger_ms + crc32(job.encode()) % (trigger_ms // 25 + 1)


def _make_query_job(place: Workplace, job: AgentJob, loaded: LoadedQuery, folder: Path) -> SparkJob:
    from fogline.spark.compile.functions import spark_functions
    from fogline.spark.jobs.first_stage_job import FirstStageJob
    from fogline.spark.jobs.site_job import JobSpec, SiteJob

    assignment = job.assignment
    plan, _ = optimise(loaded.plan)
    spec = JobSpec(
        name=assignment.job,
        plan=plan,
        life=life_name(folder, assignment),
        folder=folder,
        logs=place.logs.root,
        log_folder=place.logs.folder,
        append=place.append,
        functions=spark_functions(loaded.functions),
        trigger_ms=own_trigger(place.trigger_ms, assignment.job),
        live_ms=place.live_ms,
        reads=tuple(read_log(read) for read in assignment.reads),
        starts=load_starts(folder, assignment),
        second=job.stage == SECOND,
        outlet=assignment.outlet,
        muted=muted_file(folder),
    )
    kind = FirstStageJob if job.stage == FIRST else SiteJob
    return kind(place.spark, spec)


def _make_code_job(
    place: Workplace, assignment: Assignment, package: Path, folder: Path
) -> SparkJob:
    from fogline.spark.jobs.code_job import CodeJob, CodeSpec
    from fogline.spark.jobs.user_code import load_function

    work = assignment.work
    assert isinstance(work, Code)
    parameters: dict[str, Any] = dict(assignment.parameters)
    spec = CodeSpec(
        name=assignment.job,
        function=partial(load_function, package, work.file, work.package, work.entry),
        parameters=parameters,
        input=assignment.input,
        reads=tuple(read_log(place_) for place_ in assignment.reads),
        folder=folder,
        life=life_name(folder, assignment),
        logs=place.logs.root,
        log_folder=place.logs.folder,
        starts=load_starts(folder, assignment),
        trigger_ms=own_trigger(place.trigger_ms, assignment.job),
    )
    return CodeJob(place.spark, spec)
