"""What a node tells about its store, checked: a node may answer anything.

`read_report` raises DataError and nothing else, whatever the answer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fogline.common.errors import DataError
from fogline.model.nodes import is_name
from fogline.model.sample_fractions import Shares, read_shares

Metrics = tuple[str, ...] | None
"""Names and prefixes (`cpu_%`); None means all."""

LARGEST = 1 << 60
MOST_METRICS = 200_000
MOST_COPIES = 10_000
LONGEST_NAME = 1_026
"""A metric's 1,024 bytes, and `%` with a backslash."""


@dataclass(frozen=True, slots=True)
class Held:
    """A copy at the node that tells: of which metrics, and complete up to when."""

    metrics: Metrics
    until: float | None
    """Seconds since the epoch; None while it is not complete."""
    bytes: int
    wanted: Metrics
    """What the node is about to hold, where that is not yet what it holds."""


@dataclass(frozen=True, slots=True)
class Report:
    """A node's own values, by metric too, and the copies of others' it holds."""

    id: str
    bytes: int
    metrics: Mapping[str, int] = field(default_factory=dict)
    copies: Mapping[str, Held] = field(default_factory=dict)
    shares: Shares = field(default_factory=dict)
    """What is sent to its queries, where that is less than they ask for."""

    def has(self, metrics: Metrics) -> bool:
        """Whether there is anything of these metrics."""
        if metrics is None:
            return bool(self.metrics)
        return any(matches(pattern, name) for pattern in metrics for name in self.metrics)

    def size_of(self, metrics: Metrics) -> int:
        """Bytes of these metrics, never more than there are."""
        if metrics is None:
            return self.bytes
        return min(sum(self.metrics[name] for name in self.named(metrics)), self.bytes)

    def named(self, metrics: tuple[str, ...]) -> set[str]:
        """Its metrics among these names and prefixes; of either there may be very many."""
        exact = {_meant(pattern) for pattern in metrics if not is_prefix(pattern)}
        starts = tuple(pattern[:-1] for pattern in metrics if is_prefix(pattern))
        return {name for name in self.metrics if name in exact or name.startswith(starts)}


def matches(pattern: str, name: str) -> bool:
    """As stores read names: a trailing `%` makes a prefix, `\\%` stands for the sign itself."""
    if pattern.endswith("\\%"):
        return name == pattern[:-2] + "%"
    return name.startswith(pattern[:-1]) if pattern.endswith("%") else name == pattern


def is_prefix(pattern: str) -> bool:
    return pattern.endswith("%") and not pattern.endswith("\\%")


def as_pattern(name: str) -> str:
    """What matches this name and no other."""
    return f"{name[:-1]}\\%" if name.endswith("%") else name


def _meant(pattern: str) -> str:
    return f"{pattern[:-2]}%" if pattern.endswith("\\%") else pattern


def read_report(body: Mapping[str, Any]) -> Report:
    """The answer to the operation `store`."""
    id, metrics, copies = body.get("id"), body.get("metrics"), body.get("copies")
    if not isinstance(id, str) or not 0 < len(id) <= 200:
        raise DataError("it tells no id of its store")
    if not isinstance(metrics, dict) or len(metrics) > MOST_METRICS:
        raise DataError(f"it tells no sizes of at most {MOST_METRICS:,} metrics")
    if not isinstance(copies, dict) or len(copies) > MOST_COPIES:
        raise DataError(f"it tells no copies, {MOST_COPIES:,} at most")
    for name in metrics:
        check_metric(name)
    return Report(
        id,
        _size(body.get("bytes"), "its store"),
        {name: _size(size, "a metric") for name, size in metrics.items()},
        {origin: _held(origin, told) for origin, told in copies.items()},
        read_shares(body.get("shares", {})),
    )


def read_metrics(told: Any) -> Metrics:
    """null, or a list of names and prefixes; each once, in their order."""
    if told is None:
        return None
    if not isinstance(told, list) or len(told) > MOST_METRICS:
        raise DataError(f"metrics are null for all, or a list of {MOST_METRICS:,} names at most")
    for name in told:
        check_metric(name)
    return tuple(sorted(set(told)))


def check_metric(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise DataError("a metric's name is a text")
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise DataError("a metric's name holds half a character") from error
    if size > LONGEST_NAME or "\0" in name:
        raise DataError(f"a metric's name has at most {LONGEST_NAME:,} bytes, none of them zero")


def _held(origin: str, told: Any) -> Held:
    if not is_name(origin) or not isinstance(told, dict):
        raise DataError(f"it tells of a copy of {origin[:100]!r}, which is none")
    return Held(
        read_metrics(told.get("metrics")),
        _time(told.get("until")),
        _size(told.get("bytes"), f"its copy of {origin}"),
        read_metrics(told.get("wanted", told.get("metrics"))),
    )


def _size(told: Any, what: str) -> int:
    if isinstance(told, bool) or not isinstance(told, int) or not 0 <= told <= LARGEST:
        raise DataError(f"it tells no size of {what} in bytes")
    return told


def _time(told: Any) -> float | None:
    """Microseconds since 1970, or ISO 8601, as seconds."""
    if told is None:
        return None
    try:
        if isinstance(told, str) and len(told) <= 40:
            found = datetime.fromisoformat(told)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        if isinstance(told, int | float) and not isinstance(told, bool):
            return datetime.fromtimestamp(told / 1e6, UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    raise DataError("it tells no time up to which a copy is complete")
