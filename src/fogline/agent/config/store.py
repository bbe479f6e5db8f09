"""The part `store:` of a site's configuration: what is kept, for how long, who may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fogline.common.config_file import port
from fogline.common.errors import UsageError
from fogline.model.streams import FORMATS, INSIGHT


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic that is kept although no job need read it, and how its records are read."""

    topic: str
    format: str = "json"
    entity: str | None = None
    """The field that names the entity; else the topic does."""
    time: str | None = None
    """The field with the time; else the arrival counts."""
    fields: tuple[str, ...] = ()
    """What to keep; nothing means all."""
    labels: tuple[str, ...] = ()
    prefix: str = ""
    """Before every metric's name."""
    header: tuple[str, ...] = ()
    """csv: the names of the columns."""

    def __post_init__(self) -> None:
        known = [name for name in FORMATS if name != INSIGHT]
        if self.format not in known:
            raise UsageError(
                f"store: topics: the format of {self.topic} is {self.format!r:.80}",
                f"known: {', '.join(known)}",
            )
        if self.format == "csv" and not self.header:
            raise UsageError(
                f"store: topics: {self.topic} is csv without the names of its columns",
                "for example header: [time, device, x]",
            )


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The store of a site and its place in the fabric."""

    enabled: bool = True
    hours: float = 168.0
    megabytes: float = 10_240.0
    memory_megabytes: float = 256.0
    """For the latest values."""
    readings: bool = True
    """Whether what jobs read is kept."""
    insights: bool = True
    metrics: bool = True
    """Whether the site's own metrics are kept."""
    host: str = "127.0.0.1"
    port: int = port()
    """0: a free one, which stays the same afterwards."""
    announce: str = ""
    """The address as other sites reach it; else that of the host and port."""
    secret_file: Path | None = None
    """What all sites of one fabric share; without it other sites are not asked."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Addresses of other sites' stores, where no coordinator sends them."""
    topics: tuple[StoredTopic, ...] = ()
