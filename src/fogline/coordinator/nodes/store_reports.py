"""The report of a node about its store, checked: a node may answer anything.

`read_report` raises DataError and nothing else, whatever the answer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fogline.common.errors import DataError
from fogline.model.nodes import is_name
from fogline.model.sample_fractions import SampleFractions, read_sample_fractions

Metrics = tuple[str, ...] | None
"""Names and prefixes (`cpu_%`); None means all."""

LARGEST = 1 << 60
MOST_METRICS = 200_000
MOST_COPIES = 10_000
LONGEST_NAME = 1_026
"""A metric's 1,024 bytes, and `%` with a backslash."""


@dataclass(frozen=True, slots=True)
class Held:
    """A copy at the node that reports: of which metrics, and complete up to when."""

    metrics: Metrics
    until: float | None
    """Seconds since the epoch; None while it is not complete."""
    bytes: int
    desired: Metrics
    """What the node is about to hold, where that is not yet what it holds."""


@dataclass(frozen=True, slots=True)
class Report:
    """A node's own values, by metric too, and the copies of others' it holds."""

    id: str
    bytes: int
    metrics: Mapping[str, int] = field(default_factory=dict)
    copies: Mapping[str, Held] = field(default_factory=dict)
    sample_fractions: SampleFractions = field(default_factory=dict)
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
        return min(sum(self.metrics[name] for name in self.match_metrics(metrics)), self.bytes)

    def match_metrics(self, metrics: tuple[str, ...]) -> set[str]:
        """Its metrics among these names and prefixes; of either there may be very many."""
        exact = {_unescape_pattern(pattern) for pattern in metrics if not is_prefix(pattern)}
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


def _unescape_pattern(pattern: str) -> str:
    return f"{pattern[:-2]}%" if pattern.endswith("\\%") else pattern


def read_report(body: Mapping[str, Any]) -> Report:
    """The answer to the operation `store`."""
    id, metrics, copies = body.get("id"), body.get("metrics"), body.get("copies")
    if not isinstance(id, str) or not 0 < len(id) <= 200:
        raise DataError("its report has no store id")
    if not isinstance(metrics, dict) or len(metrics) > MOST_METRICS:
        raise DataError(f"its report has no sizes of metrics, at most {MOST_METRICS:,}")
    if not isinstance(copies, dict) or len(copies) > MOST_COPIES:
        raise DataError(f"its report has no copies, at most {MOST_COPIES:,}")
    for name in metrics:
        check_metric(name)
    return Report(
        id,
        _size(body.get("bytes"), "its store"),
        {name: _size(size, "a metric") for name, size in metrics.items()},
        {origin: _read_held(origin, data) for origin, data in copies.items()},
        read_sample_fractions(body.get("shares", {})),
    )


def read_metrics(data: Any) -> Metrics:
    """null, or a list of names and prefixes; each once, in their order."""
    if data is None:
        return None
    if not isinstance(data, list) or len(data) > MOST_METRICS:
        raise DataError(f"metrics are null for all, or a list of {MOST_METRICS:,} names at most")
    for name in data:
        check_metric(name)
    return tuple(sorted(set(data)))


def check_metric(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise DataError("the name of a metric must be a text")
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise DataError("a metric's name holds half a character") from error
    if size > LONGEST_NAME or "\0" in name:
        raise DataError(f"a metric's name has at most {LONGEST_NAME:,} bytes, none of them zero")


def _read_held(origin: str, data: Any) -> Held:
    if not is_name(origin) or not isinstance(data, dict):
        raise DataError(f"its report has a wrong copy of {origin[:100]!r}")
    return Held(
        read_metrics(data.get("metrics")),
        _time(data.get("until")),
        _size(data.get("bytes"), f"its copy of {origin}"),
        read_metrics(data.get("wanted", data.get("metrics"))),
    )


def _size(data: Any, what: str) -> int:
    if isinstance(data, bool) or not isinstance(data, int) or not 0 <= data <= LARGEST:
        raise DataError(f"its report has no size of {what} in bytes")
    return data


def _time(data: Any) -> float | None:
    """Microseconds since 1970, or ISO 8601, as seconds."""
    if data is None:
        return None
    try:
        if isinstance(data, str) and len(data) <= 40:
            found = datetime.fromisoformat(data)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        if isinstance(data, int | float) and not isinstance(data, bool):
            return datetime.fromtimestamp(data / 1e6, UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    raise DataError("its report has no time up to which a copy is complete")
