"""What answers, and their absence, do to the control loop's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice, takewhile

from fogline.common.backoff import wait_seconds
from fogline.coordinator.reconcile.state import (
    BELIEF_SECONDS,
    DONE,
    LOST,
    REFUSED,
    REFUSED_FIRST,
    REFUSED_LONGEST,
    REMOVED,
    Belief,
    Beliefs,
    Command,
    CommandResult,
    DesiredJob,
    Memory,
    Pause,
)
from fogline.model.nodes import NodeView


def absorb(memory: Memory, *answers: CommandResult) -> Memory:
    """Takes answers in, in their order. One that is not waited for (late, doubled) changes
    nothing."""
    draft = _Draft(memory)
    taken = [draft.take(answer) for answer in answers]
    return draft.memory() if any(taken) else memory


def expire(memory: Memory, now: float) -> Memory:
    """A command whose deadline has passed is lost."""
    late = [(node, item) for node, item in memory.under_way.items() if now > item.deadline]
    lost = (
        CommandResult(c.id, node, now, LOST, f"{node} did not answer in time") for node, c in late
    )
    return absorb(memory, *lost)


def forget_settled(
    memory: Memory, desired: Mapping[str, DesiredJob], views: Mapping[str, NodeView], now: float
) -> Memory:
    """Drops what does not count any more: old beliefs, refusals of other versions, pauses of nodes
    that went offline (when they come back they get a command at once)."""

    def counts(node: str, job: str, refusal: Pause) -> bool:
        item = desired.get(job)
        version = item.version if item is not None and item.node == node else REMOVED
        view = views.get(node)
        seen = view.jobs.get(job) if view else None
        return version == refusal.version and (seen.version if seen else REMOVED) != version

    beliefs = _without_old(memory.beliefs, now)
    refusals = {k: v for k, v in memory.refusals.items() if counts(*k, v)}
    pauses = {k: v for k, v in memory.pauses.items() if k in views and views[k].online}
    return replace(memory, beliefs=beliefs, refusals=refusals, pauses=pauses)


def _without_old(beliefs: Beliefs, now: float) -> Beliefs:
    """They are in the order in which they came: it does not matter how many are not old."""
    old = sum(1 for _ in takewhile(lambda b: now - b.at >= BELIEF_SECONDS, beliefs.values()))
    return dict(islice(beliefs.items(), old, None)) if old else beliefs


class _Draft:
    """A memory that is being changed: many answers cost one copy of it."""

    def __init__(self, memory: Memory) -> None:
        self._before = memory
        self._under_way = dict(memory.under_way)
        self._pauses = dict(memory.pauses)
        self._beliefs = dict(memory.beliefs)
        self._refusals = dict(memory.refusals)

    def memory(self) -> Memory:
        return replace(
            self._before,
            under_way=self._under_way,
            pauses=self._pauses,
            beliefs=self._beliefs,
            refusals=self._refusals,
        )

    def take(self, answer: CommandResult) -> bool:
        """Whether it was waited for."""
        command = self._under_way.get(answer.node)
        if command is None or command.id != answer.command:
            return False
        del self._under_way[answer.node]
        if answer.outcome == LOST:
            self._pause(answer)
            return True
        self._pauses.pop(answer.node, None)
        if answer.outcome == DONE:
            self._believe(command, answer)
        elif answer.outcome == REFUSED:
            self._refuse(command, answer)
        else:
            raise ValueError(f"no outcome {answer.outcome!r}")
        return True

    def _pause(self, answer: CommandResult) -> None:
        before = self._pauses.get(answer.node)
        attempts = before.attempts if before else 0
        seed = f"{self._before.seed}/{answer.node}"
        wait = wait_seconds(seed, attempts)
        self._pauses[answer.node] = Pause(attempts + 1, answer.at + wait, answer.problem)

    def _believe(self, command: Command, answer: CommandResult) -> None:
        for job, version in zip(command.jobs, command.versions, strict=True):
            key = command.node, job
            self._beliefs.pop(key, None)
            self._beliefs[key] = Belief(version, answer.at)
            self._refusals.pop(key, None)

    def _refuse(self, command: Command, answer: CommandResult) -> None:
        """Of several jobs in one command, each is tried alone next, at once."""
        for job, version in zip(command.jobs, command.versions, strict=True):
            key = (command.node, job)
            before = self._refusals.get(key)
            attempts, wait = 0, 0.0
            if len(command.jobs) == 1:
                attempts = before.attempts if before else 0
                seed = f"{self._before.seed}/{command.node}/{job}"
                wait = wait_seconds(seed, attempts, REFUSED_FIRST, REFUSED_LONGEST)
                attempts += 1
            self._refusals[key] = Pause(attempts, answer.at + wait, answer.problem, version)
