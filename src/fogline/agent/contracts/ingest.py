"""The contract with the ingest process: its configuration and its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fogline.broker.topics import SHARE, matches, split_share
from fogline.common.process.contract import ProcessStatus
from fogline.links.batch import PREFIX
from fogline.links.copier import Copy


@dataclass(frozen=True, slots=True)
class Subscription:
    pattern: str
    log: str
    broker: str
    """The address of the broker; empty: the site's own, by its journal."""
    deduplicate: bool = True
    qos: int = 1

    @property
    def own(self) -> bool:
        """Whether these are topics of this site, which copies and links write too: the logs of
        other brokers' topics have a name with the broker in it."""
        return self.log == self.pattern and not split_share(self.pattern)[1].startswith("$")

    def takes(self, topic: str) -> bool:
        return matches(split_share(self.pattern)[1], topic)

    @property
    def filters(self) -> tuple[str, ...]:
        """What to subscribe to: the pattern, and batches for topics that it takes."""
        group, pattern = split_share(self.pattern)
        linked = PREFIX + pattern
        if not self.own or matches(pattern, linked):
            return (self.pattern,)
        return (self.pattern, linked if group is None else f"{SHARE}{group}/{linked}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestConfig:
    revision: int
    logs: str
    """The folder of the site's logs."""
    min_free_bytes: int
    same_machine: bool
    """Whether all logs that are copied are written on this machine."""
    tls: Mapping[str, str] | None
    client: str
    subscriptions: tuple[Subscription, ...]
    copies: tuple[Copy, ...]
    journal: str | None = None
    """The journal of the site's own broker."""
    retained: str | None = None
    """The address of the broker that is asked for retained messages."""


@dataclass(frozen=True, slots=True)
class SubscriptionStatus:
    pattern: str
    log: str
    state: str
    messages: int
    repeated: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CopyStatus:
    log: str
    topic: str
    reader: str
    state: str
    messages: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestStatus(ProcessStatus):
    subscriptions: tuple[SubscriptionStatus, ...]
    copies: tuple[CopyStatus, ...]
    bad_links: int
