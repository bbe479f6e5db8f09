"""The control loop's heart against a world that loses, doubles, refuses and forgets."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fogline.coordinator.reconcile.answers import absorb
from fogline.coordinator.reconcile.decide import decide, reach
from fogline.coordinator.reconcile.state import (
    DONE,
    INSTALL,
    LOST,
    REFUSED,
    REMOVE,
    Command,
    CommandResult,
    DesiredJob,
    Memory,
    Order,
)
from fogline.model.jobs import Assignment, Place, Steps
from fogline.model.nodes import OFFLINE, ONLINE, SITE, Node, NodeView, Observed

NODES = ("a", "b", "c")
JOBS = ("j0", "j1", "j2", "j3", "j4")
LOCAL = "own"


def assignment(job: str, number: int) -> Assignment:
    reads = (Place(f"t{number % 2}"),)
    return Assignment(job, "p", Steps(()), reads, parameters={"n": number})


@dataclass
class FakeNode:
    """A node that does what it is told; `jobs` is the truth, the view is what was told of it."""

    name: str
    online: bool = True
    jobs: dict[str, Observed] = field(default_factory=dict)

    def view(self) -> NodeView:
        return NodeView(
            Node(self.name, SITE), ONLINE if self.online else OFFLINE, 0.0, dict(self.jobs)
        )

    def obey(self, command: Command) -> None:
        if command.op == REMOVE:
            for job in command.jobs:
                self.jobs.pop(job, None)
            return
        for item in command.assignments:
            known = self.jobs.get(item.job)
            if known is None or known.version != item.version:
                self.jobs[item.job] = Observed(item.job, item.version, "starting")

    def work(self) -> None:
        for name, job in self.jobs.items():
            self.jobs[name] = Observed(name, job.version, "running", more=job.more)


class World(RuleBasedStateMachine):
    @initialize(
        edges=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8),
        seed=st.integers(0, 9),
    )
    def begin(self, edges: list[tuple[int, int]], seed: int) -> None:
        upstream: dict[str, set[str]] = {}
        for one, other in edges:
            if one != other:
                reader, writer = JOBS[max(one, other)], JOBS[min(one, other)]
                upstream.setdefault(reader, set()).add(writer)
        self.upstream = upstream
        self.nodes = {name: FakeNode(name) for name in NODES}
        for node in self.nodes.values():
            node.jobs[LOCAL] = Observed(LOCAL, "x", "running", more={"local": True})
        self.desired: dict[str, DesiredJob] = {}
        self.ours: set[str] = set()
        self.memory = Memory(seed)
        self.now = 1000.0
        self.views = {name: node.view() for name, node in self.nodes.items()}
        self.in_flight: list[Command] = []

    # ── what people, nodes and time do ───────────────────────────────────────────────────────────

    @rule(job=st.sampled_from(JOBS), node=st.sampled_from(NODES), number=st.integers(0, 2))
    def want(self, job: str, node: str, number: int) -> None:
        desired = DesiredJob.of(node, assignment(job, number)).after(self.desired.get(job))
        self.desired = {**self.desired, job: desired}
        self.ours.add(job)

    @rule(job=st.sampled_from(JOBS))
    def do_not_want(self, job: str) -> None:
        self.desired = {name: item for name, item in self.desired.items() if name != job}

    @rule(node=st.sampled_from(NODES))
    def vanish(self, node: str) -> None:
        self.nodes[node].online = False
        self.report(node)

    @rule(node=st.sampled_from(NODES))
    def come_back(self, node: str) -> None:
        self.nodes[node].online = True
        self.report(node)

    @rule(node=st.sampled_from(NODES))
    def jobs_start(self, node: str) -> None:
        if self.nodes[node].online:
            self.nodes[node].work()

    @rule(seconds=st.sampled_from((0.1, 0.5, 3.0, 11.0)))
    def time_passes(self, seconds: float) -> None:
        for node in NODES:
            self.report(node)
        self.now += seconds

    @rule()
    def restart(self) -> None:
        """The coordinator dies: its memory is gone, answers to it go nowhere."""
        for node in NODES:
            self.report(node)
        self.memory = Memory(self.memory.seed, next_id=self.memory.next_id)

    @rule(
        place=st.integers(0, 99),
        fate=st.sampled_from((DONE, DONE, "doubled", "unheard", "dropped", REFUSED)),
    )
    def deliver(self, place: int, fate: str) -> None:
        if not self.in_flight:
            return
        command = self.in_flight.pop(place % len(self.in_flight))
        node = self.nodes[command.node]
        arrives = node.online and self.now <= command.deadline and fate not in ("dropped", REFUSED)
        if arrives:
            node.obey(command)
        if arrives and fate == "doubled":
            node.obey(command)
        if fate == "unheard" or (not arrives and fate != REFUSED):
            return
        answer = CommandResult(
            command.id, command.node, self.now, REFUSED if fate == REFUSED else DONE
        )
        for _ in range(2 if fate == "doubled" else 1):
            self.memory = absorb(self.memory, answer)

    @rule(place=st.integers(0, 99))
    def lose(self, place: int) -> None:
        if self.in_flight:
            command = self.in_flight.pop(place % len(self.in_flight))
            answer = CommandResult(command.id, command.node, self.now, LOST, "lost")
            self.memory = absorb(self.memory, answer)

    @rule()
    def look(self) -> None:
        order = Order.of(self.upstream, self.ours)
        commands, self.memory = decide(self.desired, self.views, order, self.memory, self.now)
        told = [command.node for command in commands]
        assert len(told) == len(set(told))
        for command in commands:
            assert self.views[command.node].online
            for job in command.jobs:
                self.check(command, job, order)
        self.in_flight += commands

    @rule()
    def everything_settles(self) -> None:
        """Once nothing is lost any more, what is wanted becomes so."""
        for node in NODES:
            self.come_back(node)
        self.in_flight.clear()
        for _ in range(400):
            self.look()
            while self.in_flight:
                self.deliver(0, DONE)
            for node in NODES:
                self.jobs_start(node)
            self.time_passes(1.0)
            if self.settled() and not self.memory.under_way:
                break
        assert self.settled(), (self.desired, self.nodes)

    # ── what must hold ───────────────────────────────────────────────────────────────────────────

    def report(self, node: str) -> None:
        """A node that is gone keeps the view of what it told last."""
        if self.nodes[node].online:
            self.views = {**self.views, node: self.nodes[node].view()}
        else:
            seen = self.views[node]
            self.views = {**self.views, node: NodeView(seen.node, OFFLINE, 0.0, seen.jobs)}

    def check(self, command: Command, job: str, order: Order) -> None:
        assert job in self.ours
        if command.op == INSTALL:
            assert self.desired[job].node == command.node
            for reader in reach([job], order.downstream):
                assert reader not in self.desired or self.is_there(reader), (job, reader)
            return
        desired = self.desired.get(job)
        assert desired is None or desired.node != command.node
        if desired is not None:
            seen = self.nodes[desired.node].jobs[job]
            assert (seen.version, seen.state) == (desired.version, "running")

    def is_there(self, job: str) -> bool:
        item = self.desired[job]
        found = self.nodes[item.node].jobs.get(job)
        return found is not None and found.version in (item.version, *item.readers)

    def settled(self) -> bool:
        right = {(item.node, job): item.version for job, item in self.desired.items()}
        found = {
            (name, job): seen.version
            for name, node in self.nodes.items()
            for job, seen in node.jobs.items()
            if job != LOCAL
        }
        return right == found

    @invariant()
    def own_jobs_of_sites_are_never_touched(self) -> None:
        assert all(node.jobs[LOCAL].more for node in getattr(self, "nodes", {}).values())


World.TestCase.settings = settings(stateful_step_count=40)
TestWorld = World.TestCase
