"""The engine process: one Spark session that runs the jobs of a site.

Jobs come and go while it runs; those that do not change are not touched. It ends when Spark's own
process has ended; the agent starts it again, and every job goes on from its checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from fogline.agent.contracts.engine import EngineConfig, EngineJobStatus, EngineStatus
from fogline.agent.engine.jobs import EngineJob, Workplace
from fogline.common import settings
from fogline.common.errors import FoglineError
from fogline.common.process.parent import Parent
from fogline.common.process.priority import step_back
from fogline.log import LogWriter, SiteLog

_NICENESS = 5
"""Where cores are few, what comes in and results that are there go before what Spark does besides
computing: it plans a batch and compiles code for longer than it takes to catch up."""
_TICK_SECONDS = 1.0
_TICK_SHARE = 5
"""A tick takes about one in so many parts of the time, however many jobs there are."""
_TICK_PARTS, _STARTING_TICK_PARTS = 10, 50
"""Looking after many jobs is done bit by bit, so many of which fit between two ticks; smaller bits
while a job starts."""
_LONGEST_WAIT = 3.0
_STARTING_EACH, _STARTING_LONGEST = 0.01, 0.1
"""How often jobs that start are looked at besides, by their number: somebody waits for them."""
_STARTING_PARTS = 10
_STARTING = "starting"
_MOST_STOPPED = 4
"""At a time."""


def main() -> None:
    step_back(_NICENESS)
    _wake_gently()
    parent = Parent(EngineConfig)
    try:
        Engine(parent.config, parent.report_status).run(parent)
    except FoglineError as error:
        sys.exit(f"engine: {error}")


def _wake_gently() -> None:
    """Threads of Spark that are woken do not push aside who woke them. Where cores are few, a query
    that is stopped otherwise overtakes the call that stops it, and Spark then waits for 0.1 s. A
    system that does not know this, or does not allow it, is none the worse for it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class Engine:
    def __init__(self, config: EngineConfig, report: Callable[[EngineStatus], None]) -> None:
        self._config = config
        self._report = report
        self._logs = SiteLog(Path(config.logs), min_free_bytes=config.min_free_bytes)
        self._writers: dict[str, LogWriter] = {}
        self._writing = threading.Lock()
        self._jobs: dict[str, EngineJob] = {}
        self._configured: dict[str, str] = {}
        """The configuration of each, to see quickly whether it is different."""
        self._due = 0.0
        """When all jobs are to be looked after again."""
        self._left: list[str] = []
        """Those who are still to be looked after this time."""
        self._took = self._reported = 0.0
        self._waited_for: list[EngineJob] = []
        self._waited_since = 0.0

    def run(self, parent: Parent[EngineConfig]) -> None:
        from fogline.spark.session.session import engine_alive, open_session
        from fogline.spark.session.site_session import site_settings

        self._report(EngineStatus("starting Spark"))
        engine = with_slots(self._config.engine, self._config.slots)
        own = replace(
            settings.load(),
            engine=engine,
            engine_host=self._config.engine_host,
            memory=self._config.memory,
        )
        spark = open_session(own, self._config.site, site_settings(self._folder))
        times = self._config.trigger_ms, self._config.live_ms
        place = Workplace(spark, self._folder, self._logs, self._append, *times)
        with engine_alive():
            self._serve(parent, place)
            _stop(self._jobs.values())
            spark.stop()

    def _serve(self, parent: Parent[EngineConfig], place: Workplace) -> None:
        """Until the agent ends it. However it ends, what was counted is kept."""
        try:
            self._reconcile(self._config, place)
            while not parent.ended.is_set():
                if (config := parent.take_change()) is not None:
                    self._reconcile(config, place)
                parent.wait(self._turn(parent.news))
        finally:
            for job in self._jobs.values():
                job.keep_counts()

    @property
    def _folder(self) -> Path:
        return Path(self._config.folder)

    def _reconcile(self, config: EngineConfig, place: Workplace) -> None:
        """Ends what is no longer desired, begins what is new, leaves the rest alone."""
        self._config = config
        desired = {job.assignment.job: job for job in config.jobs}
        undesired = [name for name in self._jobs if name not in desired]
        _stop([self._jobs.pop(name) for name in undesired])
        for name in undesired:
            self._configured.pop(name, None)
        for name, job in desired.items():
            text = repr(job)
            if name in self._jobs and self._configured.get(name) == text:
                continue
            if name in self._jobs:
                self._jobs[name].assign(job.assignment, job.package)
            else:
                self._jobs[name] = EngineJob(place, job.assignment, job.package)
            self._configured[name] = text
        self._close_writers()
        self._report_status()

    def _turn(self, news: threading.Event) -> float:
        """Looks after the jobs that start and, when it is time, the others; returns how long there
        is nothing to do. `news`: something more urgent has come."""
        for job in self._starting():
            self._look_after(job)
            if news.is_set():
                return 0.0
        if time.monotonic() >= self._due and self._round_is_over(news):
            self._report_status()
            pause = min(max(_TICK_SECONDS, self._took * _TICK_SHARE), _LONGEST_WAIT)
            self._due = time.monotonic() + pause
        if self._left:
            return 0.0
        return min(max(self._due - time.monotonic(), 0.0), self._next_look())

    def _round_is_over(self, news: threading.Event) -> bool:
        """Looks after all jobs, as many as there is time for: who is waited for comes between, so
        that it does not matter how many others there are."""
        if not self._left:
            self._left, self._took = list(reversed(self._jobs)), 0.0
        parts = _STARTING_TICK_PARTS if self._starting() else _TICK_PARTS
        begun = time.monotonic()
        while self._left:
            job = self._jobs.get(self._left.pop())
            if job is not None:
                self._look_after(job)
            if news.is_set() or time.monotonic() - begun > _TICK_SECONDS / parts:
                break
        self._took += time.monotonic() - begun
        return not self._left

    def _next_look(self) -> float:
        """At jobs that start: soon, the longer they take the later."""
        starting, now = self._starting(), time.monotonic()
        if starting != self._waited_for:
            self._waited_for, self._waited_since = starting, now
        if not starting:
            return _LONGEST_WAIT
        waited = (now - self._waited_since) / _STARTING_PARTS
        return min(max(_STARTING_EACH * len(starting), waited), _STARTING_LONGEST)

    def _starting(self) -> list[EngineJob]:
        return [job for job in self._jobs.values() if job.status.state == _STARTING]

    def _look_after(self, job: EngineJob) -> None:
        before = job.status.state
        job.tick()
        if job.status.state != before or time.monotonic() - self._reported > _TICK_SECONDS:
            self._report_status()  # somebody waits for it, or all of them take a while

    def _report_status(self) -> None:
        jobs = tuple(_describe_job(job) for job in self._jobs.values())
        states = [job.state for job in jobs]
        state = next((s for s in ("failed", _STARTING) if s in states), "running")
        self._report(EngineStatus(state, self._config.revision, jobs=jobs))
        self._reported = time.monotonic()

    def _append(
        self, log: str, source: int, epoch: int, records: Sequence[tuple[str, bytes]]
    ) -> None:
        with self._writing:
            if log not in self._writers:
                self._writers[log] = self._logs.writer(log)
            writer = self._writers[log]
            if writer.last_epoch(source) < epoch:
                writer.append(records, source, epoch)
                writer.commit()

    def _close_writers(self) -> None:
        """A changed job may write its logs from Spark's process."""
        with self._writing:
            while self._writers:
                self._writers.popitem()[1].close()


def _describe_job(job: EngineJob) -> EngineJobStatus:
    status = job.status
    return EngineJobStatus(status.name, status.queries, status.state, **job.counts(), run=job.run)


def _stop(jobs: Collection[EngineJob]) -> None:
    """Several side by side: each waits for its last batch and for the disk. Raises what the first
    of them raised, when all are through."""
    if jobs:
        with ThreadPoolExecutor(min(len(jobs), _MOST_STOPPED)) as pool:
            list(pool.map(lambda job: job.stop(), jobs))


def with_slots(engine: str, slots: int) -> str:
    """A local engine with room for real time: such a query holds its slots while it waits."""
    local = re.fullmatch(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*(\d+)\s*)?\])?", engine)
    if local is None:
        return engine
    threads, failures = local.groups()
    own = (os.cpu_count() or 1) if threads == "*" else int(threads or 1)
    return f"local[{own + slots},{failures}]" if failures else f"local[{own + slots}]"


if __name__ == "__main__":
    main()
