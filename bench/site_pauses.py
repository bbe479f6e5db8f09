"""How long results wait between two batches in real time, and what of it is Spark's planning.

A batch ends when its commit is in the checkpoint. The latency of every reading is set beside these
times, so that what happens between batches is told from what happens elsewhere. Processor time of
the thread that plans, and what others took of the machine meanwhile, tell work from waiting for a
processor.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from site_latency import QUERIES, percentiles, received_latencies, sensors, subscriber
from site_world import AgentProcess, site

LIVE_SECONDS = 20
SECONDS = 300.0
BEFORE, AFTER = 2.0, 4.0
"""Readings published so many seconds before a commit and after it belong to the boundary."""
_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_PLANNER = "stream executio"
"""The name of the thread that plans, as Linux cuts it."""


def pauses(rate: int, seconds: float = SECONDS) -> dict[str, Any]:
    with (
        site({"q": QUERIES["real time"]}, f"live_seconds: {LIVE_SECONDS}\n") as agent,
        watch(agent) as watched,
        subscriber(agent.mqtt_port, "insights/q/v") as received,
        sensors(agent.mqtt_port, rate),
    ):
        time.sleep(seconds)
        results = sorted(received_latencies(received.read()))
    boundaries = [_boundary(at, results, watched) for at in sorted(watched.commits.values())]
    seen = [boundary for boundary in boundaries if boundary is not None]
    half = seen[len(seen) // 2 :]
    return {
        "rate": rate,
        "live_seconds": LIVE_SECONDS,
        "boundaries": seen,
        "later_half": {name: median(b[name] for b in half) for name in half[0]} if half else {},
        "elsewhere": percentiles(_elsewhere(results, watched)),
    }


@dataclass
class Watched:
    """Commits by number, with when they were there; and counters of processor time by time."""

    commits: dict[str, float] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    counters: list[tuple[float, float, float]] = field(default_factory=list)
    """Milliseconds of the thread that plans, of the site, of the machine."""

    def between(self, begin: float, end: float) -> tuple[float, float, float]:
        last = len(self.times) - 1
        first, then = (self.counters[min(bisect_left(self.times, t), last)] for t in (begin, end))
        return then[0] - first[0], then[1] - first[1], then[2] - first[2]


@contextmanager
def watch(agent: AgentProcess) -> Iterator[Watched]:
    watched, ended = Watched(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(_watch, agent, watched, ended)
        try:
            yield watched
        finally:
            ended.set()
        watching.result()


def _watch(agent: AgentProcess, watched: Watched, ended: threading.Event) -> None:
    [java] = agent.victims()["spark"]
    assert agent.process
    top = psutil.Process(agent.process.pid)
    while not ended.wait(0.2):
        for file in (agent.folder / "test").glob("jobs/q/checkpoints/*/live/commits/[0-9]*"):
            watched.commits.setdefault(file.name, file.stat().st_mtime)
        watched.times.append(time.time())
        own = sum(map(_process, [top, *top.children(True)]))
        watched.counters.append((_planner(java), own, _machine()))


def _planner(java: int) -> float:
    spent = 0.0
    for task in Path(f"/proc/{java}/task").iterdir():
        with suppress(OSError):  # threads come and go
            name, _, numbers = (task / "stat").read_text().partition("(")[2].rpartition(")")
            if name.startswith(_PLANNER):
                spent += sum(map(int, numbers.split()[11:13])) * _TICK_MS
    return spent


def _process(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system) * 1000
    return 0.0


def _machine() -> float:
    times = psutil.cpu_times()
    return (sum(times[:8]) - times.idle - times.iowait) * 1000


def _boundary(
    commit: float, results: list[tuple[float, float]], watched: Watched
) -> dict[str, float] | None:
    """What came of the readings around a commit; nothing when there were none."""
    first, last = bisect_left(results, (commit - BEFORE,)), bisect_left(results, (commit + AFTER,))
    if first == last:
        return None
    begin, end = commit - 1, commit + 2
    planner, own, machine = watched.between(begin, end)
    others = (machine - own) / (1000 * (end - begin) * (os.cpu_count() or 1))
    return {
        "after_s": round(commit - results[0][0], 1),
        "worst_ms": round(max(ms for _, ms in results[first:last])),
        "planner_ms": round(planner),
        "others_percent": round(100 * max(0.0, others)),
    }


def _elsewhere(results: list[tuple[float, float]], watched: Watched) -> list[float]:
    """Of readings in no boundary, after the first."""
    commits = sorted(watched.commits.values())
    found = []
    for published, ms in results:
        number = bisect_left(commits, published)
        before = commits[number - 1] if number else published
        after = commits[number] if number < len(commits) else float("inf")
        if published - before > AFTER and after - published > BEFORE:
            found.append(ms)
    return found
