"""How a node of the fabric behaves; the defaults are what docs/design/fabric.md says."""

from __future__ import annotations

from dataclasses import dataclass

from fogline.broker import Tls
from fogline.common.errors import UsageError


@dataclass(frozen=True, slots=True)
class FabricOptions:
    """Seconds between what is done again and again, and limits of what is asked of others."""

    exchange_seconds: float = 2.0
    """Between two looks at the other nodes; one that is unreachable is not tried more often."""
    copy_seconds: float = 1.0
    """Between two looks for changes at the origin of a copy, once all is there."""
    settle_seconds: float = 5.0
    """How long a new store waits at least to hear of copies of its lost values."""
    connect_seconds: float = 1.0
    answer_seconds: float = 15.0
    page_rows: int = 100_000
    threads: int = 32
    """For questions to other nodes at the same time."""
    control: str = ""
    """The control broker where nodes announce themselves, with login; empty without one."""
    tls: Tls | None = None

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, int | float) and value <= 0:
                raise UsageError(f"the fabric's option {name} must be above 0, not {value}")
