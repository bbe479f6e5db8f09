"""The contract with the publishing process: its configuration and its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fogline.common.process.contract import ProcessStatus
from fogline.links.sender import PUBLISHER
from fogline.links.start_position import START


@dataclass(frozen=True, slots=True)
class OutgoingRoute:
    """One log on its way to one broker."""

    log: str
    broker: str
    mode: str = ""
    """`link`, `publish`, or nothing: every record on its own topic."""
    topic: str = ""
    reader: str = PUBLISHER
    begin: str = field(default=START, compare=False)
    """Where to begin the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishConfig:
    revision: int
    logs: str
    """The folder of the site's logs."""
    same_machine: bool
    """Whether all logs are written on this machine."""
    tls: Mapping[str, str] | None
    client: str
    broker: str
    """The address of the site's own broker."""
    topics: tuple[str, ...]
    """Logs whose records go to the site's own broker, each on its own topic."""
    routes: tuple[OutgoingRoute, ...]


@dataclass(frozen=True, slots=True)
class SendingStatus:
    state: str
    messages: int = 0
    lag: int = 0
    """In bytes."""
    left_out: int = 0
    refused: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus(SendingStatus):
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStatus(SendingStatus):
    log: str
    reader: str
    mode: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishStatus(ProcessStatus):
    topics: tuple[TopicStatus, ...]
    routes: tuple[RouteStatus, ...]
