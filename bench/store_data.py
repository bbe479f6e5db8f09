"""The values that every part of the store's benchmark uses, and how times are taken."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from fogline.log import SiteLog

START = 1_767_225_600_000_000
METRICS = 1_000
ENTITIES = 10
RANGE = 100_000
"""Values of the range that is asked for; a run of fewer values asks for a tenth of them."""
PREFIX = "metric_00%"
"""A tenth of the metrics."""
ONE, BUCKET_US = "metric_0001", 1_000_000
FUNCTIONS = ("count", "avg", "max")
NAMES = ("metric", "entity", "time", "value")
TOPIC = "city/x"
READINGS: dict[str, Any] = {"fields": ("temp", "hum"), "entity": "s", "time": "t"}
"""How the readings in the log become values."""
SINGLES = 100_000
_AT_ONCE = 10_000


def columns(values: int) -> pa.Table:
    """Values of 1,000 metrics of ten entities, one after the other, 100 µs apart."""
    place = np.arange(values)
    chance = np.random.default_rng(7)
    metrics = pa.array([f"metric_{i:04d}" for i in range(METRICS)])
    entities = pa.array([f"entity_{i}" for i in range(ENTITIES)])
    metric = pa.array((place % METRICS).astype(np.int32))
    entity = pa.array((place // METRICS % ENTITIES).astype(np.int32))
    return pa.table(
        {
            "metric": pa.DictionaryArray.from_arrays(metric, metrics),
            "entity": pa.DictionaryArray.from_arrays(entity, entities),
            "time": START + place * 100,
            "value": chance.normal(20, 5, values).round(2),
        }
    )


def range_rows(values: int) -> int:
    return min(RANGE, values // 10)


def single_values(count: int = SINGLES) -> pa.Table:
    """As many metrics, each with one value of one entity."""
    names = single_names(count)
    numbers = np.arange(count)
    return pa.table(
        {"metric": names, "entity": names, "time": START + numbers, "value": 1.0 * numbers}
    )


def single_names(count: int = SINGLES, every: int = 1) -> list[str]:
    return [f"single_{i}" for i in range(0, count, every)]


def write_log(logs: Path, messages: int) -> Path:
    """The folder of a log of json messages; two values come of each."""
    site = SiteLog(logs, min_free_bytes=0)
    with site.writer(TOPIC) as writer:
        for first in range(0, messages, _AT_ONCE):
            last = min(first + _AT_ONCE, messages)
            writer.append([(TOPIC, _reading(i)) for i in range(first, last)])
            writer.commit()
    return site.folder(TOPIC)


def _reading(number: int) -> bytes:
    body = {"t": START // 1000 + number, "s": f"s{number % 500}", "temp": number % 97 / 4, "hum": 5}
    return json.dumps(body).encode()


# ── times ────────────────────────────────────────────────────────────────────────────────────────


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def middle(work: Callable[[], object], runs: int = 5) -> float:
    work()
    return median(seconds(work) for _ in range(runs))


def spread(times: Iterable[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(times)
    return {
        "n": len(ordered),
        "p50_ms": round(median(ordered) * 1e3, 2),
        "p95_ms": round(ordered[round(0.95 * (len(ordered) - 1))] * 1e3, 2),
    }
