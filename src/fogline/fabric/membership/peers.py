"""What is known of another node: how it was when last looked at, and what it reported of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fogline.fabric.query.query_types import ANSWERED, UNREACHABLE
from fogline.model.nodes import is_name
from fogline.storage.errors import BadValue
from fogline.storage.files.identity import is_id
from fogline.storage.files.manifest import amount
from fogline.storage.names import MAX_NAMES

UNKNOWN = "unknown"
"""Not looked at yet; it is asked like one that answers."""
_MOST = 10_000
_HIGHEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Block:
    """Where a store keeps the values of an older one that it took back: at their number and
    `base`. `sources` names the nodes whose copies it has taken as a whole."""

    base: int
    room: int
    sources: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {"base": self.base, "room": self.room, "from": list(self.sources)}


Loss = tuple[int, int, int]
"""The first and the last event time of values that are lost, and how many."""


@dataclass(frozen=True, slots=True)
class CopyInfo:
    """A copy that a node holds: of which store, what of it, and from and up to when it is
    complete."""

    id: str
    metrics: tuple[str, ...] | None = None
    until: int | None = None
    bytes: int = 0
    rows: int = 0
    last: int = -1
    """The highest number among its values."""
    includes: Mapping[str, Block] = field(default_factory=dict)
    """Older stores whose values are among those of this one."""
    since: int | None = None
    """The event time from which on nothing is missing that its origin still has; None: nothing is,
    whatever the time."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "metrics": None if self.metrics is None else list(self.metrics),
            "until": self.until,
            "since": self.since,
            "bytes": self.bytes,
            "rows": self.rows,
            "last": self.last,
            "includes": {old: block.as_json() for old, block in self.includes.items()},
        }


@dataclass(frozen=True, slots=True)
class PeerReport:
    """The report of a node at `GET /v1/state`."""

    id: str = ""
    rows: int = 0
    bytes: int = 0
    last: int = -1
    first: int = 0
    """No value that it has on disk has a lower number."""
    metadata: int = 0
    restoring: bool = False
    restored: Mapping[str, Block] = field(default_factory=dict)
    copies: Mapping[str, CopyInfo] = field(default_factory=dict)
    lost: tuple[Loss, ...] = ()
    """What was in damaged files."""

    @property
    def restores(self) -> int:
        """Grows whenever old values came back below numbers that were sent already."""
        return sum(len(block.sources) for block in self.restored.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "rows": self.rows,
            "bytes": self.bytes,
            "last": self.last,
            "first": self.first,
            "metadata": self.metadata,
            "restoring": self.restoring,
            "restored": {old: block.as_json() for old, block in self.restored.items()},
            "copies": {origin: copy.as_json() for origin, copy in self.copies.items()},
            "lost": [list(loss) for loss in self.lost],
        }


@dataclass(frozen=True, slots=True)
class PeerView:
    """Another node as this one sees it."""

    address: str = ""
    state: str = UNKNOWN
    why: str = ""
    latency_ms: float | None = None
    report: PeerReport = PeerReport()

    @property
    def can_be_asked(self) -> bool:
        return self.state in (ANSWERED, UNKNOWN)

    def with_answer(self, report: PeerReport, latency_ms: float) -> PeerView:
        return replace(self, state=ANSWERED, why="", report=report, latency_ms=latency_ms)

    def with_failure(self, why: str, state: str = UNREACHABLE) -> PeerView:
        return replace(self, state=state, why=why)


def loss_within(lost: Iterable[Loss], start: int | None, end: int | None) -> str:
    """What is lost of a stretch of time, for people; empty where nothing is."""
    here = [
        loss
        for loss in lost
        if (end is None or loss[0] < end) and (start is None or loss[1] >= start)
    ]
    if not here:
        return ""
    rows = sum(count for _, _, count in here)
    first, last = min(first for first, _, _ in here), max(last for _, last, _ in here)
    return f"{amount(rows, first, last)} are lost, their file is damaged"


def read_state(data: Mapping[str, Any]) -> PeerReport:
    """The report of another node. Raises `BadValue` when it cannot be understood."""
    if not is_id(data.get("id")):
        raise BadValue("its state has no store id")
    return PeerReport(
        id=str(data["id"]),
        rows=_number(data, "rows"),
        bytes=_number(data, "bytes"),
        last=_number(data, "last", -1),
        first=_number(data, "first"),
        metadata=_number(data, "metadata"),
        restoring=_flag(data, "restoring"),
        restored=read_blocks(data.get("restored", {})),
        copies=_copies(_read_by_node(data, "copies")),
        lost=_losses(data.get("lost", [])),
    )


def _losses(data: Any) -> tuple[Loss, ...]:
    if not isinstance(data, list) or len(data) > _MOST:
        raise BadValue("`lost` must be a list")
    found = []
    for loss in data:
        if not isinstance(loss, list) or len(loss) != 3 or any(type(n) is not int for n in loss):
            raise BadValue("a loss is two times and a number of values")
        found.append((loss[0], loss[1], loss[2]))
    return tuple(found)


def _copies(data: Mapping[str, Any]) -> dict[str, CopyInfo]:
    """Those that have begun: others are desired, but do not know their origin's store yet."""
    begun = {name: copy for name, copy in data.items() if isinstance(copy, dict) and "id" in copy}
    return {name: read_copy(copy) for name, copy in begun.items()}


def read_copy(data: Any) -> CopyInfo:
    if not isinstance(data, dict) or not is_id(data.get("id")):
        raise BadValue("a copy has no store id")
    until, since = data.get("until"), data.get("since")
    return CopyInfo(
        id=str(data["id"]),
        metrics=read_metrics(data.get("metrics")),
        until=None if until is None else _number(data, "until"),
        bytes=_number(data, "bytes"),
        rows=_number(data, "rows"),
        last=_number(data, "last", -1),
        includes=read_blocks(data.get("includes", {})),
        since=None if since is None else _number(data, "since", -_HIGHEST),
    )


def read_metrics(data: Any) -> tuple[str, ...] | None:
    if data is None:
        return None
    if not isinstance(data, list) or len(data) > MAX_NAMES:
        raise BadValue("the metrics of a copy are a list of names")
    if not all(isinstance(name, str) for name in data):
        raise BadValue("the metrics of a copy are texts")
    return tuple(data)


def read_blocks(data: Any) -> dict[str, Block]:
    if not isinstance(data, dict) or len(data) > _MOST:
        raise BadValue("restored blocks must be a mapping by store id")
    return {old: _block(old, block) for old, block in data.items()}


def _block(old: str, data: Any) -> Block:
    sources = data.get("from", []) if isinstance(data, dict) else None
    if not is_id(old) or not isinstance(sources, list) or len(sources) > _MOST:
        raise BadValue("a restored block must have a store id and a list of nodes")
    if not all(isinstance(name, str) and is_name(name) for name in sources):
        raise BadValue("what was taken back came from nodes")
    return Block(_number(data, "base"), _number(data, "room"), tuple(sources))


def _read_by_node(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key, {})
    if not isinstance(found, dict) or len(found) > _MOST or not all(map(is_name, found)):
        raise BadValue(f"{key} must be a mapping by node")
    return found


def _number(data: Mapping[str, Any], key: str, lowest: int = 0) -> int:
    found = data.get(key, lowest)
    if type(found) is not int or not lowest <= found < _HIGHEST:
        raise BadValue(f"{key} is out of range or not a number")
    return found


def _flag(data: Mapping[str, Any], key: str) -> bool:
    found = data.get(key, False)
    if type(found) is not bool:
        raise BadValue(f"{key} is true or false")
    return found
