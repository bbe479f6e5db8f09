"""A gateway: takes messages of devices, runs its jobs, keeps and forwards what they give.

Everything it does is done in small steps by a scheduler's threads, so many gateways fit into one
process. What it was assigned is on disk when it has settled, and it goes on with that after a
restart.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import sys
import threading
import time
from dataclasses import replace
from typing import Any

from fogline.broker import Broker, BrokerError
from fogline.broker.login import without_login
from fogline.common.errors import DataError, FoglineError
from fogline.common.state_files import SetAside
from fogline.gateway.jobs.checks import names, read_assignments
from fogline.gateway.jobs.files import JobFiles, state_folders
from fogline.gateway.jobs.job import GatewayJob
from fogline.gateway.jobs.ledger import LedgerEntry
from fogline.gateway.jobs.routes import Routes
from fogline.gateway.runtime.brokers import Brokers
from fogline.gateway.runtime.config import GatewayConfig
from fogline.gateway.runtime.null_broker import Nowhere
from fogline.gateway.runtime.scheduler import StepScheduler
from fogline.gateway.runtime.shared import Shared, connections_of, ledger_of
from fogline.gateway.runtime.sources import OWN, OwnBroker
from fogline.log import Limits, LogError, SiteLog, enforce
from fogline.model.jobs import Assignment, Route
from fogline.model.nodes import GATEWAY, Node, Observed

_CARE_SECONDS = 0.1
_RETENTION_SECONDS = 10.0
_FINISH_SECONDS = 2.0
_PATIENT_SECONDS = 60.0
"""So long a job of the same name that sends elsewhere waits for what the removed one owes."""
_PROCESS, _LIVES = secrets.token_hex(8), itertools.count(1)
"""What no other process has, and numbers: together the name of one computation."""
_RESUME = 0.9
"""Intake goes on when the buffer is this full."""


class Gateway:
    """`start`, then everything else from any thread, then `stop`. Keeps nothing outside its folder
    but what is shared. Alone it has a scheduler of its own, with one thread.
    """

    def __init__(self, config: GatewayConfig, shared: Shared | None = None) -> None:
        self.config = config
        megabyte = 1 << 20
        self._limit = int(config.buffer.megabytes * megabyte)
        segment = min(max(self._limit // 16, megabyte), 16 * megabyte)
        self._logs = SiteLog(
            config.folder / "logs",
            segment_bytes=segment,
            min_free_bytes=int(config.min_free_megabytes * megabyte),
        )
        self._shared = shared
        self._scheduler = shared.scheduler if shared else StepScheduler()
        self._connections = shared.connections if shared else connections_of(config)
        self._ledger = shared.ledger if shared else ledger_of(config)
        self._brokers = Brokers(
            config,
            self._logs,
            self._scheduler,
            shared.intake if shared else None,
            lambda: not self._full,
        )
        self._jobs: dict[str, tuple[GatewayJob, Routes]] = {}
        self._guard = threading.RLock()
        self._full = False
        self.unsettled = False
        """Whether there is something for `settle` to do."""
        self._forgettable: set[str] = set()
        """Jobs that are removed, with files that are not."""
        self._damaged: dict[str, Observed] = {}
        """Jobs that cannot go on: what they knew is damaged."""
        self._set_aside = SetAside(_write_log)
        self._ending: dict[str, float] = {}
        """Jobs that are removed and not done with, and since when."""
        self._care_due = self._retention_due = 0.0

    # ── its life ───────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Goes on with what it was assigned before. Raises what keeps it from that."""
        self.config.folder.mkdir(parents=True, exist_ok=True)
        with self._guard:
            self._files = JobFiles(self.config.folder, self._logs)
            self._brokers.at(OWN).input().number()
            for entry in self._ledger.jobs(self.config.gateway):
                self._go_on(entry)
            self._request_topics()
        if self._shared is None:
            with contextlib.suppress(BrokerError):
                self.settle()
            self._scheduler.start()
        self._scheduler.add(self.step)

    def stop(self) -> None:
        """Ends in order: jobs keep what they know, what is under way gets a moment."""
        self._scheduler.remove(self.step)
        with self._guard:
            for job, routes in self._jobs.values():
                with contextlib.suppress(FoglineError):
                    job.close()
                routes.finish(_FINISH_SECONDS)
            self._jobs.clear()
            self._brokers.stop()
        if self._shared is None:
            self._scheduler.stop()
            self._connections.close()
            with contextlib.suppress(FoglineError):
                self._ledger.commit()
            self._ledger.close()

    def step(self) -> bool:
        """A little of everything that is to do; whether there was anything."""
        with self._guard:
            busy = [self._step_of(job, routes) for job, routes in self._jobs.values()]
            now = time.monotonic()
            if now >= self._care_due:
                self._care_due = now + _CARE_SECONDS
                self._care(now)
        return any(busy)

    def _step_of(self, job: GatewayJob, routes: Routes) -> bool:
        try:
            return any((job.step(), routes.step(job.has_output)))
        except FoglineError as error:
            job.say(error)
            return False

    # ── what it is asked ───────────────────────────────────────────────────────────────────────

    def install(self, assignments: Any, jobs: Any = None) -> None:
        """Makes these jobs so; lists as the contract has them, with the names of the jobs in one of
        their own or in the assignments. It is so for good after `settle`. Raises `DataError` with
        every problem, and then nothing has changed."""
        requested = read_assignments(assignments, jobs)
        with self._guard:
            self._check_endings(requested)
            begun = [assignment for assignment in requested if self._install(assignment)]
            if begun:
                self._request_topics()
            self.unsettled = True

    def remove(self, jobs: Any) -> None:
        """Ends these jobs, for good after `settle`; unknown names are no error. They take nothing
        more, and are forgotten when what they give of what was taken is forwarded."""
        with self._guard:
            for name in names(jobs):
                if self._damaged.pop(name, None) is not None:
                    self._ledger.drop(self.config.gateway, name)
                    self._forgettable.add(name)
            ending = [n for n in names(jobs) if n in self._jobs and n not in self._ending]
            for name in ending:
                self._jobs[name][0].end()
                self._ending[name] = time.monotonic()
            self._end_what_is_done()
            for name in ending:
                if name in self._jobs:
                    self._ledger.put(self.config.gateway, self._jobs[name][0].entry)
            self._request_topics()
            self.unsettled = True

    def settle(self) -> None:
        """What it was assigned is on disk, and what comes on the topics of its jobs is kept. Raises
        what keeps it from that; an unreachable broker gets it when it is back."""
        self._ledger.commit()
        with self._guard:
            self._forget_files()
            brokers = list(self._brokers)
        for _, source in brokers:
            source.settle()
        self.unsettled = False

    def flush(self, jobs: Any) -> None:
        """What these jobs hold back (open panes and windows) leaves at once."""
        with self._guard:
            for name in names(jobs):
                if name in self._jobs:
                    self._jobs[name][0].flush()

    def job_log(self, job: str, lines: int = 100) -> list[str]:
        with self._guard:
            if job not in self._jobs:
                raise DataError(f"no job {job!r:.80}")
            return list(self._jobs[job][0].said)[-max(lines, 0) :]

    def observed(self) -> list[Observed]:
        with self._guard:
            running = [
                self._observe_job(job, r) for job, r in self._jobs.values() if not job.ending
            ]
            return [*running, *self._damaged.values()]

    def describe(self) -> Node:
        place = self.config.location
        own = self._brokers.own
        return Node(
            name=self.config.gateway,
            kind=GATEWAY,
            broker=self._announced_broker(own),
            cores=os.cpu_count() or 0,
            memory_mb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
            latitude=place.latitude if place else None,
            longitude=place.longitude if place else None,
            labels=self.config.labels,
            site=self.config.site,
        )

    def _announced_broker(self, own: object) -> str:
        """The address that others get; that of a broker which is not its own is not announced."""
        if not isinstance(own, OwnBroker):
            return ""
        return self.config.announce or without_login(own.address)

    @property
    def broker_url(self) -> str:
        """Where devices publish; with user and password, not for printing."""
        own = self._brokers.own
        assert own is not None
        return own.address

    @property
    def state(self) -> str:
        """`running`, or what is wrong with the intake."""
        return self._brokers.state

    # ── jobs ───────────────────────────────────────────────────────────────────────────────────

    def _install(self, assignment: Assignment) -> bool:
        """Whether it begins something: else it reads what it has read."""
        self._damaged.pop(assignment.job, None)
        known = self._jobs.get(assignment.job)
        ending = self._ending.pop(assignment.job, None) is not None
        if known is not None and not ending and known[0].assignment.computes_like(assignment):
            job, routes = known
            job.update(assignment)
            routes.follow(assignment)
            begins = False
        else:
            job, begins = self._begin_anew(assignment, goes_on=not ending), True
        self._ledger.put(self.config.gateway, job.entry)
        return begins

    def _begin_anew(self, assignment: Assignment, goes_on: bool) -> GatewayJob:
        """A job that is new, or computes something else from where it is, or takes the place of one
        that was removed: then it forwards what that one owes."""
        name = assignment.job
        source = self._brokers.at(assignment.reads[0].broker).input()
        begin, routes = source.committed(), None
        counts: tuple[int, ...] = ()
        if name in self._jobs:
            job, routes = self._jobs.pop(name)
            job.abandon()
            begin = job.position if job.input is source and goes_on else begin
            counts = job.counts if goes_on else ()
            routes.follow(assignment)
        else:
            self._forgettable.discard(name)
            self._files.forget(name)
        source.sync(begin)
        life = f"{_PROCESS}-{next(_LIVES)}"
        entry = LedgerEntry(assignment, life, begin, assignment.parameters, counts=counts)
        return self._begin(entry, routes)

    def _go_on(self, entry: LedgerEntry) -> None:
        """After a restart. A job whose state is damaged does not run, and says why; installed anew,
        it begins anew."""
        try:
            self._begin(entry)
        except LogError as error:
            self._damaged[entry.job] = Observed(entry.job, entry.version, "failed", str(error))

    def _begin(self, entry: LedgerEntry, routes: Routes | None = None) -> GatewayJob:
        assignment = entry.assignment
        source = self._brokers.at(assignment.reads[0].broker).input()
        job = GatewayJob(entry, self._patterns(assignment), source, self._files)
        routes = routes or Routes(assignment, self._logs, self._connect)
        self._jobs[entry.job] = (job, routes)
        if job.ending:
            self._ending[entry.job] = time.monotonic()
        return job

    def _check_endings(self, requested: list[Assignment]) -> None:
        """What a removed job owes is not sent elsewhere; who asks for that waits, not for ever."""
        for name, routes in ((a.job, a.routes) for a in requested if a.job in self._ending):
            if self._jobs[name][0].assignment.routes == routes:
                continue
            if time.monotonic() - self._ending[name] < _PATIENT_SECONDS:
                raise DataError(f"job {name} is still ending", "try again in a moment")
            self._end(name)

    def _end_what_is_done(self) -> bool:
        """Whether a job that was removed has sent everything, or is old, and so is no more."""
        oldest = time.monotonic() - self.config.buffer.hours * 3600
        done = []
        for name, since in self._ending.items():
            job, routes = self._jobs[name]
            if (job.ended and (routes.done or not job.has_output)) or since < oldest:
                done.append(name)
        for name in done:
            self._end(name)
        return bool(done)

    def _end(self, name: str) -> None:
        job, routes = self._jobs.pop(name)
        job.abandon()
        routes.finish(0.0)
        self._ending.pop(name, None)
        self._forgettable.add(name)
        self._ledger.drop(self.config.gateway, name)

    def _observe_job(self, job: GatewayJob, routes: Routes) -> Observed:
        observed = job.observed(routes=routes.states(), waiting_bytes=routes.lag)
        source = self._brokers.at(_address(job))
        if observed.state == "running" and not source.has(job.patterns):
            return replace(observed, state="starting", problem=source.state)
        return observed

    def _forget_files(self) -> None:
        while self._forgettable:
            self._files.forget(self._forgettable.pop())

    # ── topics ─────────────────────────────────────────────────────────────────────────────────

    def _connect(self, route: Route) -> Broker:
        if route.waits:
            return Nowhere(route.node)
        return self._connections.to(route.broker or self._own_url)

    @property
    def _own_url(self) -> str:
        own = self._brokers.own
        assert own is not None
        return own.url

    def _patterns(self, assignment: Assignment) -> tuple[str, ...]:
        name = self.config.gateway
        return tuple(place.topic.replace("{gateway}", name) for place in assignment.reads)

    def _request_topics(self) -> None:
        """What the jobs read and nothing else."""
        requested: dict[str, set[str]] = {}
        for job, _ in self._jobs.values():
            if not job.ending:
                requested.setdefault(_address(job), set()).update(job.patterns)
        for address, source in self._brokers:
            source.request(requested.get(address, set()))

    # ── care ───────────────────────────────────────────────────────────────────────────────────

    def _care(self, now: float) -> None:
        waiting = self.waiting
        self._full = waiting >= self._limit * (_RESUME if self._full else 1)
        for _, source in self._brokers:
            source.step()
        if self._ending and self._end_what_is_done():
            self._ledger.commit()
            self._forget_files()
        if now >= self._retention_due:
            self._retention_due = now + _RETENTION_SECONDS
            self._remove_old()
            self._set_aside.look(state_folders(self.config.folder))

    @property
    def waiting(self) -> int:
        """Bytes that are to be computed or forwarded."""
        with self._guard:
            inputs = {id(job.input): job.lag for job, _ in self._jobs.values()}
            return sum(inputs.values()) + sum(routes.lag for _, routes in self._jobs.values())

    def _remove_old(self) -> None:
        """What is forwarded and old; never what a job or a route still needs."""
        for _, source in self._brokers:
            needed = [
                j.needed_position for j, _ in self._jobs.values() if j.input is source.input()
            ]
            source.input().keep_from(min(needed, default=source.input().committed()))
        age = int(self.config.buffer.hours * 3600e6)
        limits = Limits(age=age, size=self._limit)
        for topic in self._files.topics():
            if not topic.startswith("in/"):
                enforce(self._logs.folder(topic), limits, time.time_ns() // 1000)


def _write_log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _address(job: GatewayJob) -> str:
    """Of the broker that a job reads from: it has only one."""
    return job.assignment.reads[0].broker
