"""The part `replicas:` of the coordinator's configuration: how copies of values are decided."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from fogline.adapt.query import LONGEST
from fogline.adapt.stability import Limits
from fogline.errors import UsageError

_DAY = 86_400.0
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """What each means is in docs/copies.md."""

    enabled: bool = True
    """Whether copies are decided here; what people ask for is told to the nodes in any case."""
    seconds: float = 60.0
    nodes: int = 3
    outgoing: int = 3
    capacity_megabytes: float = 256.0
    recent_hours: float = 24.0
    beta: float = 1.0
    solve_seconds: float = 10.0
    """For all queries of one round together."""

    @property
    def capacity(self) -> int:
        return round(self.capacity_megabytes * _MEBIBYTE)

    @property
    def limits(self) -> Limits:
        recent = self.recent_hours * 3600
        return Limits(self.nodes, self.outgoing, recent, otherwise=self.capacity)


_RANGES: dict[str, tuple[float, float]] = {
    "seconds": (0.1, _DAY),
    "nodes": (0, 10_000),
    "outgoing": (0, 10_000),
    "capacity_megabytes": (0, 1e12),
    "recent_hours": (0, 1e6),
    "beta": (0, LONGEST),
    "solve_seconds": (0, 3600),
}


def parse_replicas(data: Any, name: str) -> ReplicaConfig:
    """Raises UsageError for anything that is not known or out of its range."""
    types = {field.name: str(field.type) for field in fields(ReplicaConfig)}
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{name}: expected names and values", "for example {seconds: 60}")
    unknown = [key for key in data if key not in types]
    if unknown:
        raise UsageError(f"{name}: unknown {', '.join(unknown)}", f"known: {', '.join(types)}")
    return ReplicaConfig(
        **{key: _value(value, key, types[key], f"{name}: {key}") for key, value in data.items()}
    )


def _value(value: Any, key: str, kind: str, name: str) -> Any:
    if kind == "bool":
        if isinstance(value, bool):
            return value
        raise UsageError(f"{name} is neither true nor false")
    least, most = _RANGES[key]
    right = isinstance(value, int) or (kind == "float" and isinstance(value, float))
    if isinstance(value, bool) or not right or not _within(value, least, most):
        what = "a number" if kind == "float" else "a whole number"
        raise UsageError(f"{name} is not {what} from {least:g} to {most:g}")
    return float(value) if kind == "float" else value


def _within(value: float, least: float, most: float) -> bool:
    return not (isinstance(value, float) and math.isnan(value)) and least <= value <= most
