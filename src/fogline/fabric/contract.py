"""The contract with the store process of a site: its configuration and its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.common.process.contract import ProcessStatus
from fogline.model.question import Question

READINGS, INSIGHTS, RESULTS = "readings", "insights", "results"


@dataclass(frozen=True, slots=True)
class StoreFeed:
    """One log that the store reads, and how: see `fogline.storage.ingest.mapping`."""

    log: str
    kind: str = READINGS
    leave_out: tuple[str, ...] = ()
    """Patterns of topics that are stored from another log."""
    job: str | None = None
    format: str | None = None
    fields: tuple[str, ...] | None = None
    entity: str | None = None
    time: str | None = None
    metric: str | None = None
    value: str | None = None
    labels: tuple[str, ...] | None = None
    prefix: str | None = None
    header: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class FabricLog:
    """One log that is written from the fabric, for jobs of the site."""

    log: str
    question: Question
    shares: Mapping[str, float] = field(default_factory=dict)
    """The sample fraction of nodes that send less than is asked for."""


@dataclass(frozen=True, slots=True)
class ControlBroker:
    """Where sites announce themselves; `url` with login."""

    url: str
    tls: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreProcessConfig:
    revision: int
    site: str
    folder: str
    secrets: tuple[tuple[str, float | None], ...]
    """Of the fabric, the newest first, each with the time until when it is accepted."""
    host: str
    hosts: tuple[str, ...]
    """Names of the host that requests may use."""
    port: int
    """0: a free one."""
    limits: Mapping[str, float]
    nodes: Mapping[str, str]
    """Addresses of other nodes of the fabric, by name."""
    control: ControlBroker | None
    signed: Mapping[str, Mapping[str, str | None]]
    """By insight and job: the keys that reading it needs."""
    feeds: tuple[StoreFeed, ...]
    fabric_logs: tuple[FabricLog, ...]


@dataclass(frozen=True, slots=True)
class FeedStatus:
    log: str
    kind: str
    state: str
    why: str
    lag: int
    """In bytes."""
    values: int
    rejected: Mapping[str, int]
    """By reason."""
    skipped_bytes: int


@dataclass(frozen=True, slots=True)
class FabricLogStatus:
    log: str
    state: str
    values: int
    """Since the start."""
    nodes: Mapping[str, int]
    """How far each is read."""
    shares: Mapping[str, float]
    copies: Mapping[str, str]
    """Nodes whose values are read from a copy, and where that is."""
    away: Mapping[str, str]
    """Nodes that are unreachable, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus(ProcessStatus):
    """`why` and `hint` while the store cannot be opened, else all the others."""

    why: str | None = None
    hint: str | None = None
    address: str | None = None
    store: Mapping[str, Any] | None = None
    """`fogline.storage.store.StoreState`."""
    damaged: tuple[str, ...] | None = None
    feeds: tuple[FeedStatus, ...] | None = None
    nodes: tuple[Mapping[str, Any], ...] | None = None
    """As `GET /v1/nodes` answers."""
    fabric_logs: tuple[FabricLogStatus, ...] | None = None
