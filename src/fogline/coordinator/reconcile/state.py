"""What the control loop knows and says: desired jobs, their order, commands, answers, memory.

All of it is frozen. `Memory` may be thrown away at any moment: nothing but time is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field

from fogline.model.jobs import Assignment
from fogline.model.nodes import NodeView

INSTALL, REMOVE = "install", "remove"
DONE, REFUSED, LOST = "done", "refused", "lost"
REMOVED = ""
"""The version of a job that is not there."""

DEADLINE_SECONDS = 10.0
REFUSED_FIRST, REFUSED_LONGEST = 5.0, 60.0
BELIEF_SECONDS = 5.0
"""How long an answer counts more than what the node's status says: that may be older."""
MOST_JOBS = 200
"""In one command."""
MOST_READERS = 8


@dataclass(frozen=True, slots=True)
class DesiredJob:
    """A job where it shall run; the version is computed once, because it is compared often."""

    node: str
    assignment: Assignment
    version: str
    readers: tuple[str, ...] = ()
    """Versions that were desired there before and read the same: what is sent to the job is kept
    with each of them. The last ones, as far as they are known."""

    @classmethod
    def of(cls, node: str, assignment: Assignment) -> DesiredJob:
        return cls(node, assignment, assignment.version)

    def after(self, before: DesiredJob | None) -> DesiredJob:
        """The same, following what was desired until now."""
        if before is None or not self._reads_like(before):
            return self
        readers = (*before.readers, before.version)[-MOST_READERS:]
        return DesiredJob(self.node, self.assignment, self.version, readers)

    def _reads_like(self, other: DesiredJob) -> bool:
        ours, theirs = self.assignment, other.assignment
        alike = ours.reads == theirs.reads and ours.running and theirs.running
        return alike and self.node == other.node


@dataclass(frozen=True, slots=True)
class Order:
    """Who reads whom, without cycles, among the jobs of now and of before."""

    upstream: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The jobs that write what a job reads."""
    downstream: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ours: Set[str] = frozenset()
    """Every name this coordinator gave a job once: only these are ever removed."""

    @classmethod
    def of(cls, upstream: Mapping[str, Collection[str]], ours: Set[str] = frozenset()) -> Order:
        """Of thousands of jobs of before hardly one has another upstream: the others are names
        only, and these stay where they are, in `upstream`."""
        fed = {job: frozenset(writers) for job, writers in upstream.items() if writers}
        downstream: dict[str, set[str]] = {}
        for reader, writers in fed.items():
            for writer in writers:
                downstream.setdefault(writer, set()).add(reader)
        return cls(
            fed,
            {job: frozenset(readers) for job, readers in downstream.items()},
            upstream.keys() | ours if ours else upstream.keys(),
        )


@dataclass(frozen=True, slots=True)
class Command:
    """One request to one node."""

    id: int
    node: str
    op: str
    jobs: tuple[str, ...]
    versions: tuple[str, ...]
    deadline: float
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What became of a command: `done`, `refused` by the node, or `lost` on the way."""

    command: int
    node: str
    at: float
    outcome: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the world: the desired state and what the nodes report."""

    desired: Mapping[str, DesiredJob]
    views: Mapping[str, NodeView]
    order: Order
    now: float


LoopEvent = CommandResult | Look


@dataclass(frozen=True, slots=True)
class Belief:
    """What a node has confirmed about a job: its version, or that it is removed."""

    version: str
    at: float


Beliefs = Mapping[tuple[str, str], Belief]
"""By node and job; the newest last."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Failed attempts, when the next may be made, and why they failed."""

    attempts: int
    until: float
    problem: str = ""
    version: str = REMOVED
    """Of the job that was refused: another version is tried at once."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What was said and answered. An empty one is always right."""

    seed: int = 0
    next_id: int = 1
    under_way: Mapping[str, Command] = field(default_factory=dict)
    """By node: one at a time."""
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    """By node, after commands that were lost."""
    beliefs: Beliefs = field(default_factory=dict)
    refusals: Mapping[tuple[str, str], Pause] = field(default_factory=dict)
    """By node and job."""

    def problem(self, node: str, job: str) -> str:
        refusal = self.refusals.get((node, job))
        return refusal.problem if refusal else ""
