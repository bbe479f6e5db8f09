"""A site under a coordinator: it announces itself, carries out commands, reports its status."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path
from typing import Any, Protocol

import psutil

from fogline.agent.broker.site_broker import SiteBroker
from fogline.agent.config.site import SiteConfig
from fogline.agent.contracts.engine import EngineJobStatus
from fogline.agent.contracts.site_status import SiteStatus
from fogline.agent.coordination.fabric_secret import SiteSecret
from fogline.agent.coordination.probes import Prober
from fogline.agent.coordination.store_commands import StoreCommands
from fogline.agent.jobs.forwarders import observe_forwarder
from fogline.agent.jobs.packages import Packages
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.broker import Tls
from fogline.broker.login import with_login
from fogline.common.errors import UsageError
from fogline.common.fabric_secret import FabricSecret
from fogline.control import ControlledNode, ControlOptions, OperationHandler
from fogline.model.jobs import Assignment, name_assignments
from fogline.model.nodes import SITE, Node, Observed
from fogline.model.sample_fractions import SampleFractions, read_sample_fractions

_INSTALL_SECONDS = 8.0
_MOST_LINES = 1000
_RUNNING = "running"


class Managed(Protocol):
    """What is managed: a site."""

    config: SiteConfig
    folder: Path
    jobs: SiteJobs
    packages: Packages
    broker: SiteBroker
    secret: SiteSecret

    @property
    def http_address(self) -> str: ...

    @property
    def store_address(self) -> str: ...

    def install(self, assignments: list[Assignment], seconds: float) -> None: ...

    def remove(self, names: list[str]) -> None: ...

    @property
    def sample_fractions(self) -> SampleFractions: ...

    def set_sample_fractions(self, sample_fractions: SampleFractions) -> None: ...

    def take_secret(self, handed: FabricSecret) -> None: ...

    def status(self) -> SiteStatus: ...


class Manager:
    def __init__(self, site: Managed) -> None:
        """Made when the site has started: only then its addresses are known."""
        self._site = site
        given = site.config.control
        files = {"ca": given.ca, "certificate": given.certificate, "key": given.key}
        found = {name: path for name, path in files.items() if path is not None}
        tls = Tls(**found) if found else None
        url = with_login(str(given.url), given.user, given.password_file)
        self._store_commands = StoreCommands(site.folder, lambda: site.store_address)
        operations: dict[str, OperationHandler] = {
            "install": self._install,
            "remove": self._remove,
            "logs": self._logs,
            "store": self._report,
            "copies": self._copies,
            "secret": self._take_secret,
        }
        self._store = site.store_address
        self._prober = Prober(site.config.site, url, site.config.peer_url, tls)
        options = ControlOptions(tls=tls)
        self._node = ControlledNode(url, self.describe, operations, self.status_payload, options)
        self._states: dict[str, str] = {}

    def start(self) -> None:
        self._node.start()
        self._prober.start()

    def stop(self) -> None:
        self._prober.stop()
        self._node.close()

    def tick(self) -> None:
        """A job that changed its state is reported at once."""
        states = {job.job: job.state for job in self._observe_jobs(self._site.status())}
        if states != self._states:
            self._states = states
            self._node.publish_own_status()
        if self._site.store_address not in ("", self._store):
            self._store = self._site.store_address
            self._node.announce()

    def state(self) -> str:
        return self._node.problem or (_RUNNING if self._node.connected else "connecting")

    # ── reports ────────────────────────────────────────────────────────────────────────────────

    def describe(self) -> Node:
        config = self._site.config
        memory = psutil.virtual_memory().total >> 20
        return Node(
            name=config.site,
            kind=SITE,
            broker=config.announce or self._site.broker.address,
            address=config.announce_http or self._site.http_address,
            store=config.store.announce or self._store,
            engine=config.engine,
            cores=config.cores or os.cpu_count() or 1,
            memory_mb=config.memory_mb or memory,
            latitude=config.latitude,
            longitude=config.longitude,
            labels=config.labels,
        )

    def status_payload(self) -> dict[str, Any]:
        status = self._site.status()
        return {
            "jobs": [job.as_json() for job in self._observe_jobs(status)],
            "links": self._prober.links(),
            "healthy": status.healthy,
        }

    def _observe_jobs(self, status: SiteStatus) -> list[Observed]:
        reported = {job.name: job for job in status.jobs}
        found = []
        for job in self._site.jobs.current():
            more = {"local": True} if job.local else {}
            if not job.assignment.running:
                state = Observed(job.name, job.version, "stopped", more=more)
            elif not job.computes:
                state = observe_forwarder(job, status, more)
            else:
                engine = reported.get(job.name)
                if engine is not None and engine.run != job.run:
                    engine = None  # it is still about the assignment before
                state = _observe_job(job.name, job.version, engine, more)
            found.append(state)
        for name, problem in self._site.jobs.problems.items():
            found.append(Observed(name, "", "failed", problem))
        return found

    # ── commands ───────────────────────────────────────────────────────────────────────────────

    def _install(self, body: dict[str, Any]) -> dict[str, Any]:
        given = name_assignments(body.get("assignments"), body.get("jobs"))
        if not isinstance(given, list):
            raise UsageError("install: `assignments` must be a list")
        assignments = [Assignment.from_json(item) for item in given]
        self._site.packages.fetch(assignments, self._node.call)
        self._site.install(assignments, _INSTALL_SECONDS)
        self._node.publish_own_status()
        return {"jobs": {a.job: a.version for a in assignments}}

    def _remove(self, body: dict[str, Any]) -> dict[str, Any]:
        names = body.get("jobs")
        if not isinstance(names, list):
            raise UsageError("remove: `jobs` must be a list")
        self._site.remove([str(name) for name in names])
        self._node.publish_own_status()
        return {}

    def _report(self, body: dict[str, Any]) -> dict[str, Any]:
        """What is stored here, and what is sent to the queries that run here."""
        return self._store_commands.report(body) | {"shares": self._site.sample_fractions}

    def _copies(self, body: dict[str, Any]) -> dict[str, Any]:
        if "shares" in body:
            self._site.set_sample_fractions(read_sample_fractions(body["shares"]))
        return self._store_commands.keep_copies(body)

    def _take_secret(self, body: dict[str, Any]) -> dict[str, Any]:
        """Returns the version that the site has now, and whether its configuration names one."""
        self._site.take_secret(FabricSecret.from_json(body))
        secret = self._site.secret
        return {"version": secret.version, "own": secret.own}

    def _logs(self, body: dict[str, Any]) -> dict[str, Any]:
        """What was last said about a job, or by all processes."""
        count = min(int(body.get("lines", 50)), _MOST_LINES)
        job = str(body.get("job", ""))
        found: deque[str] = deque(maxlen=count)
        for path in sorted(self._site.folder.glob("*.log")):
            with path.open(encoding="utf-8", errors="replace") as file:
                lines = (line.rstrip() for line in file if not job or f"job {job}:" in line)
                found.extend(f"{path.stem}: {line}" for line in lines)
        return {"at": time.time(), "lines": list(found)}


def _observe_job(
    name: str, version: str, engine: EngineJobStatus | None, more: dict[str, Any]
) -> Observed:
    if engine is None:
        return Observed(name, version, "starting", more=more)
    problems = [query.problem for query in engine.queries if query.problem]
    return Observed(
        name,
        version,
        engine.state,
        "; ".join(problems),
        tuple(query.run for query in engine.queries if query.run),
        records_in=engine.records_in,
        records_out=engine.records_out,
        bad=engine.bad,
        late=engine.late,
        lag_bytes=sum(query.lag_bytes for query in engine.queries),
        more=more,
    )
