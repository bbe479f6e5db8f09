"""What a store may use. Every limit has a default that suits a small site."""

from __future__ import annotations

from dataclasses import dataclass

from fogline.common.errors import UsageError

MEBIBYTE = 1 << 20
HOUR_US = 3_600_000_000
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may take: seconds, bytes of memory, rows of its answer.

    A user's SQL that keeps to none of them is ended a second later, by force.
    """

    seconds: float = 10.0
    memory_bytes: int = 256 * MEBIBYTE
    rows: int = 1_000_000


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """What the store of one site may keep and use.

    `age_us` counts from a value's arrival. Values wait in memory until `flush_rows` of them are
    there or the first has waited `flush_us`; at `wait_rows` intake writes them itself. Files are
    merged up to `file_rows`; a merge never spans more than a 24th of the age, and no file has much
    more than an eighth of the disk's share, because eviction takes whole files. So many `questions`
    run at the same time, each with all that `query` allows; others wait for their turn.
    """

    age_us: int = 168 * HOUR_US
    disk_bytes: int = 10_240 * MEBIBYTE
    latest_bytes: int = 256 * MEBIBYTE
    flush_rows: int = 500_000
    flush_us: int = 10 * SECOND_US
    wait_rows: int = 2_000_000
    file_rows: int = 2_000_000
    merge_files: int = 8
    threads: int = 1
    questions: int = 2
    query: QueryLimits = QueryLimits()

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, int) and value <= 0:
                raise UsageError(f"the store's limit {name} must be above 0, not {value}")
        if self.merge_files < 2:
            raise UsageError("the store's limit merge_files must be at least 2")

    @property
    def merge_span_us(self) -> int:
        """How much arrival time one file may cover, so that eviction is late by little."""
        return max(self.age_us // 24, 1)

    @property
    def file_bytes(self) -> int:
        """How large a file gets, so that eviction by size takes little at a time."""
        return max(self.disk_bytes // 8, 1)
