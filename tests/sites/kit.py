"""What tests of many sites need: devices, logs, pipelines that come and go."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fogline.common.errors import FoglineError
from fogline.demo.world import World
from fogline.log import SiteLog
from tests.agent.kit import Publisher, payloads
from tests.waiting import wait_for

PASS = "def run(records):\n    return records.select('payload')\n"


class Device(threading.Thread):
    """Publishes numbered readings at a steady pace until it is told to stop."""

    def __init__(
        self,
        world: World,
        site: str,
        topic: str,
        pause: float = 0.004,
        reading: Callable[[int], dict[str, Any]] | None = None,
    ) -> None:
        """`reading`: what the one of a number says; else that number, and who sent it."""
        super().__init__(daemon=True)
        self._reading = reading or self._plain
        self.sent = 0
        self._name = f"{site}-{topic}"
        self._publisher = Publisher(world.ports[site], f"{self._name}-{time.monotonic_ns()}", topic)
        self._pause = pause
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(self._pause):
            self._publisher.send(self._reading(self.sent))
            self.sent += 1

    def _plain(self, number: int) -> dict[str, Any]:
        return {"from": self._name, "n": number}

    def stop(self) -> int:
        """Ends it when everything is confirmed; how many it sent."""
        self._done.set()
        self.join()
        wait_for(lambda: self._publisher.confirmed == self.sent, 60, "confirmation")
        self._publisher.close()
        return self.sent


def log_of(world: World, site: str, topic: str) -> list[dict[str, Any]]:
    """Everything in a log of a site."""
    logs = SiteLog(world.folder / site / "log")
    with logs.reader(topic) as reader:
        return [json.loads(payload) for payload in payloads(reader)]


def numbers(records: list[dict[str, Any]], origin: str) -> list[int]:
    return [record["n"] for record in records if record["from"] == origin]


@contextmanager
def deployed(
    world: World, name: str, text: str, form: str = "yaml"
) -> Iterator[list[dict[str, Any]]]:
    """A pipeline that runs, and is gone from all sites afterwards."""
    world.client.put_pipeline(name, text, form)
    try:
        yield world.wait_running(name)
    finally:
        drop(world, name)


def drop(world: World, name: str) -> None:
    jobs = world.client.pipeline(name)["jobs"]
    world.client.delete_pipeline(name)
    names = {job["name"] for job in jobs}
    world.wait(lambda: not names & observed(world), 90, f"an end of {name}")


def observed(world: World) -> set[str]:
    try:
        return {job["job"] for node in world.client.nodes() for job in node["jobs"]}
    except FoglineError:
        return {"nobody answers"}


def upload(world: World, name: str, text: str) -> None:
    path = Path(world.folder) / "upload"
    path.write_text(text, encoding="utf-8")
    world.client.put_package(name, path)


def runs(world: World, *jobs: str) -> dict[str, list[str]]:
    return {job: world.client.job(job)["runs"] for job in jobs}
