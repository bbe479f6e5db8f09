"""What the measurements of many sites share: waiting for what nodes tell, and sums over runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from fogline.common.errors import FoglineError, SetupError
from fogline.coordinator.client import CoordinatorClient
from fogline.demo.world import World

POLL_SECONDS = 0.05
POLL_SHARE = 4
"""Asking takes at most one in so many parts of the time: who is asked has other work to do."""

_console = Console(stderr=True, highlight=False)


def tell(text: str) -> None:
    _console.print(text, markup=False)


def until(
    condition: Callable[[], Any], seconds: float, what: str, pause: float = POLL_SECONDS
) -> Any:
    """The first true answer; raises SetupError when none comes in time."""
    deadline = time.perf_counter() + seconds
    while True:
        asked = time.perf_counter()
        if answer := condition():
            return answer
        now = time.perf_counter()
        if now > deadline:
            raise SetupError(f"after {seconds:g} s there is still no sign of {what}")
        time.sleep(max(pause, (now - asked) * (POLL_SHARE - 1)))


def when_it_answers(world: World) -> CoordinatorClient:
    """A world without sites does not wait for its coordinator."""

    def client() -> CoordinatorClient | None:
        try:
            return world.client if world.client.health()["ok"] else None
        except FoglineError:
            return None

    found: CoordinatorClient = until(client, 60, "the coordinator")
    return found


def jobs_of(client: CoordinatorClient, pipeline: str) -> dict[str, dict[str, Any]]:
    """The jobs of a pipeline, by name, as their nodes tell them."""
    return {job["name"]: job for job in client.jobs() if job["pipeline"] == pipeline}


def reported(client: CoordinatorClient, names: Iterable[str]) -> set[str]:
    """Which of these jobs any node still reports, wanted or not."""
    there = {job["job"] for node in client.nodes() for job in node["jobs"]}
    return there & set(names)


def problems_in(jobs: Mapping[str, Mapping[str, Any]]) -> str:
    """For a message when something does not come about."""
    found = [f"{name}: {job['state']} {job['problem']}" for name, job in jobs.items()]
    return "; ".join(found[:3])


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────


def spread(values: Iterable[float]) -> dict[str, Any]:
    found = list(values)
    return {
        "runs": len(found),
        "median": round(statistics.median(found), 3),
        "low": round(min(found), 3),
        "high": round(max(found), 3),
    }


def fit(points: Sequence[tuple[float, float]]) -> dict[str, float]:
    """A straight line through the points, and how much of their differences it explains."""
    if len(points) < 2:
        return {}
    xs, ys = zip(*points, strict=True)
    slope, start = statistics.linear_regression(xs, ys)
    found = {"seconds_each": round(slope, 4), "seconds_at_0": round(start, 3)}
    if len(points) > 2 and len(set(ys)) > 1:
        found["r_squared"] = round(statistics.correlation(xs, ys) ** 2, 4)
    return found
