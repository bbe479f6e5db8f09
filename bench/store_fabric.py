"""Three nodes that know each other: asking one for all, a copy, and answers after a death.

All are on one machine, so that a node that answers for three does so with the processor of one.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from sites_watch import until
from store_data import columns, range_rows, single_names, single_values, spread
from store_process import WAIT_SECONDS, NodeProcess, Question
from store_questions import (
    AGGREGATE_RUNS,
    LATEST_METRICS,
    LATEST_RUNS,
    RANGE_RUNS,
    aggregate,
    latest,
    stretch,
)

from fogline.common.errors import SetupError

ORIGIN, HOLDER, ASKED = SITES = ("north", "south", "west")
DEATHS = 5
_AFTER_DEATH = 50


def measure(values: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as name, ExitStack() as stack:
        nodes = {
            site: stack.enter_context(closing(NodeProcess(site, Path(name)))) for site in SITES
        }
        _introduce(nodes)
        table = columns(values)
        for node in nodes.values():
            node.caller.put(table)
            node.caller.put(single_values(LATEST_METRICS))
        return {
            "values": values,
            "all": _for_all(nodes[ASKED], values),
            "copy": _copy(nodes[ORIGIN], nodes[HOLDER], values),
            "death": _deaths(nodes),
        }


def _introduce(nodes: dict[str, NodeProcess]) -> None:
    addresses = {site: node.address for site, node in nodes.items()}
    for site, node in nodes.items():
        node.change(nodes={other: url for other, url in addresses.items() if other != site})
    for node in nodes.values():
        until(partial(_sees_all, node), WAIT_SECONDS, f"the other nodes at {node.site}")


def _sees_all(node: NodeProcess) -> bool:
    seen = node.caller.json("GET", "/v1/nodes")["nodes"]
    return len(seen) == len(SITES) and all(one["state"] == "answered" for one in seen)


# ── one node for all ─────────────────────────────────────────────────────────────────────────────


def _for_all(node: NodeProcess, values: int) -> dict[str, Any]:
    rows, names = range_rows(values), single_names(LATEST_METRICS)
    asked: dict[str, tuple[Callable[[str], Question], int]] = {
        "latest": (lambda scope: latest(scope, True, names), LATEST_RUNS),
        "range": (lambda scope: stretch(scope, True, rows), RANGE_RUNS),
        "aggregate": (lambda scope: aggregate(scope, True), AGGREGATE_RUNS),
    }
    found = {}
    for name, (question, runs) in asked.items():
        alone = question("node").time(node.caller, runs)
        everywhere = question("all").time(node.caller, runs)
        ratio = everywhere["p50_ms"] / alone["p50_ms"]
        found[name] = {"alone": alone, "all": everywhere, "ratio": round(ratio, 2)}
    return found


# ── a copy ───────────────────────────────────────────────────────────────────────────────────────


def _copy(origin: NodeProcess, holder: NodeProcess, values: int) -> dict[str, Any]:
    """From telling the holder until it holds all that the origin had then, and says so."""
    rows = int(origin.caller.json("GET", "/v1/state")["rows"])
    begun = time.perf_counter()
    holder.caller.json("PUT", f"/v1/copies/{origin.site}", {"metrics": None})
    until(lambda: _is_complete(holder, origin.site, rows), WAIT_SECONDS, "the copy")
    taken = time.perf_counter() - begun
    return {"values": rows, "seconds": round(taken, 3), "per_second": round(rows / taken)}


def _is_complete(holder: NodeProcess, origin: str, rows: int) -> bool:
    copy = holder.caller.json("GET", "/v1/state")["copies"].get(origin, {})
    return copy.get("until") is not None and copy["rows"] >= rows


# ── a death ──────────────────────────────────────────────────────────────────────────────────────


def _deaths(nodes: dict[str, NodeProcess]) -> dict[str, Any]:
    """The origin is killed again and again; a third node, which has no copy, is asked."""
    question = latest("all", False, single_names(LATEST_METRICS))
    gone, missing, times = [], 0, []
    for _ in range(DEATHS):
        until(lambda: _is_ready(nodes), WAIT_SECONDS, "a copy that can answer")
        seconds, without, after = _death(nodes, question)
        gone.append(seconds)
        missing += without
        times += after
        nodes[ORIGIN].bury()
        nodes[ORIGIN].start()
    return {
        "deaths": DEATHS,
        "median_ms": round(median(gone) * 1e3, 1),
        "most_ms": round(max(gone) * 1e3, 1),
        "answers_without": missing,
        "afterwards": spread(times),
    }


def _is_ready(nodes: dict[str, NodeProcess]) -> bool:
    """Whether the node that is asked knows of the copy, and the origin answers."""
    seen = {one["node"]: one for one in nodes[ASKED].caller.json("GET", "/v1/nodes")["nodes"]}
    copy = seen[HOLDER].get("copies", {}).get(ORIGIN, {})
    return seen[ORIGIN]["state"] == "answered" and copy.get("until") is not None


def _death(nodes: dict[str, NodeProcess], question: Question) -> tuple[float, int, list[float]]:
    """Seconds until the origin's values come from the copy, answers without them before, and how
    long answers take from then on."""
    caller = nodes[ASKED].caller
    without, times = 0, []
    nodes[ORIGIN].kill()
    killed = time.perf_counter()
    while True:
        answer = question.ask(caller)
        gone = time.perf_counter() - killed
        state = _state(answer)
        if state == "copy":
            break
        without += state == "away"
        if gone > WAIT_SECONDS:
            raise SetupError(f"{WAIT_SECONDS:g} s after a death there is no answer from the copy")
    for _ in range(_AFTER_DEATH):
        begun = time.perf_counter()
        answer = question.ask(caller)
        times.append(time.perf_counter() - begun)
        without += _state(answer) == "away"
    return gone, without, times


def _state(answer: bytes) -> str:
    """How the origin took part in an answer; one that is said to be there is there as a whole."""
    told = json.loads(answer)
    state = next(one["state"] for one in told["nodes"] if one["node"] == ORIGIN)
    count = sum(value["node"] == ORIGIN for value in told["values"])
    if count != (0 if state == "away" else LATEST_METRICS):
        raise SetupError(f"{ORIGIN} is {state}, with {count:,} values")
    return str(state)
