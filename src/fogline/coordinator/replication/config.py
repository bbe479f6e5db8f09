"""The part `replicas:` of the coordinator's configuration: how copies of values are decided."""

from __future__ import annotations

from dataclasses import dataclass

from fogline.adapt.replication.query import LONGEST
from fogline.adapt.replication.stability import RoundLimits
from fogline.common.config_file import within

_DAY = 86_400.0
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """What each means is in docs/copies.md."""

    enabled: bool = True
    """Whether copies are decided here; what people ask for is sent to the nodes in any case."""
    seconds: float = within(0.1, _DAY, 60.0)
    nodes: int = within(0, 10_000, 3)
    outgoing: int = within(0, 10_000, 3)
    capacity_megabytes: float = within(0, 1e12, 256.0)
    recent_hours: float = within(0, 1e6, 24.0)
    beta: float = within(0, LONGEST, 1.0)
    least_quality: float = within(0, 1, 0.8)
    """Q: the least mean sample fraction in the second step of the placement for queries."""
    sampling: bool = False
    """Whether the fractions that the second step finds are put in force."""
    solve_seconds: float = within(0, 3600, 10.0)
    """For all queries of one round together."""

    @property
    def capacity(self) -> int:
        return round(self.capacity_megabytes * _MEBIBYTE)

    @property
    def limits(self) -> RoundLimits:
        recent = self.recent_hours * 3600
        return RoundLimits(self.nodes, self.outgoing, recent, otherwise=self.capacity)
