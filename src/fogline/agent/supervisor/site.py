"""One site: its broker, ingest, engine and publishing processes, supervised until the site stops.

Order of start: jobs are checked, then the broker, then everything that needs it. Order of stop:
intake first, then jobs, then publishing, then the broker, so nothing is on its way when it ends.

Jobs change while it runs: every change has a number, the revision, which the processes repeat in
their status once it is in force.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fogline.agent.broker.site_broker import SiteBroker
from fogline.agent.config.site import NOW, SiteConfig
from fogline.agent.contracts.engine import EngineStatus
from fogline.agent.contracts.ingest import IngestStatus
from fogline.agent.contracts.publish import PublishStatus
from fogline.agent.contracts.site_status import ChildStatus, SiteStatus
from fogline.agent.coordination.fabric_secret import SiteSecret
from fogline.agent.coordination.manager import Manager
from fogline.agent.damage.watch import DamageWatch
from fogline.agent.jobs.job import AgentJob, job_folder
from fogline.agent.jobs.packages import Packages
from fogline.agent.jobs.readers import retire_strays
from fogline.agent.jobs.signed import needed_keys, restricted_topics
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.agent.jobs.start_positions import forget_starts, note_starts
from fogline.agent.supervisor.child_configs import ChildConfigs
from fogline.agent.supervisor.reporting import Reporter
from fogline.common.errors import SetupError, UsageError
from fogline.common.fabric_secret import FabricSecret
from fogline.common.process.children import Child
from fogline.common.state_files import SetAside, StateDamaged
from fogline.fabric.contract import StoreStatus
from fogline.fabric.membership.local_sites import LocalSite, leave_note
from fogline.log import Limits, LogError, SiteLog, enforce
from fogline.log.writer import now_us
from fogline.model.jobs import Assignment
from fogline.model.nodes import NO_ENGINE
from fogline.model.sample_fractions import SampleFractions

_TICK_SECONDS = 0.2
_RETENTION_SECONDS = 30.0
_NOTE_SECONDS = 5.0
_STOP_SECONDS = {"ingest": 10.0, "engine": 30.0, "publish": 20.0, "store": 20.0}
_MEBIBYTE = 1 << 20


class Site:
    """`start`, then `run` or `tick` again and again, then `stop`."""

    def __init__(self, config: SiteConfig) -> None:
        self.config = config
        self.folder = config.folder
        _check_folder(self.folder)
        self.logs = SiteLog(self.folder / "log", min_free_bytes=config.min_free_bytes)
        self.jobs = SiteJobs(config, self.folder, self.logs)
        self.packages = Packages(self.folder)
        self.broker = SiteBroker(config.broker, self.folder, config.min_free_bytes)
        self.secret = SiteSecret(self.folder, config.store.secret_file)
        configs = ChildConfigs(config, self.jobs, self.broker, self.packages, self.secret)
        self._configs = configs
        self._woken = threading.Event()
        """The engine has reported something: somebody may wait for it."""
        self._ingest = Child(
            "ingest", "fogline.agent.ingest.process", configs.ingest, IngestStatus, self.folder
        )
        self._engine = Child(
            "engine",
            "fogline.agent.engine.process",
            configs.engine,
            EngineStatus,
            self.folder,
            self._woken.set,
        )
        self._publish = Child(
            "publish", "fogline.agent.publish.process", configs.publish, PublishStatus, self.folder
        )
        self._store = Child(
            "store", "fogline.fabric.process", configs.store, StoreStatus, self.folder
        )
        self._children: list[Child[Any]] = [self._ingest, self._publish]
        if config.engine != NO_ENGINE:
            self._children.insert(1, self._engine)
        if config.store.enabled:
            self._children.append(self._store)
        journal = self.broker.journal if self.broker.own else None
        self.damage = DamageWatch(
            config.site, self.logs, journal, _say, lambda: self._publish.update()
        )
        self._reporter = Reporter(self)
        self._manager: Manager | None = None
        self._changing = threading.RLock()
        self._retention_due = 0.0
        self._retention_problems: list[str] = []
        self._set_aside = SetAside(_say)
        self._lock: Any = None
        self._note: Path | None = None
        self._noted = ""
        self._note_due = 0.0
        self._note_problem = ""

    @property
    def broker_url(self) -> str:
        """With user and password: not for printing."""
        return self.broker.url

    @property
    def tls(self) -> dict[str, str] | None:
        return self.broker.tls

    @property
    def broker_address(self) -> str:
        return self.broker.address

    @property
    def http_address(self) -> str:
        return self._reporter.address

    @property
    def store_address(self) -> str:
        """Where its values can be asked for; empty while nobody would answer."""
        status = self._store.status
        return (status.address or "") if status is not None else ""

    # ── running ────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        _make_folder(self.folder)
        self._lock = _lock_folder(self.folder / "agent.lock")
        if self.secret.problem:
            _say(self.secret.problem)
        self._note_starts()
        self._restrict()
        self.broker.start(item.log for item in self._configs.subscriptions() if not item.broker)
        self._start_reporter()
        self.damage.start()
        self.tick()
        if self.config.control.url:
            self._manager = Manager(self)
            self._manager.start()

    def _note_starts(self) -> None:
        """Where jobs of the configuration begin; for those that have not begun, what
        an earlier configuration said is undone."""
        begin_now = {job.name for job in self.config.jobs if job.start == NOW}
        for job in self.jobs.current():
            folder = job_folder(self.folder, job.name)
            try:
                if job.local and job.name in begin_now:
                    note_starts(folder, job, self.logs)
                elif job.local:
                    forget_starts(folder, job.assignment)
            except StateDamaged as error:  # the engine says so of the job, the others run
                _say(f"job {job.name}: {error}")

    def _start_reporter(self) -> None:
        try:
            self._reporter.start()
        except SetupError as error:
            raise SetupError(
                f"http_port {self.config.http_port} cannot be used: {error.message}",
                "choose another http_port, or none for a free one",
            ) from error

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._woken.clear()
            self.tick()
            self._woken.wait(_TICK_SECONDS)

    def tick(self) -> None:
        """Starts what has died, reports, and removes what is no longer needed."""
        with self._changing:
            self.broker.keep_running()
            for child in self._children:
                if child is not self._engine or self._ingest_has_begun():
                    child.keep_running()
            self._finish_ended_jobs()
        self._leave_note()
        self._reporter.tick()
        if self._manager is not None:
            self._manager.tick()
        if time.monotonic() >= self._retention_due:
            self._retention_due = time.monotonic() + _RETENTION_SECONDS
            self._enforce_retention()
            self._remove_packages()
            self._look_for_damage()

    def _leave_note(self) -> None:
        """Commands on this machine find the site by it; without space it is left later."""
        store = self.store_address
        if (self._note is not None and self._noted == store) or time.monotonic() < self._note_due:
            return
        addresses = {"http": self.http_address, "store": store, "broker": self.broker_address}
        try:
            self._note = leave_note(
                LocalSite(self.config.site, self.folder, os.getpid(), **addresses)
            )
            self._noted, self._note_problem = store, ""
        except SetupError as error:
            self._note_due = time.monotonic() + _NOTE_SECONDS
            if self._note_problem != str(error):
                self._note_problem = str(error)
                _say(f"commands on this machine may not find the site: {error}")

    def _ingest_has_begun(self) -> bool:
        """Jobs need their logs to be there only to begin; later either may die and come back."""
        return self._ingest.status is not None or self._engine.pid > 0

    def _enforce_retention(self) -> None:
        keep = self.config.retention
        limits = Limits(round(keep.hours * 3600e6), round(keep.megabytes * _MEBIBYTE))
        problems = []
        try:
            self._retire_readers()
            topics = self.logs.topics()
        except (LogError, OSError) as error:
            problems.append(f"logs: {error}")
            topics = []
        for topic in topics:
            try:
                enforce(self.logs.folder(topic), limits, now_us())
            except (LogError, OSError) as error:
                problems.append(f"{topic}: {error}")
        try:
            self.broker.enforce_retention()
        except (LogError, OSError) as error:
            problems.append(f"the broker's journal: {error}")
        self._say_retention(problems)

    def _remove_packages(self) -> None:
        with self._changing:
            removed = self.packages.remove_unused(self.jobs.assignments(), time.time())
        for name in removed:
            _say(f"package {name[:12]} is removed: no job has needed it for a day")

    def _look_for_damage(self) -> None:
        """What the processes of the site have set aside, until somebody removes it."""
        self._set_aside.look(_state_folders(self.folder))

    def _retire_readers(self) -> None:
        with self._changing:
            jobs, stored = self.jobs.all(), self.config.store.enabled
            retired = retire_strays(self.logs, jobs, self.jobs.unsure, stored)
        for reader in retired:
            _say(f"nothing is kept any more for the reader {reader}")

    def _say_retention(self, problems: list[str]) -> None:
        for problem in problems:
            if problem not in self._retention_problems:
                _say(f"nothing is removed from {problem}")
        self._retention_problems = problems

    def stop(self) -> None:
        if self._manager is not None:
            self._manager.stop()
        for child in self._children:
            child.ask_to_end()
            child.wait(_STOP_SECONDS[child.name])
        self._reporter.stop()
        self.damage.stop()
        self.broker.stop()
        if self._note is not None:
            self._note.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.close()

    def status(self) -> SiteStatus:
        """All there is to know, as the processes reported it last."""
        broker, engine = self.broker.status(), ChildStatus.read(self._engine)
        if self._engine not in self._children:
            engine = ChildStatus("running", report=_report_no_engine(self._configs.revision))
        ingest, publish = ChildStatus.read(self._ingest), ChildStatus.read(self._publish)
        store = ChildStatus.read(self._store) if self._store in self._children else None
        states = [broker.state, *(child.state for child in (ingest, engine, publish))]
        states += [store.state] if store is not None else []
        settled = self.damage.healthy and not self._set_aside.files
        return SiteStatus(
            site=self.config.site,
            healthy=settled and all(state == "running" for state in states),
            ingest=ingest,
            engine=engine,
            publish=publish,
            store=store,
            broker=broker,
            broker_metrics=self._reporter.broker_metrics() or {},
            damage=self.damage.status(),
            retention_problems=self._retention_problems,
            damaged_files=self._set_aside.files,
            control=self._manager.state() if self._manager is not None else None,
        )

    # ── changing jobs ──────────────────────────────────────────────────────────────────────────

    def install(self, assignments: Iterable[Assignment], seconds: float) -> None:
        """Makes these jobs so; returns when what is sent to their topics is kept for them."""
        deadline = time.monotonic() + seconds
        with self._changing:
            coming = self.jobs.check(assignments)
            self._restrict(coming)
            sent = self._send_signatures(coming, deadline)
            changed = self.jobs.install(coming, self._configs.revision + 1)
            revision = self._apply_change() if changed or sent else self._configs.revision
        _wait_for(self._ingest, revision, deadline)

    def _send_signatures(self, coming: list[AgentJob], deadline: float) -> bool:
        """The store knows who may read what the jobs compute before they do; whether it was sent.
        One that does not run gets to know it when it starts."""
        before = needed_keys(self._configs.find_signatures())
        self._configs.coming = coming
        try:
            if not self._store.running or needed_keys(self._configs.find_signatures()) <= before:
                return False
            self._configs.revision += 1
            self._store.update()
            _wait_for(self._store, self._configs.revision, deadline)
            return True
        finally:
            self._configs.coming = []

    def remove(self, names: Iterable[str]) -> None:
        """Ends these jobs; what they have computed is still sent, then they are forgotten."""
        with self._changing:
            if self.jobs.remove(names, self._configs.revision + 1):
                self._apply_change()

    @property
    def sample_fractions(self) -> SampleFractions:
        """How much of nodes' values is sent to queries here, where that is less than they ask."""
        return self._configs.sample_fractions

    def set_sample_fractions(self, sample_fractions: SampleFractions) -> None:
        """From now on, until they are set anew or the site starts again: then all is sent."""
        with self._changing:
            if sample_fractions != self._configs.sample_fractions:
                self._configs.sample_fractions = sample_fractions
                self._apply_change()

    def take_secret(self, handed: FabricSecret) -> None:
        """The fabric's secret, from the coordinator; the store has it at once."""
        with self._changing:
            if self.secret.take(handed):
                self._store.update()

    def _restrict(self, coming: Iterable[AgentJob] = ()) -> None:
        """Before what is restricted is published. Raises SetupError when it cannot be set."""
        before = self.broker.unguarded_topics
        self.broker.restrict(restricted_topics([*coming, *self.jobs.all()]))
        for topic in self.broker.unguarded_topics:
            if topic not in before:
                _say(f"{topic} is signed: who may read it there, the rules of the broker say")

    def _apply_change(self) -> int:
        try:
            self._restrict()
        except SetupError as error:
            _say(f"more topics are restricted than need be: {error}")
        self._configs.revision += 1
        for child in self._children:
            child.update()
        return self._configs.revision

    def _finish_ended_jobs(self) -> None:
        running = self._engine in self._children
        stopped = self._engine.revision if running else self._configs.revision
        if self.jobs.release_drained(stopped, self._configs.revision + 1):
            self._apply_change()
        self.jobs.clean_up(min(child.revision for child in self._children))


def _state_folders(folder: Path) -> list[Path]:
    """Where a site keeps state files."""
    inner = (
        "log/*",
        "log/*/readers",
        "journal",
        "journal/readers",
        "jobs/*",
        "jobs/*/counted",
        "broker/*",
        "broker/*/readers",
    )
    found = [path for pattern in inner for path in sorted(folder.glob(pattern))]
    return [folder, folder / "store", folder / "broker", *found]


def _wait_for(child: Child[Any], revision: int, deadline: float) -> None:
    """Until that revision is in force there."""
    while child.revision < revision:
        if time.monotonic() > deadline:
            raise SetupError(f"the {child.name} process does not answer", "it is tried again")
        time.sleep(0.005)


def _say(text: str) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with contextlib.suppress(OSError):
        print(f"{at} {text}", file=sys.stderr, flush=True)


def _report_no_engine(revision: int) -> EngineStatus:
    """Where there is none, and no job needs one."""
    return EngineStatus("running", revision, jobs=())


def _check_folder(folder: Path) -> None:
    """Before anything is read from it; it need not be there yet."""
    there = next((p for p in (folder, *folder.parents) if p.exists()), folder)
    if there.exists() and not there.is_dir():
        text = f"the site cannot be kept in {folder}: {there} is a file"
        raise UsageError(text, "choose another folder")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"the site cannot be kept in {folder}: {error.strerror}"
        raise UsageError(text, "choose another folder") from error


def _lock_folder(path: Path) -> Any:
    """Two agents must not work in one folder."""
    try:
        file = path.open("w", encoding="ascii")
    except OSError as error:
        text = f"the site cannot be kept in {path.parent}: {error.strerror}"
        raise UsageError(text, "choose another folder") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise UsageError(f"another agent works in {path.parent}", "stop it first") from error
    return file
