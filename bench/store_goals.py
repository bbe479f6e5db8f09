"""The goals of the store, beside what a run measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MEGABYTE = 1_000_000
_INTAKE = 200_000
_LATEST_MS = 10
_RATIO = 1.5
_MEGABYTES = 60


def rows(found: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """What is wanted, what was measured, whether it is met; only of the parts that were run."""
    if "library" in found:
        yield from _library(found["library"])
    if "node" in found:
        slowest = max(times["p50_ms"] for times in found["node"]["latest"].values())
        goal = f"latest value of 1,000 metrics at a node under {_LATEST_MS} ms"
        yield goal, f"{slowest:.1f} ms (median, the slowest way to ask)", slowest < _LATEST_MS


def _library(found: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    rate = found["engines"]["Fogline"]["intake_per_second"]
    goal = f"intake into latest and history together: {_INTAKE:,} values/s"
    yield goal, f"{rate:,.0f} values/s", rate >= _INTAKE
    ratio, count = found["range"]["ratio"], found["range"]["rows"]
    goal = f"range of {count:,} values: at most {_RATIO} times DuckDB by hand"
    yield goal, f"{ratio:.2f} times", ratio <= _RATIO
    size = found["memory_of_100000_metrics"] / MEGABYTE
    goal = f"100,000 single-value metrics in {_MEGABYTES} MB of memory"
    yield goal, f"{size:.0f} MB", size <= _MEGABYTES
