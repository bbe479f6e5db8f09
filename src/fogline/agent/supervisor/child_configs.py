"""The configurations of a site's processes: what to subscribe to, compute, publish and store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fogline.agent.broker.site_broker import SiteBroker
from fogline.agent.config.site import SiteConfig
from fogline.agent.contracts.engine import EngineConfig, EngineJobConfig
from fogline.agent.contracts.ingest import IngestConfig, Subscription
from fogline.agent.contracts.publish import PublishConfig
from fogline.agent.coordination.fabric_secret import SiteSecret
from fogline.agent.damage.watch import DAMAGE_LOG
from fogline.agent.jobs.job import AgentJob, copies, fabric_logs, routes, subscriptions
from fogline.agent.jobs.packages import Packages
from fogline.agent.jobs.signed import Signatures, signatures
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.agent.supervisor.store_config import feeds, topics
from fogline.broker.login import with_login
from fogline.broker.topics import split_share
from fogline.fabric.contract import ControlBroker, StoreProcessConfig
from fogline.log.files.names import folder_name
from fogline.model.jobs import Route
from fogline.model.nodes import NO_ENGINE
from fogline.model.sample_fractions import SampleFractions

_FEWEST_SLOTS = 64
"""Room for jobs in real time; a managed site does not know how many it will get."""
_STATEFUL_SLOTS = 8
"""More than the stateful step of a query in real time has partitions."""


class ChildConfigs:
    """`revision` is the number of the last change; the processes report it once it is in force."""

    def __init__(
        self,
        config: SiteConfig,
        jobs: SiteJobs,
        broker: SiteBroker,
        packages: Packages,
        secret: SiteSecret,
    ) -> None:
        self.revision = 1
        self.sample_fractions: SampleFractions = {}
        """Sample fractions: how much of nodes' values is sent to queries here, where not all is."""
        self.coming: list[AgentJob] = []
        """Jobs that are being installed."""
        self._config = config
        self._jobs = jobs
        self._broker = broker
        self._packages = packages
        self._secret = secret
        self._logs = config.folder / "log"

    def ingest(self) -> IngestConfig:
        own = self._broker.own
        return IngestConfig(
            revision=self.revision,
            logs=str(self._logs),
            min_free_bytes=self._config.min_free_bytes,
            same_machine=writes_here(self._config.engine),
            tls=self._broker.tls,
            client=f"fogline-{self._config.site}-ingest",
            subscriptions=tuple(self.subscriptions()),
            copies=tuple(copies(self._jobs.all())),
            journal=str(self._broker.journal) if own else None,
            retained=self._broker.url if own else None,
        )

    def subscriptions(self) -> list[Subscription]:
        needed = subscriptions(self._jobs.all())
        logs = {item.log for item in needed}
        needed += [item for item in topics(self._config.store) if item.log not in logs]
        return [replace(item, broker=self._find_broker(item)) for item in needed]

    def _find_broker(self, subscription: Subscription) -> str:
        """The address to subscribe at; none where the own broker's journal has the messages."""
        if subscription.broker:
            return subscription.broker
        # What the broker publishes about itself does not go through the journal.
        about_itself = split_share(subscription.pattern)[1].startswith("$SYS/")
        return "" if self._broker.own and not about_itself else self._broker.url

    def engine(self) -> EngineConfig:
        jobs = [job.assignment for job in self._jobs.all() if job.running and job.computes]
        return EngineConfig(
            revision=self.revision,
            site=self._config.site,
            folder=str(self._config.folder),
            logs=str(self._logs),
            min_free_bytes=self._config.min_free_bytes,
            engine=self._config.engine,
            engine_host=self._config.engine_host,
            slots=engine_slots(self._jobs.all()),
            memory=self._config.memory,
            trigger_ms=self._config.trigger_ms,
            live_ms=round(self._config.live_seconds * 1000),
            jobs=tuple(EngineJobConfig(a, str(self._packages.path(a) or "")) for a in jobs),
        )

    def publish(self) -> PublishConfig:
        logs = [log for job in self._jobs.all() for log in job.published_logs()]
        if (self._logs / folder_name(DAMAGE_LOG)).exists():
            logs.append(DAMAGE_LOG)
        return PublishConfig(
            revision=self.revision,
            logs=str(self._logs),
            same_machine=writes_here(self._config.engine),
            tls=self._broker.tls,
            client=f"fogline-{self._config.site}-publish",
            broker=self._broker.url,
            topics=tuple(dict.fromkeys(logs)),
            routes=tuple(routes(self._jobs.all(), self._find_address)),
        )

    def _find_address(self, route: Route) -> str:
        return self._config.peer_url(route.node, route.broker) or self._broker.url

    def store(self) -> StoreProcessConfig:
        config = self._config.store
        return StoreProcessConfig(
            revision=self.revision,
            site=self._config.site,
            folder=str(self._config.folder),
            secrets=tuple(self._secret.accepted_secrets()),
            host=config.host,
            hosts=(*self._config.hosts, config.announce),
            port=config.port,
            limits={
                "hours": config.hours,
                "megabytes": config.megabytes,
                "memory_megabytes": config.memory_megabytes,
            },
            nodes=config.nodes,
            control=self._describe_control(),
            signed=self.find_signatures(),
            feeds=tuple(feeds(self._jobs.all(), config)),
            fabric_logs=tuple(fabric_logs(self._jobs.all(), self.sample_fractions)),
        )

    def find_signatures(self) -> Signatures:
        """Also of jobs that are about to come: the store knows it before there is a value."""
        return signatures([*self.coming, *self._jobs.all()])

    def _describe_control(self) -> ControlBroker | None:
        """The control broker, where other sites announce themselves."""
        control = self._config.control
        if control.url is None:
            return None
        url = with_login(control.url, control.user, control.password_file)
        files = {"ca": control.ca, "certificate": control.certificate, "key": control.key}
        tls = {name: str(path) for name, path in files.items() if path is not None}
        return ControlBroker(url, tls or None)


def writes_here(engine: str) -> bool:
    """Whether jobs write their logs on this machine, not on others of a cluster."""
    return engine == NO_ENGINE or engine.startswith("local")


def engine_slots(jobs: Iterable[AgentJob]) -> int:
    """Room to follow all of their streams in real time at once, in two queries of a job."""
    return max(_FEWEST_SLOTS, sum(2 * len(job.streams()) + _STATEFUL_SLOTS for job in jobs))
