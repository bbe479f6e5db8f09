"""What the coordinator's tests share: made-up nodes, pipelines and a way to wait."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from fogline.common.errors import FoglineError
from fogline.control.coordinator import OnOutcomes
from fogline.control.envelope import NodePart
from fogline.coordinator.api.service import Parts, Service
from fogline.coordinator.pipelines.compiler import DeployCompiler
from fogline.coordinator.pipelines.packages import PackageStore
from fogline.coordinator.reconcile.loop import Loop
from fogline.coordinator.reconcile.planner import Nodes, Planner
from fogline.coordinator.reconcile.state import LoopEvent
from fogline.coordinator.repository.store import Store
from fogline.model.jobs import Assignment, Job, Pipeline, Place, Query, Steps, name_assignments
from fogline.model.nodes import ONLINE, SITE, Node, NodeView, Observed

CODE = "def clean(records, *, limit=1):\n    return records\n"


def chain(name: str, jobs: int, node: str = "north", prefix: str = "job") -> Pipeline:
    """Jobs that read what the one before writes."""
    return Pipeline(
        name,
        tuple(
            Job(
                f"{prefix}-{number}",
                node,
                Steps(({"op": "filter", "where": "value > 3"},)),
                (Place(f"{prefix}/{number}", node),),
                (Place(f"{prefix}/{number + 1}", node),),
                {"threshold": number},
            )
            for number in range(jobs)
        ),
    )


def query_job(name: str, text: str) -> Job:
    return Job(name, "north", Query(text))


def composition(jobs: int, site: str = "north", limit: int = 1, prefix: str = "job") -> str:
    lines = ["jobs:"]
    for number in range(jobs):
        lines += [
            f"- job_name: {prefix}-{number}",
            f"  site: {site}",
            "  job_path: clean.py",
            "  entry: clean:clean",
            f"  source_topic: {prefix}/{number}",
            f"  sink_topic: {prefix}/{number + 1}",
            f"  parameters: {{limit: {limit}}}",
        ]
    return "\n".join(lines) + "\n"


class NoError(FoglineError):
    """A node's refusal."""


class FakeControl:
    """Nodes in memory that do what they are told, at once or when `answer_all` is called."""

    def __init__(self, *names: str) -> None:
        self.connected = True
        self.problem = ""
        self.refuse: set[str] = set()
        self.mute: set[str] = set()
        self.healthy: dict[str, bool] = {}
        self.sent: list[tuple[str, str, tuple[str, ...]]] = []
        self.on_change: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._nodes = {
            name: Node(name, SITE, broker=f"mqtt://{name}.invalid:1883") for name in names
        }
        self._states = dict.fromkeys(names, ONLINE)
        self._jobs: dict[str, dict[str, Observed]] = {name: {} for name in names}

    def add(self, node: Node) -> None:
        with self._lock:
            self._nodes[node.name] = node
            self._states[node.name] = ONLINE
            self._jobs[node.name] = {}

    def views(self) -> Mapping[str, NodeView]:
        with self._lock:
            return {
                name: NodeView(
                    node,
                    self._states[name],
                    0.0,
                    dict(self._jobs[name]),
                    healthy=self.healthy.get(name),
                )
                for name, node in self._nodes.items()
            }

    def set_state(self, name: str, state: str) -> None:
        with self._lock:
            self._states[name] = state
        self.on_change()

    def observe(self, node: str, observed: Observed) -> None:
        with self._lock:
            self._jobs[node][observed.job] = observed
        self.on_change()

    def send(
        self, node: str, op: str, body: dict[str, Any], timeout: float
    ) -> Future[dict[str, Any]]:
        future: Future[dict[str, Any]] = Future()
        if op == "logs" and body["job"] not in self.refuse:
            future.set_result({"lines": [f"{body['job']} says"] * min(body["lines"], 2)})
            return future
        items = [Assignment.from_json(item) for item in body.get("assignments", ())]
        names = tuple(item.job for item in items) or tuple(body.get("jobs", [body.get("job")]))
        with self._lock:
            self.sent.append((node, op, names))
            refused = self.refuse & set(names)
            if node not in self.mute and not refused:
                self._obey(node, op, items, names)
        if node in self.mute:
            return future
        if refused:
            future.set_exception(NoError(f"cannot run {min(refused)}"))
        else:
            future.set_result({})
        self.on_change()
        return future

    def send_each(
        self,
        op: str,
        body: NodePart,
        parts: Mapping[str, NodePart],
        timeout: float,
        heard: OnOutcomes,
    ) -> None:
        for node, part in parts.items():
            told = json.loads(json.dumps({**body, **part}))
            if op == "install":
                told = {"assignments": name_assignments(told["assignments"], told["jobs"])}
            answer = self.send(node, op, told, timeout)
            answer.add_done_callback(
                lambda done, node=node: heard({node: done.exception() or done.result()})
            )

    def _obey(self, node: str, op: str, items: list[Assignment], names: tuple[str, ...]) -> None:
        jobs = self._jobs[node]
        for item in items:
            state = "running" if item.running else "stopped"
            jobs[item.job] = Observed(item.job, item.version, state, runs=("r1",), records_in=7)
        for name in names if op == "remove" else ():
            jobs.pop(name, None)

    def is_refusal(self, error: BaseException) -> bool:
        return isinstance(error, NoError)

    def forget(self, name: str) -> None:
        with self._lock:
            for table in (self._nodes, self._states, self._jobs):
                table.pop(name, None)

    def jobs_at(self, node: str) -> set[str]:
        return set(self.views()[node].jobs)


class Rig:
    """A coordinator over made-up nodes; `begin` starts its loop."""

    def __init__(self, folder: Path, control: FakeControl, url: str = "") -> None:
        self.control = control
        self.events: list[LoopEvent] = []
        self.store = Store(url or f"sqlite:///{folder / 'coordinator.db'}")
        self.packages = PackageStore(folder / "packages", self.store, time.time)
        self.nodes = Nodes(control, self.store)
        self.planner = Planner(self.store, self.nodes)
        self.loop = Loop(self.planner, self.nodes, control, self.store, record=self.events.append)
        control.on_change = self.loop.wake
        self.parts = Parts(
            self.store,
            self.packages,
            control,
            self.nodes,
            self.planner,
            self.loop,
            DeployCompiler(),
        )
        self.service = Service(self.parts)

    def begin(self) -> Rig:
        self.loop.start()
        return self

    def end(self) -> None:
        self.loop.stop()
        self.store.close()
