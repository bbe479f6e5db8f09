"""Nodes as they announce themselves, and as the coordinator sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.common.errors import DataError

SITE, GATEWAY = "site", "gateway"
KINDS = (SITE, GATEWAY)

NO_ENGINE = "none"
"""The engine of a site that takes in, stores and passes on, but computes nothing."""

ONLINE, OFFLINE = "online", "gone"
SILENT = "silent"
"""Its connection stands, but it has reported nothing for a while."""

SETTLED = frozenset({"running", "stopped"})
"""States of a job in which nothing more is to be waited for."""

_FORBIDDEN = re.compile(r"[/+#$\0]")
_LONGEST_NAME = 120
"""In bytes."""


@dataclass(frozen=True, slots=True)
class Node:
    """A site or a gateway, as it describes itself. Holds no secret: everybody may read it."""

    name: str
    kind: str
    broker: str = ""
    """Where records for it are sent: mqtt://host:port."""
    address: str = ""
    """Where it serves its REST interface: http://host:port."""
    store: str = ""
    """Where its values can be asked for: http://host:port. Empty without a store."""
    engine: str = ""
    cores: int = 0
    memory_mb: int = 0
    latitude: float | None = None
    longitude: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    site: str = ""
    """Of a gateway: the site it forwards to."""

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise DataError(f"a node cannot be called {self.name!r}: it is part of topics")
        if self.kind not in KINDS:
            raise DataError(f"node {self.name}: no kind {self.kind!r}", "site or gateway")

    @property
    def computes(self) -> bool:
        """Whether it can run queries and code."""
        return self.kind == SITE and self.engine != NO_ENGINE

    def as_json(self) -> dict[str, Any]:
        fields = _fields(self) | {"labels": dict(self.labels)}
        return {key: value for key, value in fields.items() if value not in (None, "", 0)}

    @classmethod
    def from_json(cls, data: Any) -> Node:
        """Raises DataError for anything that is no description of a node."""
        if not isinstance(data, dict):
            raise DataError("the description of a node must be a JSON object")
        known = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        try:
            labels = {str(k): str(v) for k, v in dict(known.pop("labels", {})).items()}
            texts = ("name", "kind", "broker", "address", "store", "engine", "site")
            if any(not isinstance(known.get(key, ""), str) for key in texts):
                raise DataError("a node's name, kind and addresses are texts")
            for key in ("cores", "memory_mb"):
                known[key] = int(known.get(key, 0))
            for key in ("latitude", "longitude"):
                known[key] = None if known.get(key) is None else float(known[key])
            return cls(**known, labels=labels)
        except (TypeError, ValueError) as error:
            raise DataError(f"this does not describe a node: {error}") from error


def is_name(text: str) -> bool:
    """Whether a node or job can be called this: it becomes part of topics and file names."""
    if not 0 < len(text) <= _LONGEST_NAME:
        return False
    usable = not _FORBIDDEN.search(text) and text == text.strip()
    return usable and text.isprintable() and len(text.encode()) <= _LONGEST_NAME


@dataclass(frozen=True, slots=True)
class Link:
    """What a node measured of the way to another one."""

    latency_ms: float
    mbit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """One job at one node, as the node itself reports it."""

    job: str
    version: str
    """Of the assignment that is in force."""
    state: str
    """`starting`, `running`, `stopped` or `failed`."""
    problem: str = ""
    runs: tuple[str, ...] = ()
    """The run ids of its Spark queries: they change when a query is started anew."""
    records_in: int = 0
    records_out: int = 0
    bad: int = 0
    late: int = 0
    lag_bytes: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        fields = {
            "job": self.job,
            "version": self.version,
            "state": self.state,
            "problem": self.problem,
            "runs": list(self.runs),
            "records_in": self.records_in,
            "records_out": self.records_out,
            "bad": self.bad,
            "late": self.late,
            "lag_bytes": self.lag_bytes,
            "more": dict(self.more),
        }
        return {key: value for key, value in fields.items() if value}

    @classmethod
    def from_json(cls, data: Any) -> Observed:
        if not isinstance(data, dict) or not isinstance(data.get("job"), str):
            raise DataError("this does not describe a job")
        get = data.get
        return cls(
            data["job"],
            get("version", ""),
            get("state", "starting"),
            get("problem", ""),
            tuple(map(str, get("runs", ()))),
            get("records_in", 0),
            get("records_out", 0),
            get("bad", 0),
            get("late", 0),
            get("lag_bytes", 0),
            get("more", {}),
        )


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node and what it reported last."""

    node: Node
    state: str
    since: float
    """When it took this state, seconds since the epoch."""
    jobs: Mapping[str, Observed] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)
    reported_at: float = 0.0
    """When it last published anything."""
    instance: str = ""
    """Distinguishes the starts of its process."""
    clean: bool = False
    """Offline, and it said so itself: it was stopped, it has not failed."""
    healthy: bool | None = None
    """Whether it last reported that all its parts run; None where it does not report it."""

    @property
    def online(self) -> bool:
        return self.state == ONLINE


def _fields(item: Any) -> dict[str, Any]:
    """Reported many times a second by many nodes: unlike `asdict`, this copies nothing below."""
    return {name: getattr(item, name) for name in item.__dataclass_fields__}
