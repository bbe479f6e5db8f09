"""SpecK's road-traffic application on this machine: three edge sites, a cloud site, 17 jobs.

The sites are started, a variant is deployed as `fogline deploy` does it, detectors send for some
time, and after that everything sent is waited for. What it measured is a `Measured`.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import click

from fogline.common.errors import SetupError
from fogline.common.process.interrupts import ctrl_c
from fogline.coordinator.client import CoordinatorClient
from fogline.demo.traffic_devices import ERRONEOUS, GOOD, MALFORMED, Devices
from fogline.demo.traffic_result import CLOUD, LOCAL, Measured, count_processed
from fogline.demo.traffic_table import Progress, make_progress
from fogline.demo.world import SiteSpec, World
from fogline.deploy.manifest.composition import read_composition

PIPELINE = "traffic"
EDGES = ("edge-1", "edge-2", "edge-3")
JOBS = 17
_POLL_SECONDS = 0.25
_WARM_RATE, _WARM_SECONDS, _WARM_SEED, _WARM_LIMIT_SECONDS = 90, 2.0, 1000, 180.0
_DRAIN_SECONDS = 60.0
_MORE = {"retention": {"megabytes": 64}, "metrics_seconds": 30, "trigger_ms": 2000}
"""One machine stands for four sites: a batch every two seconds leaves time for the others."""

Jobs = dict[str, dict[str, Any]]


def run_variant(
    variant: str, seconds: float | None, rate: int, as_json: bool
) -> tuple[Measured, bool]:
    """One variant from start to end, and whether Ctrl-C ended it early."""
    files = resources.as_file(resources.files("fogline.demo") / "traffic_files")
    with tempfile.TemporaryDirectory(prefix="fogline-traffic-") as folder, files as found:
        sites = [SiteSpec(name, more=_MORE) for name in (*EDGES, CLOUD)]
        with World(Path(folder), sites, _print_progress) as world:
            deploy(world.client, found / f"{variant}.yaml")
            world.wait_running(PIPELINE)
            with make_progress(as_json) as progress, ctrl_c() as asked:
                run = _Run(world, variant, seconds, rate, progress)
                return run.measure(asked), asked.is_set()


def deploy(client: CoordinatorClient, file: Path) -> None:
    """The composition, and the code and queries that it names and that lie beside it."""
    text = file.read_text(encoding="utf-8")
    composition = read_composition(text)
    for name in (*composition.code_files, *composition.query_files):
        client.put_package(name, file.parent / name)
    client.put_pipeline(PIPELINE, text, "yaml")


class _Run:
    """One variant's jobs, fed and counted."""

    def __init__(
        self, world: World, variant: str, seconds: float | None, rate: int, progress: Progress
    ) -> None:
        self._world = world
        self._variant = variant
        self._seconds = seconds
        self._rate = rate
        self._progress = progress
        self._brokers = {edge: world.broker(edge) for edge in EDGES}
        self._jobs: Jobs = {}
        self._before: Jobs = {}

    def measure(self, asked: threading.Event) -> Measured:
        """Raises SetupError when the jobs do not get going."""
        self._warm_up(asked)
        devices = Devices(self._brokers, self._rate, self._seconds)
        began = time.monotonic()
        self._send(devices, "sending", asked)
        took = time.monotonic() - began
        at_end = count_processed(self._count_jobs())
        if any(devices.counts().values()):
            self._drain(devices, "coming through", max(_DRAIN_SECONDS, took))
        seconds = self._seconds if self._seconds and not asked.is_set() else took
        return self._make_result(devices.counts(), seconds, at_end)

    def _warm_up(self, asked: threading.Event) -> None:
        """A first batch takes Spark many times as long as any later one, and would be all that a
        short run measures. What is sent for it is not counted."""
        devices = Devices(self._brokers, _WARM_RATE, _WARM_SECONDS, seed=_WARM_SEED)
        self._send(devices, "warming up", asked)
        warm = self._drain(devices, "warming up", _WARM_LIMIT_SECONDS, asked.is_set)
        if not warm and not asked.is_set():
            text = f"after {_WARM_LIMIT_SECONDS:g} s the jobs have not processed their first batch"
            raise SetupError(text, "is this machine busy with something else?")
        self._before = dict(self._count_jobs())

    def _send(self, devices: Devices, what: str, asked: threading.Event) -> None:
        if asked.is_set():
            return
        devices.start()
        self._watch(devices, what, lambda: devices.done or asked.is_set())
        devices.stop()

    def _drain(
        self,
        devices: Devices,
        what: str,
        seconds: float,
        given_up: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Whether everything sent has come through, in time."""
        limit = time.monotonic() + seconds

        def complete() -> bool:
            return is_complete(self._count_jobs(), devices.counts())

        self._watch(devices, what, lambda: complete() or given_up() or time.monotonic() > limit)
        return complete()

    def _watch(self, devices: Devices, what: str, until: Callable[[], bool]) -> None:
        while not until():
            sent = sum(devices.counts().values())
            self._progress.show(f"{self._variant}, {what}", sent, self._count_jobs())
            time.sleep(_POLL_SECONDS)

    def _count_jobs(self) -> Jobs:
        """What every job has taken in and given out since it is warm. The sites are asked
        themselves: the coordinator hears from them every two seconds only."""
        for site in self._world.sites:
            for job in self._world.status(site).get("engine", {}).get("jobs", ()):
                self._jobs[job["name"]] = job_counts(site, job, self._before.get(job["name"]))
        return dict(sorted(self._jobs.items()))

    def _make_result(
        self, counts: Mapping[str, int], seconds: float, at_end: Mapping[str, int]
    ) -> Measured:
        jobs = self._count_jobs()
        return Measured(
            variant=self._variant,
            seconds=seconds,
            rate=self._rate,
            sent=sum(counts.values()),
            malformed=counts[MALFORMED],
            erroneous=counts[ERRONEOUS],
            complete=is_complete(jobs, counts),
            jobs=jobs,
            processed=at_end,
        )


def job_counts(
    site: str, status: Mapping[str, Any], before: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The counts of a job as its site reports them, without those before."""
    totals = {
        "in": status["records_in"],
        "out": status["records_out"],
        "bad": status["bad"],
        "late": status["late"],
    }
    earlier = before or dict.fromkeys(totals, 0)
    return {"site": site, **{key: count - earlier[key] for key, count in totals.items()}}


def is_complete(jobs: Mapping[str, Mapping[str, Any]], counts: Mapping[str, int]) -> bool:
    """Whether every good reading has come through to every job that is to get it."""
    if len(jobs) < JOBS:
        return False
    good, sent = counts[GOOD], sum(counts.values())
    cleaned = [job for name, job in jobs.items() if name.startswith("clean-")]
    forwarded = [job for name, job in jobs.items() if name.startswith("forward-")]
    return (
        sum(job["in"] + job["bad"] for job in cleaned) == sent
        and [
            sum(job["out"] for job in forwarded),
            sum(jobs[name]["in"] for name in LOCAL),
            jobs["local-cloud"]["in"],
            jobs["global"]["in"],
        ]
        == [good] * 4
    )


def _print_progress(what: str) -> None:
    click.echo(f"waiting for {what}", err=True)
