"""A node as others meet it: its process, fed from a log and over REST, asked over loopback HTTP."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sites_watch import until
from store_data import (
    READINGS,
    SINGLES,
    TOPIC,
    columns,
    range_rows,
    seconds,
    single_values,
    write_log,
)
from store_process import WAIT_SECONDS, NodeProcess
from store_questions import (
    AGGREGATE_RUNS,
    LATEST_METRICS,
    LATEST_RUNS,
    RANGE_RUNS,
    aggregate,
    latest,
    stretch,
)

from fogline.fabric.contract import StoreFeed

FORMATS = {"JSON": False, "Arrow": True}


def measure(values: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as name:
        folder = Path(name)
        write_log(folder / "north" / "log", values // 2)
        with closing(NodeProcess("north", folder)) as node:
            found = _from_log(node, values // 2 * 2)
            table = columns(values)
            found["put_per_second"] = round(len(table) / seconds(lambda: node.caller.put(table)))
            node.caller.put(single_values(SINGLES))
            return found | _questions(node, values)


def _from_log(node: NodeProcess, values: int) -> dict[str, Any]:
    """Until questions see all of the log; then all of it goes to disk."""
    idle = most = node.memory()
    begun = time.perf_counter()
    node.change(feeds=(StoreFeed(TOPIC, format="json", **READINGS),))

    def all_there() -> bool:
        nonlocal most
        most = max(most, node.memory())
        return int(node.caller.json("GET", "/v1/state")["rows"]) >= values

    until(all_there, WAIT_SECONDS, "the log's values in the store")
    taken = time.perf_counter() - begun
    node.caller.put(single_values(1))  # which writes down what waits
    return {
        "log_values": values,
        "log_per_second": round(values / taken),
        "memory_idle": idle,
        "memory_most": max(most, node.memory()),
        "memory_after": node.memory(),
    }


def _questions(node: NodeProcess, values: int) -> dict[str, Any]:
    rows = range_rows(values)
    found: dict[str, Any] = {"latest": {}, "range": {}, "aggregate": {}}
    for format_, arrow in FORMATS.items():
        for scope in ("node", "all"):
            question = latest(scope, arrow)
            times = question.time(node.caller, LATEST_RUNS, LATEST_METRICS)
            found["latest"][f"{format_}, scope={scope}"] = times
        found["range"][format_] = stretch("node", arrow, rows).time(node.caller, RANGE_RUNS, rows)
        found["aggregate"][format_] = aggregate("node", arrow).time(node.caller, AGGREGATE_RUNS)
    return found
