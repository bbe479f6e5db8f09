"""What nodes publish without being asked: announcements, and their status.

Decoding takes any bytes and raises `DataError` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.common.errors import DataError
from fogline.control.payload import (
    list_of,
    number_of,
    object_of,
    read_object,
    text_of,
    write_object,
)
from fogline.model.nodes import OFFLINE, ONLINE, Link, Node, Observed, is_name

LONGEST_INSTANCE = 64
NODES = "nodes"
_KINDS = {
    **dict.fromkeys(("job", "version", "state", "problem"), str),
    **dict.fromkeys(("records_in", "records_out", "bad", "late", "lag_bytes"), int),
    "more": dict,
}


@dataclass(frozen=True, slots=True)
class Announcement:
    """A node is online, or offline. `instance` distinguishes the starts of its process."""

    state: str
    instance: str
    node: Node
    clean: bool = False
    """Offline by its own word; a last will never says so."""
    everybody: bool = False
    """Offline, and so are all nodes of its instance: the last will of several."""
    through: str = ""
    """The node on whose topics it is asked and publishes its status; empty: its own."""

    def __post_init__(self) -> None:
        if self.state not in (ONLINE, OFFLINE):
            raise DataError(f"unknown node state {self.state[:80]!r}", "write online or gone")
        if self.everybody and self.state != OFFLINE:
            raise DataError("every node announces for itself that it is there")

    def encode(self) -> bytes:
        payload = {"state": self.state, "instance": self.instance, "node": self.node.as_json()}
        more = {"clean": self.clean, "everybody": self.everybody, "through": self.through}
        return write_object(payload | {name: value for name, value in more.items() if value})

    @classmethod
    def decode(cls, payload: bytes, name: str) -> Announcement:
        """`name` is what the topic says; an announcement of another node is none."""
        data = read_object(payload)
        state, instance = text_of(data, "state", 20), text_of(data, "instance", LONGEST_INSTANCE)
        try:
            node = Node.from_json(data.get("node"))
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"this does not describe a node: {error}") from error
        if node.name != name:
            raise DataError(f"node {node.name} announces itself as {name}")
        clean = state == OFFLINE and data.get("clean") is True
        through = text_of(data, "through", LONGEST_INSTANCE * 2, default="")
        if through and not is_name(through):
            raise DataError(f"node {name} cannot be reached through {through[:80]!r}")
        return cls(state, instance, node, clean, data.get("everybody") is True, through)


@dataclass(frozen=True, slots=True)
class Status:
    """What a node does and measures right now."""

    at: float
    instance: str
    jobs: Mapping[str, Observed] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)
    healthy: bool | None = None
    """Whether all its parts run; None where it does not report it."""

    @classmethod
    def decode_all(cls, payload: bytes, name: str) -> dict[str, Status]:
        """Of a message on the topic of node `name`: its own, or those of several, by their
        names."""
        data = read_object(payload)
        at, instance = number_of(data, "at"), text_of(data, "instance", LONGEST_INSTANCE)
        if NODES not in data:
            return {name: cls._of(data, at, instance)}
        nodes = object_of(data, NODES)
        return {node: cls._of(object_of(nodes, node), at, instance) for node in nodes}

    @classmethod
    def _of(cls, data: dict[str, Any], at: float, instance: str) -> Status:
        jobs: dict[str, Observed] = {}
        for item in list_of(data, "jobs"):
            job = _read_observed(item)
            jobs[job.job] = job
        links_payload = object_of(data, "links")
        links = (
            {name: _link(links_payload, name) for name in links_payload} if links_payload else {}
        )
        healthy = data.get("healthy")
        return cls(at, instance, jobs, links, healthy if isinstance(healthy, bool) else None)


def status_payload(at: float, instance: str, status: Mapping[str, Any]) -> dict[str, Any]:
    """A node's own words, with what every status has."""
    return {"jobs": [], "links": {}, **status, "at": at, "instance": instance}


def statuses_payload(
    at: float, instance: str, statuses: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The words of several nodes."""
    return {
        "at": at,
        "instance": instance,
        NODES: {name: dict(of) for name, of in statuses.items()},
    }


def _read_observed(data: Any) -> Observed:
    try:
        job = Observed.from_json(data)
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"invalid job status: {error}") from error
    for name, value in data.items():
        if type(value) is not _KINDS.get(name, type(value)):
            raise DataError(f"the status of job {job.job[:80]!r} has values of wrong types")
    return job


def _link(links: dict[str, Any], name: str) -> Link:
    data = object_of(links, name)
    rate = None if data.get("mbit_s") is None else number_of(data, "mbit_s")
    return Link(number_of(data, "latency_ms"), rate)
