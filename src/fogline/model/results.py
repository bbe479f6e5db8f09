"""What a query gives: results, and the account of what happened to every record."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Result:
    """One insight record: `record` is the JSON object of the language reference."""

    insight: str
    end_ms: int
    key: str
    value: str
    record: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class StreamCount:
    """What became of the records of one stream."""

    records: int = 0
    bad: int = 0
    late: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a run: counts per stream, results so far, whether it is over."""

    streams: dict[str, StreamCount] = field(default_factory=dict)
    results: int = 0
    batches: int = 0

    @property
    def records(self) -> int:
        return max((s.records for s in self.streams.values()), default=0)
