"""What answers, and their absence, do to the control loop's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fogline.coordinator.state import (
    BELIEF_SECONDS,
    DONE,
    LOST,
    REFUSED,
    REFUSED_FIRST,
    REFUSED_LONGEST,
    REMOVED,
    RETRY_FIRST,
    RETRY_LONGEST,
    Answer,
    Belief,
    Command,
    Memory,
    Pause,
    Wanted,
    wait_seconds,
)
from fogline.model.nodes import NodeView


def absorb(memory: Memory, answer: Answer) -> Memory:
    """Takes an answer in. One that is not waited for (late, doubled) changes nothing."""
    command = memory.under_way.get(answer.node)
    if command is None or command.id != answer.command:
        return memory
    others = {node: item for node, item in memory.under_way.items() if node != answer.node}
    memory = replace(memory, under_way=others)
    if answer.outcome == LOST:
        return _paused(memory, answer.node, answer.at, answer.problem)
    pauses = {node: pause for node, pause in memory.pauses.items() if node != answer.node}
    memory = replace(memory, pauses=pauses)
    if answer.outcome == DONE:
        return _believed(memory, command, answer.at)
    if answer.outcome == REFUSED:
        return _refused(memory, command, answer)
    raise ValueError(f"no outcome {answer.outcome!r}")


def expire(memory: Memory, now: float) -> Memory:
    """A command whose deadline has passed is lost."""
    for node, command in memory.under_way.items():
        if now > command.deadline:
            lost = Answer(command.id, node, now, LOST, f"{node} did not answer in time")
            memory = absorb(memory, lost)
    return memory


def forget_settled(
    memory: Memory, wanted: Mapping[str, Wanted], views: Mapping[str, NodeView], now: float
) -> Memory:
    """Drops what does not count any more: old beliefs, refusals of other versions, pauses of nodes
    that went away (when they come back they are told at once)."""

    def counts(node: str, job: str, refusal: Pause) -> bool:
        item = wanted.get(job)
        version = item.version if item is not None and item.node == node else REMOVED
        view = views.get(node)
        seen = view.jobs.get(job) if view else None
        return version == refusal.version and (seen.version if seen else REMOVED) != version

    beliefs = {k: v for k, v in memory.beliefs.items() if now - v.at < BELIEF_SECONDS}
    refusals = {k: v for k, v in memory.refusals.items() if counts(*k, v)}
    pauses = {k: v for k, v in memory.pauses.items() if k in views and views[k].online}
    return replace(memory, beliefs=beliefs, refusals=refusals, pauses=pauses)


def _paused(memory: Memory, node: str, at: float, problem: str) -> Memory:
    before = memory.pauses.get(node)
    attempts = before.attempts if before else 0
    wait = wait_seconds(f"{memory.seed}/{node}", attempts, RETRY_FIRST, RETRY_LONGEST)
    pause = Pause(attempts + 1, at + wait, problem)
    return replace(memory, pauses={**memory.pauses, node: pause})


def _believed(memory: Memory, command: Command, at: float) -> Memory:
    news = {
        (command.node, job): Belief(version, at)
        for job, version in zip(command.jobs, command.versions, strict=True)
    }
    refusals = {key: pause for key, pause in memory.refusals.items() if key not in news}
    return replace(memory, beliefs={**memory.beliefs, **news}, refusals=refusals)


def _refused(memory: Memory, command: Command, answer: Answer) -> Memory:
    """Of several jobs in one command, each is tried alone next, at once."""
    news = {}
    for job, version in zip(command.jobs, command.versions, strict=True):
        key = (command.node, job)
        before = memory.refusals.get(key)
        attempts, wait = 0, 0.0
        if len(command.jobs) == 1:
            attempts = before.attempts if before else 0
            seed = f"{memory.seed}/{command.node}/{job}"
            wait = wait_seconds(seed, attempts, REFUSED_FIRST, REFUSED_LONGEST)
            attempts += 1
        news[key] = Pause(attempts, answer.at + wait, answer.problem, version)
    return replace(memory, refusals={**memory.refusals, **news})
