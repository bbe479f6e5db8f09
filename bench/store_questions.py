"""The questions that a node is asked: the same to one node and to all."""

from __future__ import annotations

from store_data import BUCKET_US, FUNCTIONS, ONE, PREFIX, START, single_names
from store_process import Question

LATEST_RUNS, RANGE_RUNS, AGGREGATE_RUNS = 200, 15, 50
LATEST_METRICS = 1_000


def latest(scope: str, arrow: bool, names: list[str] | None = None) -> Question:
    """Metrics with one value each; every hundredth of 100,000 if none are named."""
    body = {"metrics": names or single_names(every=100)}
    return Question("/v1/latest", [("scope", scope)], body, arrow)


def stretch(scope: str, arrow: bool, rows: int) -> Question:
    asked: list[tuple[str, object]] = [("scope", scope), ("metric", PREFIX), ("from", START)]
    return Question("/v1/range", [*asked, ("limit", rows)], arrow=arrow)


def aggregate(scope: str, arrow: bool) -> Question:
    asked: list[tuple[str, object]] = [("scope", scope), ("metric", ONE)]
    functions = [("function", name) for name in FUNCTIONS]
    return Question(
        "/v1/aggregate", [*asked, ("bucket", f"{BUCKET_US}us"), *functions], arrow=arrow
    )
