"""All jobs of a site: those of its configuration, those it was assigned, those about to end."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from fogline.agent.config.site import SiteConfig
from fogline.agent.jobs.assignments import Assignments
from fogline.agent.jobs.draining import Owed, load_endings, store_endings
from fogline.agent.jobs.job import AgentJob, job_folder, job_reader, make_job, sendings
from fogline.agent.jobs.start_positions import note_insight_routes, note_routes, note_starts
from fogline.common import settings
from fogline.common.errors import FoglineError, UsageError
from fogline.log import SiteLog, forget_reader, get_position
from fogline.model.jobs import Assignment, Query
from fogline.model.nodes import NO_ENGINE
from fogline.plan.analysis.query_file import read_text

_PATIENT_SECONDS = 60.0
"""So long a job of the same name that sends elsewhere waits for what the removed one owes."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """A job on its way out. First its records are carried off, then its processes are asked to let
    go of it (`released` is that revision), then everything it kept is removed. It is on disk: after
    a restart it goes on."""

    job: AgentJob
    owed: Owed
    revision: int = 0
    released: int | None = None
    given_up: bool = False

    @property
    def age(self) -> float:
        return time.time() - self.owed.since


class SiteJobs:
    """Not for use by two threads at once; the site sees to that."""

    def __init__(self, config: SiteConfig, folder: Path, logs: SiteLog) -> None:
        self._folder = folder
        self._engine = config.engine
        self._logs = logs
        self._local = _from_config(config)
        self._assigned = Assignments(folder)
        self.problems: dict[str, str] = {}
        """Why an assigned job cannot run here."""
        self._jobs = dict(self._local)
        for assignment in self._assigned.all().values():
            self._load_job(assignment)
        self._longest = config.retention.hours * 3600
        self._stopped = 0
        """The revision that the engine has made so."""
        self._ending = self._load_endings()
        self._left: list[tuple[int, str, str]] = []
        """Readers of routes that are no more, as (revision, log, reader)."""

    def all(self) -> list[AgentJob]:
        """With those that no longer compute but still have records to send."""
        draining = [e.job for e in self._ending.values() if e.released is None]
        return [*self._jobs.values(), *draining]

    def current(self) -> list[AgentJob]:
        return list(self._jobs.values())

    def assignments(self) -> list[Assignment]:
        """Of all that it was given: also of jobs that cannot run here, or are about to end."""
        ending = [ending.job.assignment for ending in self._ending.values()]
        return [*self._assigned.all().values(), *ending]

    @property
    def unsure(self) -> set[str]:
        """Names of jobs that cannot run here, and those under which they publish results."""
        known = self._assigned.all()
        return {*self.problems, *(known[n].outlet for n in self.problems if n in known)}

    def _load_job(self, assignment: Assignment) -> None:
        try:
            self._jobs[assignment.job] = _check_job(assignment, self._engine)
            self.problems.pop(assignment.job, None)
        except FoglineError as error:
            self.problems[assignment.job] = str(error)

    # ── changes ────────────────────────────────────────────────────────────────────────────────

    def check(self, assignments: Iterable[Assignment]) -> list[AgentJob]:
        """The jobs that they will be. Raises FoglineError, before anything is changed, when one of
        them cannot run here."""
        jobs = []
        for assignment in assignments:
            if assignment.job in self._local:
                raise UsageError(f"{assignment.job} is a job of the site's own configuration")
            job = _check_job(assignment, self._engine)
            if job.name in self._ending and not self._may_follow(job):
                raise UsageError(f"job {job.name} is still ending", "try again in a moment")
            jobs.append(job)
        return jobs

    def _may_follow(self, new: AgentJob) -> bool:
        """Whether it can take the place of the job that ends under this name: its records go where
        those go that are still owed. Another one waits, but not for ever."""
        ending = self._ending[new.name]
        if ending.released is not None:
            return False
        old = ending.job
        if old.assignment.routes == new.assignment.routes and old.results() == new.results():
            return ending.revision <= self._stopped
        if ending.age > _PATIENT_SECONDS:
            self._ending[new.name] = replace(ending, given_up=True)
        return False

    def install(self, jobs: Iterable[AgentJob], revision: int = 0) -> bool:
        """Takes jobs as `check` returned them; whether anything changed. `revision` is the one in
        which it will have."""
        given, sent = list(jobs), _sending_keys(self.all())
        for job in given:
            anew = job.name in self._ending
            note_starts(job_folder(self._folder, job.name), job, self._logs, anew)
            note_routes(job, self._jobs.get(job.name), self._logs)
            note_insight_routes(job, sent, self._logs)
            self._note_left(job, revision)
        changed = self._assigned.install(job.assignment for job in given)
        for job in given:
            if job.name in changed:
                self._jobs[job.name] = job
                self.problems.pop(job.name, None)
        self._forget_endings(job.name for job in given)
        return bool(changed)

    def _note_left(self, new: AgentJob, revision: int) -> None:
        """Routes that the job had and has no longer: their readers need nothing any more. Where it
        is the log that it has no longer, another job may go on with it."""
        old = self._jobs.get(new.name)
        if old is None:
            return
        kept, logs = {sending.key for sending in sendings(new)}, new.results()
        left = [s.key for s in sendings(old) if s.log in logs and s.key not in kept]
        self._left += [(revision, log, reader) for log, reader in left]

    def remove(self, names: Iterable[str], revision: int) -> bool:
        names = list(names)
        known = self._assigned.all()
        ended = [self._jobs[n] for n in names if n in known and n in self._jobs]
        for job in (replace(job, ending=True) for job in ended):
            self._ending[job.name] = _Ending(job, self._find_owed(job), revision)
        if ended:
            self._store_endings()
        removed = self._assigned.remove(names)
        for assignment in removed:
            self.problems.pop(assignment.job, None)
            self._jobs.pop(assignment.job, None)
        return bool(removed)

    # ── endings ────────────────────────────────────────────────────────────────────────────────

    def _find_owed(self, job: AgentJob) -> Owed:
        shared = [] if job.computes else job.results()
        return Owed(job.assignment, time.time(), {log: self._end_of(log) for log in shared})

    def _load_endings(self) -> dict[str, _Ending]:
        """Those of the last run; one that was not confirmed as removed is none."""
        found = {}
        for owed in load_endings(self._folder):
            name = owed.assignment.job
            if name not in self._jobs and name not in self.problems:
                with contextlib.suppress(FoglineError):
                    job = make_job(owed.assignment, settings.load())
                    found[name] = _Ending(replace(job, ending=True), owed)
        return found

    def _store_endings(self) -> None:
        store_endings(self._folder, (ending.owed for ending in self._ending.values()))

    def _forget_endings(self, names: Iterable[str]) -> None:
        removed = [name for name in names if self._ending.pop(name, None) is not None]
        if removed:
            self._store_endings()

    def release_drained(self, stopped: int, revision: int) -> bool:
        """Lets go of jobs that have stopped (by revision `stopped`) and sent everything."""
        self._stopped = stopped
        ended = [e for e in self._ending.values() if e.released is None and e.revision <= stopped]
        taken_over = _sending_keys(self._jobs.values()) if ended else set()
        drained = [ending for ending in ended if self._is_drained(ending, taken_over)]
        for ending in drained:
            self._ending[ending.job.name] = replace(ending, released=revision)
        return bool(drained)

    def _is_drained(self, ending: _Ending, taken_over: Container[tuple[str, str]]) -> bool:
        if ending.given_up or ending.age > self._longest:
            return True
        if not ending.job.computes and not ending.job.assignment.running:
            return True
        for log, reader in (sending.key for sending in sendings(ending.job)):
            folder = self._logs.folder(log)
            if not folder.exists() or (log, reader) in taken_over:
                continue
            end = ending.owed.ends.get(log, self._end_of(log))
            if (get_position(folder, reader) or 0) < end:
                return False
        return True

    def _end_of(self, log: str) -> int:
        if not self._logs.folder(log).exists():
            return 0
        with self._logs.reader(log) as reader:
            return reader.committed()

    def clean_up(self, reached: int) -> None:
        """Removes what released jobs kept, once all processes have reached that revision."""
        left = [item for item in self._left if item[0] <= reached]
        released = [e for e in self._ending.values() if e.released is not None]
        done = [ending.job for ending in released if (ending.released or 0) <= reached]
        if not left and not done:
            return
        self._left = [item for item in self._left if item not in left]
        sent, results = _sending_keys(self._jobs.values()), _results(self._jobs.values())
        for key in {item[1:] for item in left} - sent:
            forget_reader(self._logs.folder(key[0]), key[1])
        for job in done:
            self._remove(job, sent, results)
        self._forget_endings(job.name for job in done)

    def _remove(self, job: AgentJob, sent: set[tuple[str, str]], results: set[str]) -> None:
        """All but what others send, and the logs of what others compute: they took it over."""
        for log in job.logs():
            forget_reader(self._logs.folder(log), job_reader(job.name))
        for log in set(job.results()) - results if job.computes else ():
            shutil.rmtree(self._logs.folder(log), ignore_errors=True)
        for key in {sending.key for sending in sendings(job)} - sent:
            forget_reader(self._logs.folder(key[0]), key[1])
        shutil.rmtree(job_folder(self._folder, job.name), ignore_errors=True)


def _sending_keys(jobs: Iterable[AgentJob]) -> set[tuple[str, str]]:
    """The logs that they send, and as whom."""
    return {sending.key for job in jobs for sending in sendings(job)}


def _results(jobs: Iterable[AgentJob]) -> set[str]:
    """The logs that they compute."""
    return {log for job in jobs if job.computes for log in job.results()}


def _from_config(config: SiteConfig) -> dict[str, AgentJob]:
    names = [job.name for job in config.jobs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"two jobs are called {', '.join(twice)}", "give one a name of its own")
    jobs = {}
    for job in config.jobs:
        assignment = Assignment(job.name, "", Query(read_text(job.query)))
        jobs[job.name] = _check_job(assignment, config.engine, local=True)
    return jobs


def _check_job(assignment: Assignment, engine: str, local: bool = False) -> AgentJob:
    job = make_job(assignment, settings.load(), local)
    if job.computes and engine == NO_ENGINE:
        raise UsageError(
            f"job {job.name} needs Spark, and this site has no engine", "engine: local[*]"
        )
    return job
