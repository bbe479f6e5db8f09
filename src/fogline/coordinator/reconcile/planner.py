"""From the store to what every node shall run; computed anew when the store or the nodes change."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fogline.coordinator.pipelines.ports import ControlPort
from fogline.coordinator.reconcile.histories import Histories
from fogline.coordinator.reconcile.state import DesiredJob, Order
from fogline.coordinator.repository.pipelines_table import Stored
from fogline.coordinator.repository.store import Store
from fogline.deploy.diff.order import downstream_first
from fogline.deploy.resolve.assign import connect
from fogline.deploy.resolve.flow import Flow
from fogline.deploy.resolve.topology import Topology
from fogline.model.jobs import Assignment, Job
from fogline.model.nodes import OFFLINE, Node, NodeView


class Nodes:
    """All nodes ever seen: as they report now, or offline since the coordinator last ran."""

    def __init__(self, control: ControlPort, store: Store) -> None:
        self._control = control
        self._store = store
        self._lock = threading.Lock()
        self._known = store.nodes()
        self.history = Histories(store)

    def views(self, heard: Mapping[str, NodeView] | None = None) -> dict[str, NodeView]:
        """`heard`: what the nodes report, if somebody has asked for that already."""
        now = dict(self._control.views() if heard is None else heard)
        with self._lock:
            for name, (node, at) in self._known.items():
                if name not in now:
                    now[name] = NodeView(node, OFFLINE, at)
        return now

    def remember(self, heard: Mapping[str, NodeView], at: float) -> None:
        """Writes down the nodes that are new or different, and those that failed or came up."""
        self.history.look(heard, self._control.connected, at)
        with self._lock:
            news = [view.node for n, view in heard.items() if self._is_news(n, view.node)]
            self._store.remember_nodes(news, at)
            self._known.update({node.name: (node, at) for node in news})

    def forget(self, name: str) -> None:
        self._control.forget(name)
        with self._lock:
            self._store.forget_node(name)
            self._known.pop(name, None)
        self.history.forget(name)

    def _is_news(self, name: str, node: Node) -> bool:
        known = self._known.get(name)
        return known is None or (known[0] is not node and known[0] != node)


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The desired state: every pipeline and job, and what every node shall run."""

    stored: Mapping[str, Stored] = field(default_factory=dict)
    jobs: Mapping[str, tuple[str, Job]] = field(default_factory=dict)
    """By name: the pipeline and the job."""
    desired: Mapping[str, DesiredJob] = field(default_factory=dict)
    order: Order = field(default_factory=Order)

    def upstream(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        return {name: self.order.upstream.get(name, frozenset()) for name in names}


class Planner:
    """Holds the plan of now. Safe for many threads."""

    def __init__(self, store: Store, nodes: Nodes) -> None:
        self._store = store
        self._nodes = nodes
        self._lock = threading.Lock()
        self._plan = DesiredState()
        self._made_of: object = None
        self._changes = 0

    def note_change(self) -> None:
        """The store has changed."""
        with self._lock:
            self._changes += 1

    def plan(self, views: Mapping[str, NodeView] | None = None) -> DesiredState:
        views = self._nodes.views() if views is None else views
        with self._lock:
            made_of = (self._changes, {name: view.node for name, view in views.items()})
            if made_of != self._made_of:
                self._plan = self._make(views)
                self._made_of = made_of
            return self._plan

    def _make(self, views: Mapping[str, NodeView]) -> DesiredState:
        stored = self._store.pipelines()
        pipelines = [item.pipeline for item in stored]
        jobs = {job.name: (p.name, job) for p in pipelines for job in p.jobs}
        flow, assignments = connect(pipelines, Topology.of(views.values()))
        return DesiredState(
            {item.name: item for item in stored},
            jobs,
            {
                job: self._make_desired(job, node, assignment)
                for job, (node, assignment) in assignments.items()
            },
            Order.of(self._store.past_jobs() | upstream_of(flow)),
        )

    def _make_desired(self, job: str, node: str, assignment: Assignment) -> DesiredJob:
        """What is still desired as it was follows nothing new."""
        before, now = self._plan.desired.get(job), DesiredJob.of(node, assignment)
        same = before is not None and (before.node, before.version) == (now.node, now.version)
        return before if same and before is not None else now.after(before)


def upstream_of(flow: Flow) -> dict[str, frozenset[str]]:
    """For every job the jobs that write what it reads: the order of commands follows it.

    Pipelines may feed one another in a circle; there no order is right, and the edges that would
    close it are left out.
    """
    if not any(flow.meets.values()):
        return dict.fromkeys(flow.written, frozenset())
    wave = {name: number for number, names in enumerate(downstream_first(flow)) for name in names}
    found: dict[str, set[str]] = defaultdict(set)
    for key, writers in flow.writers.items():
        for reader in flow.read_by(key):
            found[reader].update(name for name in writers if wave[name] > wave[reader])
    return {name: frozenset(found.get(name, ())) for name in flow.written}
