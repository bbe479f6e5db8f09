"""What the processes of a site are told: what to subscribe to, compute, publish and store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fogline.agent.broker.site_broker import SiteBroker
from fogline.agent.config.site import SiteConfig
from fogline.agent.coordination.fabric_secret import SiteSecret
from fogline.agent.damage.watch import DAMAGE_LOG
from fogline.agent.jobs.job import AgentJob, copies, fabric_logs, routes, subscriptions
from fogline.agent.jobs.packages import Packages
from fogline.agent.jobs.signed import Signatures, signatures
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.agent.supervisor.store_config import feeds, topics
from fogline.broker.login import with_login
from fogline.broker.topics import split_share
from fogline.log.files.names import folder_name
from fogline.model.nodes import NO_ENGINE
from fogline.model.sample_fractions import Shares

_FEWEST_SLOTS = 64
"""Room for jobs in real time; a managed site does not know how many it will get."""
_STATEFUL_SLOTS = 8
"""More than the stateful step of a query in real time has partitions."""


class Told:
    """`revision` is the number of the last change; the processes repeat it once it is in force."""

    def __init__(
        self,
        config: SiteConfig,
        jobs: SiteJobs,
        broker: SiteBroker,
        packages: Packages,
        secret: SiteSecret,
    ) -> None:
        self.revision = 1
        self.shares: Shares = {}
        """How much of nodes' values is sent to queries here, where that is less than they ask."""
        self.coming: list[AgentJob] = []
        """Jobs that are being installed."""
        self._config = config
        self._jobs = jobs
        self._broker = broker
        self._packages = packages
        self._secret = secret
        self._logs = config.folder / "log"

    def ingest(self) -> dict[str, Any]:
        config = {
            "client": f"fogline-{self._config.site}-ingest",
            "subscriptions": self.subscriptions(),
            "copies": copies(self._jobs.all()),
        }
        if self._broker.own:
            config |= {"journal": str(self._broker.journal), "retained": self._broker.url}
        return self._common() | config

    def subscriptions(self) -> list[dict[str, Any]]:
        wanted = subscriptions(self._jobs.all())
        logs = {item["log"] for item in wanted}
        wanted += [item for item in topics(self._config.store) if item["log"] not in logs]
        return [item | {"broker": self._broker_of(item)} for item in wanted]

    def _broker_of(self, subscription: dict[str, Any]) -> str:
        """The address to subscribe at; none where the own broker's journal has the messages."""
        if subscription["broker"]:
            return str(subscription["broker"])
        # What the broker says about itself does not go through the journal.
        about = split_share(subscription["pattern"])[1].startswith("$SYS/")
        return "" if self._broker.own and not about else self._broker.url

    def engine(self) -> dict[str, Any]:
        jobs = [
            {
                "assignment": job.assignment.as_json(),
                "package": str(self._packages.path(job.assignment) or ""),
            }
            for job in self._jobs.all()
            if job.running and job.computes
        ]
        return self._common() | {
            "site": self._config.site,
            "folder": str(self._config.folder),
            "engine": self._config.engine,
            "engine_host": self._config.engine_host,
            "slots": engine_slots(self._jobs.all()),
            "memory": self._config.memory,
            "trigger_ms": self._config.trigger_ms,
            "live_ms": round(self._config.live_seconds * 1000),
            "jobs": jobs,
        }

    def publish(self) -> dict[str, Any]:
        topics = [log for job in self._jobs.all() for log in job.published()]
        if (self._logs / folder_name(DAMAGE_LOG)).exists():
            topics.append(DAMAGE_LOG)
        return self._common() | {
            "client": f"fogline-{self._config.site}-publish",
            "broker": self._broker.url,
            "topics": list(dict.fromkeys(topics)),
            "routes": [
                route | {"broker": self._config.peer_url(route["node"], route["broker"])}
                for route in routes(self._jobs.all())
            ],
        }

    def store(self) -> dict[str, Any]:
        config = self._config.store
        return self._common() | {
            "site": self._config.site,
            "folder": str(self._config.folder),
            "secrets": self._secret.known(),
            "host": config.host,
            "hosts": [*self._config.hosts, config.announce],
            "port": config.port,
            "limits": {
                "hours": config.hours,
                "megabytes": config.megabytes,
                "memory_megabytes": config.memory_megabytes,
            },
            "nodes": dict(config.nodes),
            "control": self._control(),
            "signed": self.signed(),
            "feeds": feeds(self._jobs.all(), config),
            "fabric_logs": fabric_logs(self._jobs.all(), self.shares),
        }

    def signed(self) -> Signatures:
        """Also of jobs that are about to come: the store knows it before there is a value."""
        return signatures([*self.coming, *self._jobs.all()])

    def _control(self) -> dict[str, Any] | None:
        """The control broker, where births tell of other sites."""
        control = self._config.control
        if control.url is None:
            return None
        url = with_login(control.url, control.user, control.password_file)
        files = {"ca": control.ca, "certificate": control.certificate, "key": control.key}
        tls = {name: str(path) for name, path in files.items() if path is not None}
        return {"url": url, "tls": tls or None}

    def _common(self) -> dict[str, Any]:
        return {
            "logs": str(self._logs),
            "min_free_bytes": self._config.min_free_bytes,
            "tls": self._broker.tls,
            "same_machine": writes_here(self._config.engine),
            "revision": self.revision,
        }


def writes_here(engine: str) -> bool:
    """Whether jobs write their logs on this machine, not on others of a cluster."""
    return engine == NO_ENGINE or engine.startswith("local")


def engine_slots(jobs: Iterable[AgentJob]) -> int:
    """Room to follow all of their streams in real time at once, in two queries of a job."""
    return max(_FEWEST_SLOTS, sum(2 * len(job.streams()) + _STATEFUL_SLOTS for job in jobs))
