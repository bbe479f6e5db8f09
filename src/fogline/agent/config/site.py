"""A site's configuration file: YAML, checked when read, with the place of what is wrong in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline.agent.config.store import StoreConfig
from fogline.broker.login import with_login
from fogline.broker.mosquitto.access import check_login
from fogline.common.config_file import Reader, port, read_yaml, within
from fogline.common.errors import UsageError
from fogline.common.http.hosts import Hosts
from fogline.model.broker_url import PROTOCOLS
from fogline.model.nodes import NO_ENGINE

OLDEST, NOW = "oldest", "now"
DEFAULT_PROTOCOL = "5"
_COUNT = r"(\*|[1-9]\d*)"
_ENGINE = re.compile(
    rf"none|local|local\[{_COUNT}(,\s*\d+)?\]|local-cluster\[[\d,\s]+\]|(spark|k8s)://\S+|yarn"
)
LOOPBACK = "127.0.0.1"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*")
_MEMORY = re.compile(r"[1-9]\d*[kmgt]b?", re.IGNORECASE)
EXAMPLE = """\
site: north
jobs: [city.ins]
"""


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """A further login of the own Mosquitto, and the keys of signed insights that it holds."""

    password_file: Path
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The site's broker: an own Mosquitto, or with `url` an existing broker."""

    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    """Of the own Mosquitto: then devices connect with TLS. Of an existing one: what we show it."""
    host: str = "127.0.0.1"
    """Where the own Mosquitto listens; anything but loopback needs a user and a password."""
    protocol: str = DEFAULT_PROTOCOL
    """What an existing broker speaks: 5 or 3.1.1."""
    port: int = port()
    """Port of the own Mosquitto; 0: a free one."""
    sync: bool = False
    """What messages survive once the own Mosquitto has confirmed them: the death of every process,
    or with `sync` a power failure too (then a message takes as long as the disk does)."""
    queued_megabytes: float = 64.0
    """What the own Mosquitto keeps in memory for one subscriber that is offline or behind."""
    keys: tuple[str, ...] = ()
    """Of signed insights, that `user` may read at the own Mosquitto."""
    readers: Mapping[str, ReaderConfig] = field(default_factory=dict)

    @property
    def logins(self) -> dict[str, frozenset[str]]:
        """All users of the own Mosquitto, and their keys."""
        main = {} if self.user is None else {self.user: frozenset(self.keys)}
        return {name: frozenset(reader.keys) for name, reader in self.readers.items()} | main

    def __post_init__(self) -> None:
        self._check_readers()
        if self.protocol not in PROTOCOLS:
            known = " or ".join(PROTOCOLS)
            raise UsageError(f"broker: protocol is {self.protocol!r:.80}, not {known}")
        if self.url is None and (self.certificate is None) != (self.key is None):
            text = "broker: TLS needs both 'certificate' and 'key'"
            raise UsageError(text, "the broker's own, PEM files")

    def _check_readers(self) -> None:
        if (self.keys or self.readers) and self.url is not None:
            text = "broker: 'keys' and 'readers' are for the site's own Mosquitto"
            raise UsageError(text, "who may read what at an existing broker, its own rules say")
        if self.keys and self.user is None:
            raise UsageError("broker: 'keys' are those of 'user'", "or name a login in 'readers'")
        if self.user is not None and self.user in self.readers:
            raise UsageError(f"broker: {self.user!r:.80} is 'user' and one of 'readers'")
        if self.url is None:
            for name, keys in self.logins.items():
                check_login(name, keys)


@dataclass(frozen=True, slots=True)
class ControlConfig:
    """The control broker of a coordinator; without `url` the site is on its own."""

    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class PeerConfig:
    """How to log in at the broker of another site."""

    user: str | None = None
    password_file: Path | None = None


@dataclass(frozen=True, slots=True)
class JobConfig:
    name: str
    query: Path
    start: str = OLDEST
    """Where a computation begins that is new here: with the oldest message that is kept, or `now`;
    one that replaces another then goes on where that one was."""

    def __post_init__(self) -> None:
        if self.start not in (OLDEST, NOW):
            text = f"job {self.name}: start is {self.start!r:.80}, not {OLDEST} or {NOW}"
            raise UsageError(text)


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    hours: float = 168.0
    megabytes: float = 10_240.0
    """Per log; what a job still needs is always kept."""


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """All of it; everything but `site` and `jobs` has a default."""

    site: str
    folder: Path
    jobs: tuple[JobConfig, ...] = ()
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    control: ControlConfig = field(default_factory=ControlConfig)
    peers: Mapping[str, PeerConfig] = field(default_factory=dict)
    """Other sites whose brokers require a login."""
    labels: Mapping[str, str] = field(default_factory=dict)
    latitude: float | None = within(-90, 90, None)
    longitude: float | None = within(-180, 180, None)
    announce: str = ""
    """The broker's address as other sites reach it; else the one that devices get."""
    announce_http: str = ""
    """The address http://host:port at which compositions name it; else the one on loopback."""
    cores: int = 0
    memory_mb: int = 0
    """What it reports about its resources; 0: those of the machine."""
    engine: str = "local[*]"
    engine_host: str = LOOPBACK
    """This machine's address for the workers of a Spark cluster; there the driver listens."""
    memory: str = "1g"
    trigger_ms: int = 1000
    live_seconds: float = within(5, 86_400, 300.0)
    """How long a batch in real time lasts: between two of them results wait, and after a crash one
    is computed again."""
    http_port: int = port()
    """Port of health and metrics on loopback; 0: a free one."""
    hosts: tuple[str, ...] = ()
    """Other names by which the site's HTTP is reached; requests to foreign ones are refused."""
    metrics_seconds: float = 5.0
    min_free_megabytes: float = 256.0

    def __post_init__(self) -> None:
        if not _ENGINE.fullmatch(self.engine):
            raise UsageError(
                f"engine is {self.engine!r:.80}, which is no Spark master",
                "one of local[*], local[4], spark://host:7077, none",
            )
        if not _HOST.fullmatch(self.engine_host):
            raise UsageError(
                f"engine_host is {self.engine_host!r:.80}, which is no address of this machine",
                "its name or IP address, without a port",
            )
        if self.engine_host != LOOPBACK and self.engine.startswith(("local", NO_ENGINE)):
            raise UsageError(
                f"engine_host is for a Spark cluster, and the engine is {self.engine}",
                "leave it out, or name the cluster: engine: spark://host:7077",
            )
        if not _MEMORY.fullmatch(self.memory):
            raise UsageError(
                f"memory is {self.memory!r:.80}, which is no size", "for example 1g or 512m"
            )

        Hosts(self.store.host, (*self.hosts, self.store.announce, self.announce_http))

    @property
    def min_free_bytes(self) -> int:
        return round(self.min_free_megabytes * (1 << 20))

    def peer_url(self, name: str, address: str) -> str:
        """The address of another site's broker, with the login it requires."""
        peer = self.peers.get(name)
        if peer is None or not address:
            return address
        return with_login(address, peer.user, peer.password_file)


def read_config(path: Path) -> SiteConfig:
    """Reads a file; paths in it are relative to it. Raises UsageError with every unknown key."""
    return parse_config(read_yaml(path), path.parent.resolve(), str(path))


def parse_config(data: Any, base: Path, name: str) -> SiteConfig:
    reader = Reader(base, EXAMPLE)
    values = reader.mapping(data, name)
    if not isinstance(values.get("site"), str) or not values["site"]:
        raise UsageError(f"{name}: 'site' must be the site's name", "for example site: north")
    values = {"folder": values["site"], **values}
    if "jobs" in values:
        jobs = reader.list(values["jobs"], f"{name}: jobs")
        values["jobs"] = [_job(job, reader, f"{name}: a job") for job in jobs]
    if "labels" in values:
        values["labels"] = reader.labels(values["labels"], f"{name}: labels")
    if "broker" in values:
        values["broker"] = _broker(values["broker"], reader, f"{name}: broker")
    if "store" in values:
        values["store"] = _store(values["store"], reader, f"{name}: store")
    return reader.make(SiteConfig, values, name)


def _job(data: Any, reader: Reader, name: str) -> dict[str, Any]:
    """A job may be its file alone, whose name it then has."""
    values = reader.mapping({"query": data} if isinstance(data, str) else data, name)
    if not isinstance(values.get("query"), str):
        raise UsageError(f"{name} needs 'query', its .ins file", "for example - city.ins")
    job = str(values.get("name", Path(values["query"]).stem))
    if not job or any(sign in job for sign in "/+#\0"):
        raise UsageError(f"{name} cannot be called {job!r}: it is part of a topic")
    return {**values, "name": job}


def _broker(data: Any, reader: Reader, name: str) -> dict[str, Any]:
    """YAML reads a protocol 5 as a number."""
    values = reader.mapping(data, name)
    number = values.get("protocol")
    return values | {"protocol": str(number)} if type(number) in (int, float) else values


def _store(data: Any, reader: Reader, name: str) -> dict[str, Any]:
    """A topic may be its name alone."""
    values = reader.mapping(data, name)
    if "topics" not in values:
        return values
    topics = [
        {"topic": topic} if isinstance(topic, str) else reader.mapping(topic, f"{name}: topics")
        for topic in reader.list(values["topics"], f"{name}: topics")
    ]
    if not all(topic.get("topic") for topic in topics):
        raise UsageError(f"{name}: topics: one has no topic", "for example topics: [plant/#]")
    return {**values, "topics": topics}
