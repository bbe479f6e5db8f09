"""What several test files of the store share."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from fogline.log import LogRecord, LogWriter
from fogline.storage.limits import StoreLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, from_values

TOPIC = "city/+"
START = 1_767_225_600_000_000
SMALL = StoreLimits(flush_rows=50, file_rows=1_000, merge_files=3)


class Clock:
    """Time that a test moves."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def reading(number: int) -> LogRecord:
    """A message whose number is its value and its time."""
    body = {"time": START // 1000 + number, "sensor": f"s{number % 7}", "x": number}
    return f"city/{number % 3}", json.dumps(body).encode()


def write_log(folder: Path, count: int, start: int = 0, commit: int = 20) -> None:
    with LogWriter(folder, TOPIC, segment_bytes=20_000, min_free_bytes=0) as log:
        for first in range(start, start + count, commit):
            last = min(first + commit, start + count)
            log.append([reading(number) for number in range(first, last)])
            log.commit()


def ingest(store: SiteStore, values: Iterable[Value]) -> None:
    store.ingest(from_values(values))


def numbers(store: SiteStore) -> list[int]:
    """Every number in the history, page by page, in the order of time."""
    return [int(value.value) for value in everything(store)]


def everything(store: SiteStore, limit: int = 100_000, **question: object) -> list[Value]:
    found: list[Value] = []
    cursor = None
    while True:
        page = store.range(limit=limit, cursor=cursor, **question)  # type: ignore[arg-type]
        found += page.values()
        cursor = page.cursor
        if cursor is None:
            return found


def same(left: object, right: object) -> bool:
    """Equal, where NaN is equal to itself."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return left == right


def same_values(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return len(left) == len(right) and all(
        (a.metric, a.entity, a.time, a.labels) == (b.metric, b.entity, b.time, b.labels)
        and same(a.value, b.value)
        for a, b in zip(left, right, strict=True)
    )
