"""A long pipeline in the coordinator's store: its size on disk, the time of a diff over REST.

The sites are made up: they take every job at once and report it as running. So the time until all
jobs run is that of the coordinator and the control broker alone.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sites_chain import CODE, FILE, Chain
from sites_watch import jobs_of, reported, spread, tell, until, when_it_answers

from fogline.common.process.free_ports import free_port
from fogline.control import ControlledNode
from fogline.coordinator.client import CoordinatorClient
from fogline.demo.world import World
from fogline.model.jobs import Assignment, name_assignments
from fogline.model.nodes import SITE, Node, Observed

NAME = "long"
LIMIT_SECONDS = 900.0


@dataclass(frozen=True)
class Settings:
    jobs: int = 1000
    sites: int = 4
    runs: int = 5
    changed: int = 100


class ObedientSite:
    """A node that does nothing but say that it does."""

    def __init__(self, name: str, control: str) -> None:
        self._jobs: dict[str, Observed] = {}
        self._guard = threading.Lock()
        self._told = Node(name, SITE, broker=f"mqtt://127.0.0.1:{free_port()}")
        operations = {"install": self._install, "remove": self._remove}
        self.node = ControlledNode(control, lambda: self._told, operations, self._status)

    def _install(self, body: dict[str, Any]) -> dict[str, Any]:
        named = name_assignments(body["assignments"], body["jobs"])
        given = [Assignment.from_json(item) for item in named]
        with self._guard:
            self._jobs |= {a.job: Observed(a.job, a.version, "running") for a in given}
        self.node.publish_own_status()
        return {}

    def _remove(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._guard:
            for job in body["jobs"]:
                self._jobs.pop(job, None)
        self.node.publish_own_status()
        return {}

    def _status(self) -> dict[str, Any]:
        with self._guard:
            return {"jobs": [job.as_json() for job in self._jobs.values()], "links": {}}


def measure(settings: Settings) -> dict[str, Any]:
    sites = tuple(f"site-{number + 1}" for number in range(settings.sites))
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as name:
        folder = Path(name)
        with World(folder / "world", []) as world, contextlib.ExitStack() as stack:
            client = when_it_answers(world)
            for site in sites:
                stack.enter_context(
                    ObedientSite(site, f"mqtt://127.0.0.1:{world.control_port}").node
                )
            until(lambda: len(_online(client)) == len(sites), 60, "the sites")
            (folder / FILE).write_text(CODE, encoding="utf-8")
            client.put_package(FILE, folder / FILE)
            database = world.folder / "coordinator" / "coordinator.db"
            return _measured(client, Chain(NAME, sites, settings.jobs), database, settings)


def _online(client: CoordinatorClient) -> list[str]:
    return [node["name"] for node in client.nodes() if node["state"] == "online"]


def _measured(
    client: CoordinatorClient, chain: Chain, database: Path, settings: Settings
) -> dict[str, Any]:
    empty, text = _bytes(database), chain.text()
    put = _timed(lambda: client.put_pipeline(NAME, text, "yaml"))
    stored = _bytes(database)
    tell(f"store: {chain.length} jobs put in {put:.2f} s, {stored / 1000:.0f} KB on disk")
    begun = time.perf_counter() - put
    until(lambda: _all_run(client, chain.length), LIMIT_SECONDS, "the jobs")
    deployed = time.perf_counter() - begun
    tell(f"store: all deployed at sites without engines in {deployed:.2f} s")
    changed = chain.with_parameters(min(settings.changed, chain.length), 1).text()
    diffs = {"same": text, "changed": changed}
    seconds = {name: spread(_diffs(client, given, settings)) for name, given in diffs.items()}
    tell(f"store: diff in {seconds['changed']['median']:.3f} s")
    begun = time.perf_counter()
    client.delete_pipeline(NAME)
    until(lambda: not reported(client, chain.names), LIMIT_SECONDS, "the jobs' end")
    return {
        "jobs": chain.length,
        "changed": min(settings.changed, chain.length),
        "text_bytes": len(text),
        "store_bytes": stored,
        "empty_store_bytes": empty,
        "put_seconds": round(put, 3),
        "deploy_seconds": round(deployed, 3),
        "delete_seconds": round(time.perf_counter() - begun, 3),
        "diff_seconds": seconds,
    }


def _all_run(client: CoordinatorClient, number: int) -> bool:
    jobs = jobs_of(client, NAME).values()
    return len(jobs) == number and all(job["state"] == "running" for job in jobs)


def _diffs(client: CoordinatorClient, text: str, settings: Settings) -> Iterator[float]:
    for _ in range(settings.runs):
        yield _timed(lambda: client.diff(NAME, text, "yaml"))


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _bytes(database: Path) -> int:
    """What the database takes on disk, its journal brought in first as it is when it is closed."""
    with contextlib.closing(sqlite3.connect(database, timeout=30)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(file.stat().st_size for file in database.parent.glob(f"{database.name}*"))
