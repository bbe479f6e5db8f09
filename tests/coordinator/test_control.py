"""The coordinator and real control connections: births, commands, packages, wills."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fogline.common.errors import DataError
from fogline.control.node import ControlledNode
from fogline.coordinator.config import CoordinatorConfig
from fogline.coordinator.wiring import Coordinator
from fogline.model.jobs import Assignment, name_assignments
from fogline.model.nodes import SITE, Node, Observed
from tests.coordinator.kit import CODE, composition
from tests.waiting import wait_for

pytestmark = pytest.mark.site


class Site:
    """A node that obeys, and remembers what it runs."""

    def __init__(self, name: str, url: str) -> None:
        self.jobs: dict[str, Observed] = {}
        self.refuses = ""
        self._lock = threading.Lock()
        self._node = Node(name, SITE, broker="mqtt://127.0.0.1:1")
        self.control = ControlledNode(
            url,
            lambda: self._node,
            {"install": self._install, "remove": self._remove},
            self._status,
        )
        self.control.start()

    def _install(self, body: dict[str, Any]) -> dict[str, Any]:
        named = name_assignments(body["assignments"], body["jobs"])
        items = [Assignment.from_json(item) for item in named]
        if any(item.job == self.refuses for item in items):
            raise DataError(f"{self.refuses} cannot be run here")
        with self._lock:
            self.jobs |= {i.job: Observed(i.job, i.version, "running") for i in items}
        self.control.publish_own_status()
        return {}

    def _remove(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.jobs = {n: job for n, job in self.jobs.items() if n not in body["jobs"]}
        self.control.publish_own_status()
        return {}

    def _status(self) -> dict[str, Any]:
        with self._lock:
            return {"jobs": [job.as_json() for job in self.jobs.values()], "links": {}}


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    made = Coordinator(CoordinatorConfig(folder=tmp_path / "c"))
    made.start()
    made.service.packages.add("clean.py", CODE.encode())
    yield made
    made.stop()


def states(coordinator: Coordinator) -> set[str]:
    return {job["state"] for job in coordinator.service.jobs()}


def test_jobs_go_to_real_nodes_move_and_go(coordinator: Coordinator) -> None:
    url, service = f"mqtt://{coordinator.control_address}", coordinator.service
    north, south = Site("north", url), Site("south", url)
    try:
        wait_for(lambda: len([n for n in service.nodes() if n["state"] == "online"]) == 2)
        service.put_pipeline("p", composition(3), "yaml")
        wait_for(lambda: states(coordinator) == {"running"})
        assert set(north.jobs) == {"job-0", "job-1", "job-2"}
        service.put_pipeline("p", composition(3, site="south"), "yaml")
        wait_for(lambda: not north.jobs and len(south.jobs) == 3)
        told = north.control.call("package", {"sha256": package(coordinator), "offset": 0}, 10)
        assert base64.b64decode(told["data"]) == CODE.encode()
        south.refuses = "job-1"
        service.put_pipeline("p", composition(3, site="south", limit=2), "yaml")
        wait_for(lambda: "cannot be run here" in service.job("job-1")["problem"])
        service.delete_pipeline("p")
        wait_for(lambda: not south.jobs)
        south.control.close()
        wait_for(lambda: service.nodes()[1]["state"] == "gone")
        assert service.forget_node("south")["forgotten"]
    finally:
        north.control.close()
        south.control.close()


def package(coordinator: Coordinator) -> str:
    return str(coordinator.service.packages_known()[0]["sha256"])
