"""What a query gives: results, and the account of what happened to every record."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Result:
    """One insight record: `record` is the JSON object of the language reference."""

    insight: str
    end_ms: int
    key: str
    value: str
    record: str


def parse_results(lines: bytes) -> list[Result]:
    """Results from their records, one a line."""
    return [_parse(line) for line in lines.decode().split("\n") if line]


def _parse(line: str) -> Result:
    record = json.loads(line)
    value = record["value"]
    end = datetime.fromisoformat(record["window"]["end"])
    return Result(
        record["insight"],
        round(end.timestamp() * 1000),
        json.dumps(record["keys"]),
        value if isinstance(value, str) else json.dumps(value),
        line,
    )


@dataclass(frozen=True, slots=True)
class ResultRange:
    """Which results belong to a stretch of time: windows that end in it, records that lie in it."""

    first_ms: int
    last_ms: int
    at_records: frozenset[str]
    """Insights that are evaluated at records, so that their end is the time of one."""


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
    insights: dict[str, int] = field(default_factory=dict)
    """Results by insight."""

    @property
    def records(self) -> int:
        return max((s.records for s in self.streams.values()), default=0)
