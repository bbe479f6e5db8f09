"""A site's configuration file: YAML, checked when read, with the place of what is wrong in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from fogline.agent.store_config import StoreConfig, StoredTopic
from fogline.broker.login import with_login
from fogline.errors import DataError, UsageError

EXAMPLE = """\
site: north
jobs: [city.ins]
"""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The site's broker: an own Mosquitto, or with `url` an existing broker."""

    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    host: str = "127.0.0.1"
    """Where the own Mosquitto listens; anything but loopback needs a user and a password."""
    port: int = 0
    """Port of the own Mosquitto; 0: a free one."""
    sync: bool = False
    """What messages survive once the own Mosquitto has confirmed them: the death of every process,
    or with `sync` a power failure too (then a message takes as long as the disk does)."""


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
    """Other sites whose brokers want a login."""
    labels: Mapping[str, str] = field(default_factory=dict)
    latitude: float | None = None
    longitude: float | None = None
    announce: str = ""
    """The broker's address as other sites reach it; else the one that devices get."""
    cores: int = 0
    memory_mb: int = 0
    """What it tells about its resources; 0: those of the machine."""
    engine: str = "local[*]"
    memory: str = "1g"
    trigger_ms: int = 1000
    http_port: int = 0
    """Port of health and metrics on loopback; 0: a free one."""
    metrics_seconds: float = 5.0
    min_free_megabytes: float = 256.0

    @property
    def min_free_bytes(self) -> int:
        return round(self.min_free_megabytes * (1 << 20))

    def peer_url(self, name: str, address: str) -> str:
        """The address of another site's broker, with the login it wants."""
        peer = self.peers.get(name)
        if peer is None or not address:
            return address
        return with_login(address, peer.user, peer.password_file)


def read_config(path: Path) -> SiteConfig:
    """Reads a file; paths in it are relative to it. Raises UsageError with every unknown key."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        line = str(error).replace("\n", " ")
        raise UsageError(f"{path} is not YAML: {line}") from error
    return parse_config(data, path.parent.resolve(), str(path))


def parse_config(data: Any, base: Path, name: str) -> SiteConfig:
    values = _mapping(data, name)
    _refuse_unknown(values, SiteConfig, name)
    if not isinstance(values.get("site"), str) or not values["site"]:
        raise UsageError(f"{name}: 'site' must be the site's name", "for example site: north")
    given = {key: value for key, value in values.items() if key not in _PARTS}
    settings = _typed(given, SiteConfig, name, base)
    return SiteConfig(
        **{"folder": base / values["site"]} | settings,
        jobs=tuple(_job(job, base, name) for job in _list(values.get("jobs", []), f"{name}: jobs")),
        broker=BrokerConfig(
            **_part(values.get("broker", {}), BrokerConfig, base, f"{name}: broker")
        ),
        retention=RetentionConfig(
            **_part(values.get("retention", {}), RetentionConfig, base, f"{name}: retention")
        ),
        store=_store(values.get("store", {}), base, f"{name}: store"),
        control=ControlConfig(
            **_part(values.get("control", {}), ControlConfig, base, f"{name}: control")
        ),
        peers={
            peer: PeerConfig(**_part(given, PeerConfig, base, f"{name}: peers: {peer}"))
            for peer, given in _mapping(values.get("peers", {}), f"{name}: peers").items()
        },
        labels={
            key: str(value)
            for key, value in _mapping(values.get("labels", {}), f"{name}: labels").items()
        },
    )


_PARTS = ("jobs", "broker", "retention", "store", "control", "peers", "labels")
_WANTED = {
    "int": "a whole number, 0 or more",
    "float": "a number above 0",
    "bool": "true or false",
    "tuple[str, ...]": "a list of texts",
}


def _job(data: Any, base: Path, name: str) -> JobConfig:
    if isinstance(data, str):
        data = {"query": data}
    values = _mapping(data, f"{name}: a job")
    _refuse_unknown(values, JobConfig, f"{name}: a job")
    if not isinstance(values.get("query"), str):
        raise UsageError(f"{name}: a job needs 'query', its .ins file", "for example - city.ins")
    query = base / values["query"]
    job = str(values.get("name", query.stem))
    if not job or any(sign in job for sign in "/+#\0"):
        raise UsageError(f"{name}: a job cannot be called {job!r}: it is part of a topic")
    return JobConfig(job, query)


def _store(data: Any, base: Path, name: str) -> StoreConfig:
    values = _mapping(data, name)
    _refuse_unknown(values, StoreConfig, name)
    nodes = _mapping(values.get("nodes", {}), f"{name}: nodes")
    topics = _list(values.get("topics", []), f"{name}: topics")
    given = {key: value for key, value in values.items() if key not in ("nodes", "topics")}
    return StoreConfig(
        **_typed(given, StoreConfig, name, base),
        nodes={
            node: _value(url, "str", f"{name}: nodes: {node}", base) for node, url in nodes.items()
        },
        topics=tuple(_topic(topic, base, f"{name}: topics") for topic in topics),
    )


def _topic(data: Any, base: Path, name: str) -> StoredTopic:
    values = _mapping({"topic": data} if isinstance(data, str) else data, name)
    if not values.get("topic"):
        raise UsageError(f"{name}: one has no topic", "for example topics: [plant/#]")
    return StoredTopic(**_part(values, StoredTopic, base, name))


def _part(data: Any, kind: type, base: Path, name: str) -> dict[str, Any]:
    values = _mapping(data, name)
    _refuse_unknown(values, kind, name)
    return _typed(values, kind, name, base)


def _typed(values: dict[str, Any], kind: type, name: str, base: Path) -> dict[str, Any]:
    types = {f.name: str(f.type) for f in fields(kind)}
    return {key: _value(value, types[key], f"{name}: {key}", base) for key, value in values.items()}


def _value(value: Any, kind: str, name: str, base: Path) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if "Path" in kind and isinstance(value, str):
        return base / value
    if kind.startswith("str") and isinstance(value, str):
        return value
    if kind == "int" and isinstance(value, int) and number and value >= 0:
        return value
    if kind == "float" and number and value > 0:
        return float(value)
    if kind == "float | None" and number:
        return float(value)
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "tuple[str, ...]" and isinstance(value, list):
        return tuple(_value(item, "str", name, base) for item in value)
    wanted = _WANTED.get(kind, "a text")
    raise UsageError(f"{name} is {value!r}, not {wanted}")


def _mapping(data: Any, name: str) -> dict[str, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{name}: expected names and values", f"for example:\n{EXAMPLE}")
    return data


def _list(data: Any, name: str) -> list[Any]:
    if not isinstance(data, list):
        raise UsageError(f"{name} must be a list", "for example jobs: [city.ins]")
    return data


def _refuse_unknown(values: dict[str, Any], kind: type, name: str) -> None:
    known = [f.name for f in fields(kind)]
    unknown = [key for key in values if key not in known]
    if unknown:
        raise UsageError(f"{name}: unknown {', '.join(unknown)}", f"known: {', '.join(known)}")
