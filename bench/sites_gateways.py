"""Operators on many gateways: installed, updated, uninstalled, as the gateways tell it.

The operator is an operation of a deployment plan, placed on so many of the gateways. All of these
are there from the beginning, and every round goes through all numbers: a machine that is slow for a
while is slow for each of them. They are in two processes, and those of one share its connections.
One coordinator and one broker, which stands for the site's and is set up like one: no Spark takes
part. All of it twice: with gateways on this very machine, where a message takes no time and what is
measured is what everyone computes, and with a network between them and the coordinator.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from far_link import far_link
from sites_chain import arrivals, connected
from sites_watch import fit, jobs_of, problems_in, spread, tell, until, when_it_answers

from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.coordinator.client import CoordinatorClient
from fogline.demo.world import Process, World

INSTALL, UPDATE, UNINSTALL = "install", "update", "uninstall"
PIPELINE = "readings"
TOPIC = "site/readings"
FIRST_RATE, SECOND_RATE = 1, 2
LIMIT_SECONDS = 300.0
WAIT_SECONDS = 10.0
"""How long the coordinator is asked to wait until all is as wanted."""
PROCESSES = 2
ROUNDS = 5
"""Of each run: one takes a fifth of a second, and a few of them say little on a busy machine."""
HERE, AWAY = "here", "away"
ROUND_TRIP_MS = 18.6
"""As far as SpecK's clusters are from each other."""


@dataclass(frozen=True)
class Settings:
    gateways: tuple[int, ...] = (50, 100, 150, 200)
    runs: int = 3


def measure(settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {"runs": ROUNDS * settings.runs, "round_trip_ms": ROUND_TRIP_MS}
    rows: list[dict[str, Any]] = []
    for where, round_trip_ms in ((HERE, 0.0), (AWAY, ROUND_TRIP_MS)):
        tell(f"gateways: starting {max(settings.gateways)}, {where}")
        with started(max(settings.gateways), round_trip_ms) as trial:
            own = _rounds(trial, sorted(settings.gateways), ROUNDS * settings.runs)
        found[where] = summary(own)
        rows += [{"where": where, **row} for row in own]
    return found | {"rows": rows}


def _rounds(trial: _Trial, numbers: list[int], rounds: int) -> list[dict[str, Any]]:
    """Every other one backwards; the first is there to warm up."""
    found: list[dict[str, Any]] = []
    for run in range(rounds + 1):
        for number in numbers if run % 2 else reversed(numbers):
            rows = trial.all_of_it(number)
            found += [{"run": run, **row} for row in rows if run]
    return found


@contextmanager
def started(number: int, round_trip_ms: float) -> Iterator[_Trial]:
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="fogline-bench-") as name:
        folder = Path(name)
        options = MosquittoOptions(journal=folder / "journal")
        with Mosquitto(folder / "site", options) as broker, World(folder / "world", []) as world:
            client = when_it_answers(world)
            control = world.control_port
            if round_trip_ms:
                control = stack.enter_context(far_link(control, round_trip_ms))
            processes = _gateways(folder, number, broker.url, control)
            try:
                for process in processes:
                    process.start()
                trial = _Trial(client, number, broker.url)
                trial.wait_online(processes)
                yield trial
            finally:
                for process in processes:
                    process.ask_to_end()
                for process in processes:
                    process.wait(60)


def _gateways(folder: Path, number: int, broker: str, control_port: int) -> list[Process]:
    """Gateways are machines of their own; here they share two processes."""
    shares = [(number + index) // PROCESSES for index in range(PROCESSES)]
    made = []
    for index, share in enumerate(share for share in shares if share):
        config = {
            "gateway": f"gate-{index}",
            "folder": str(folder / f"gateways-{index}"),
            "gateways": share,
            "broker": {"url": broker},
            "control": {"url": f"mqtt://127.0.0.1:{control_port}"},
            "min_free_megabytes": 1,
        }
        path = folder / f"gateways-{index}.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        made.append(Process(f"gateways-{index}", ["gateway", "--config", str(path)], folder))
    return made


class _Trial:
    """Rounds of install, update, uninstall, on some of the gateways or on all of them."""

    def __init__(self, client: CoordinatorClient, most: int, broker: str) -> None:
        self._client, self._most, self._broker = client, most, broker
        self._all: list[str] = []
        self._names: list[str] = []
        """Those of this round."""
        self._round = 0

    @property
    def _number(self) -> int:
        return len(self._names)

    def wait_online(self, processes: Iterable[Process]) -> None:
        def online() -> bool:
            for process in processes:
                if not process.running:
                    raise RuntimeError(f"the gateways have ended: {process.log_tail()}")
            names = [n["name"] for n in self._client.nodes() if n["state"] == "online"]
            # Any number of the first ones are in both processes alike.
            self._all = sorted(names, key=lambda name: name.rpartition("-")[::-1])
            return len(names) >= self._most

        until(online, LIMIT_SECONDS, f"{self._most} gateways")

    def all_of_it(self, number: int) -> list[dict[str, Any]]:
        self._round += 1
        self._names = self._all[:number]
        rows = [self._put(INSTALL, FIRST_RATE)]
        self._check()
        return [*rows, self._put(UPDATE, SECOND_RATE), self._remove()]

    def _text(self, rate: int) -> str:
        arguments = {
            "by": "device",
            "input.format": "json",
            "input.time": "t",
            "publish.topic": TOPIC,
            "publish.rate": str(rate),
        }
        task = {"Type": "deploy", "binary": "average.dp", "Arguments": arguments}
        name = f"read-{self._round}"
        operation = {"OP-ID": name, "source": "devices/{gateway}", "task": task}
        placement = [{"OP ID": name, "P ID": self._names}]
        return json.dumps({"Computation": [{"Operation": operation}, {"Placement": placement}]})

    def _put(self, what: str, rate: int) -> dict[str, Any]:
        text = self._text(rate)
        begun = time.perf_counter()
        self._client.put_pipeline(PIPELINE, text, "plan")
        answered = time.perf_counter() - begun
        try:
            until(self._all_run, LIMIT_SECONDS, what, 0.0)
        except Exception:
            tell(f"gateways: {problems_in(jobs_of(self._client, PIPELINE))}")
            raise
        return self._row(what, answered, time.perf_counter() - begun)

    def _all_run(self) -> bool:
        told = self._client.progress(settle=WAIT_SECONDS)
        return told["states"] == {"running": self._number} and not told["extra"]

    def _remove(self) -> dict[str, Any]:
        begun = time.perf_counter()
        self._client.delete_pipeline(PIPELINE)
        answered = time.perf_counter() - begun
        until(self._none_runs, LIMIT_SECONDS, UNINSTALL, 0.0)
        return self._row(UNINSTALL, answered, time.perf_counter() - begun)

    def _none_runs(self) -> bool:
        return not self._client.progress(settle=WAIT_SECONDS)["extra"]

    def _check(self) -> None:
        """Readings of a device go through the last gateway; the second lets the first one go."""
        port = urlsplit(self._broker).port or 0
        with arrivals(port, TOPIC) as arrived, connected(port) as client:
            for milliseconds in (1_735_689_600_000, 1_735_689_700_000):
                reading = json.dumps({"device": "d", "value": self._round, "t": milliseconds})
                client.publish(f"devices/{self._names[-1]}", reading, qos=1).wait_for_publish(10)
            assert self._round in json.loads(arrived.get(timeout=30)).values()

    def _row(self, what: str, answered: float, seconds: float) -> dict[str, Any]:
        tell(f"{self._number} gateways: {what} in {seconds:.2f} s")
        times = {"answered": round(answered, 3), "seconds": round(seconds, 3)}
        return {"what": what, "gateways": self._number, **times}


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    tables = {what: _table(rows, what) for what in (INSTALL, UPDATE, UNINSTALL)}
    lines = {
        what: fit([(row["gateways"], row["median"]) for row in table])
        for what, table in tables.items()
    }
    most_to_fewest = {
        what: round(table[-1]["median"] / table[0]["median"], 2) for what, table in tables.items()
    }
    return {"fit": lines, "most_to_fewest": most_to_fewest} | tables


def _table(rows: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    ours = [row for row in rows if row["what"] == what]
    numbers = sorted({row["gateways"] for row in ours})
    groups = {number: [row for row in ours if row["gateways"] == number] for number in numbers}
    return [
        {
            "gateways": number,
            **spread(row["seconds"] for row in found),
            "answered": spread(row["answered"] for row in found)["median"],
        }
        for number, found in groups.items()
    ]
