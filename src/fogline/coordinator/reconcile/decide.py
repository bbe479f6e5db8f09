"""The heart of the control loop: desired − observed = commands. No I/O, no clock.

Installs go downstream first: a job is assigned to write somewhere only when who reads there has
been confirmed, in this or an earlier version that reads the same. Jobs that are no longer desired
are removed together, as soon as those that stay and fed them write elsewhere. A move is an install
at the new node, and a remove at the old one once the job runs at the new one and everybody upstream
writes there. A node that is not online gets no command and keeps what it runs. Every command is
idempotent, so the memory may get lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fogline.coordinator.reconcile.answers import absorb, expire, forget_settled
from fogline.coordinator.reconcile.state import (
    BELIEF_SECONDS,
    DEADLINE_SECONDS,
    INSTALL,
    MOST_JOBS,
    REMOVE,
    REMOVED,
    Command,
    CommandResult,
    DesiredJob,
    Look,
    LoopEvent,
    Memory,
    Order,
)
from fogline.model.nodes import NodeView


@dataclass(frozen=True, slots=True)
class PendingWork:
    """What is left to do: (node, job) pairs, and which of them have to wait."""

    installs: frozenset[tuple[str, str]]
    removes: frozenset[tuple[str, str]]
    held: frozenset[tuple[str, str]]


def decide(
    desired: Mapping[str, DesiredJob],
    views: Mapping[str, NodeView],
    order: Order,
    memory: Memory,
    now: float,
) -> tuple[tuple[Command, ...], Memory]:
    """The commands to send now, and what to remember for the next time."""
    memory = forget_settled(expire(memory, now), desired, views, now)
    work = left_to_do(desired, views, order, memory, now)
    installs = _by_node(work.installs - work.held)
    removes = _by_node(work.removes - work.held)
    commands: dict[str, Command] = {}
    for node in sorted({*installs, *removes}):
        if _may_speak(views.get(node), node, memory, now):
            ready = ((INSTALL, installs.get(node, [])), (REMOVE, removes.get(node, [])))
            id = memory.next_id + len(commands)
            command = _next_command(id, node, ready, desired, memory, now)
            if command is not None:
                commands[node] = command
    under_way = {**memory.under_way, **commands}
    memory = replace(memory, next_id=memory.next_id + len(commands), under_way=under_way)
    return tuple(commands.values()), memory


def step(memory: Memory, event: LoopEvent) -> tuple[tuple[Command, ...], Memory]:
    """One event of a log: an answer is taken in, a look leads to commands."""
    if isinstance(event, CommandResult):
        return (), absorb(memory, event)
    return decide(event.desired, event.views, event.order, memory, event.now)


def replay(events: Iterable[LoopEvent], memory: Memory) -> tuple[tuple[Command, ...], Memory]:
    """All commands that a log of events led to; the same ones every time."""
    said: list[Command] = []
    for event in events:
        commands, memory = step(memory, event)
        said.extend(commands)
    return tuple(said), memory


def left_to_do(
    desired: Mapping[str, DesiredJob],
    views: Mapping[str, NodeView],
    order: Order,
    memory: Memory,
    now: float,
) -> PendingWork:
    look = Look(desired, views, order, now)
    installs = frozenset(
        (item.node, job)
        for job, item in desired.items()
        if _version(look, memory, item.node, job) != item.version
    )
    removes = frozenset(_find_undesired(look, memory))
    arriving = {job for node, job in installs if not _reads_there(look, memory, node, job)}
    held = _held_installs(installs, arriving, order)
    held |= _held_removes(installs, removes, look, memory)
    theirs = frozenset(item for item in installs if is_local(views.get(item[0]), item[1]))
    return PendingWork(installs, removes, held | theirs)


def _version(look: Look, memory: Memory, node: str, job: str) -> str:
    """Of a job at a node, as far as is known."""
    belief = memory.beliefs.get((node, job))
    if belief is not None and look.now - belief.at < BELIEF_SECONDS:
        return belief.version
    view = look.views.get(node)
    observed = view.jobs.get(job) if view else None
    return observed.version if observed else REMOVED


def _find_undesired(look: Look, memory: Memory) -> Iterable[tuple[str, str]]:
    for node, view in look.views.items():
        for job in view.jobs:
            desired = look.desired.get(job)
            theirs = is_local(view, job) or job not in look.order.ours
            if theirs or (desired is not None and desired.node == node) or not view.online:
                continue
            belief = memory.beliefs.get((node, job))
            removed = belief is not None and belief.version == REMOVED
            if not (removed and belief and look.now - belief.at < BELIEF_SECONDS):
                yield node, job


def _reads_there(look: Look, memory: Memory, node: str, job: str) -> bool:
    """Whether a job that is to be installed is there with another version that reads the same."""
    readers = look.desired[job].readers
    return bool(readers) and _version(look, memory, node, job) in readers


def _held_installs(
    installs: frozenset[tuple[str, str]], arriving: Iterable[str], order: Order
) -> frozenset[tuple[str, str]]:
    """Those upstream of jobs that do not keep yet what is sent to them."""
    waiting = reach(arriving, order.upstream)
    return frozenset(item for item in installs if item[1] in waiting)


def _held_removes(
    installs: frozenset[tuple[str, str]],
    removes: frozenset[tuple[str, str]],
    look: Look,
    memory: Memory,
) -> frozenset[tuple[str, str]]:
    """An undesired job waits for those upstream that stay and can be reached; one that moved
    waits until all upstream write to its new place, however long that takes."""
    lively = {
        job
        for node, job in installs
        if (node, job) not in memory.refusals and _is_online(look.views.get(node))
    }
    behind_lively = reach(lively, look.order.downstream)
    behind_any = reach({job for _, job in installs | removes}, look.order.downstream)
    held = set()
    for node, job in removes:
        if job in look.desired:
            waits = job in behind_any or not _runs(look, look.desired[job], job)
        else:
            waits = job in behind_lively
        if waits:
            held.add((node, job))
    return frozenset(held)


def _runs(look: Look, desired: DesiredJob, job: str) -> bool:
    """Whether the job is at work where it shall run, as the node itself reports."""
    view = look.views.get(desired.node)
    observed = view.jobs.get(job) if view else None
    if view is None or observed is None or observed.version != desired.version:
        return False
    expected = "running" if desired.assignment.running else "stopped"
    return view.online and observed.state == expected


def reach(starts: Iterable[str], edges: Mapping[str, frozenset[str]]) -> set[str]:
    """Everything that can be reached from the starts by at least one edge."""
    found: set[str] = set()
    open_ones = list(starts)
    while open_ones:
        for further in edges.get(open_ones.pop(), ()):
            if further not in found:
                found.add(further)
                open_ones.append(further)
    return found


def is_local(view: NodeView | None, job: str) -> bool:
    """Whether the node runs a job of this name from its own configuration: never touched."""
    observed = view.jobs.get(job) if view else None
    return observed is not None and bool(observed.more.get("local"))


def _is_online(view: NodeView | None) -> bool:
    return view is not None and view.online


def _may_speak(view: NodeView | None, node: str, memory: Memory, now: float) -> bool:
    pause = memory.pauses.get(node)
    return (
        _is_online(view) and node not in memory.under_way and (pause is None or pause.until <= now)
    )


def _by_node(items: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node, job in sorted(items):
        found.setdefault(node, []).append(job)
    return found


def _next_command(
    id: int,
    node: str,
    ready: Iterable[tuple[str, list[str]]],
    desired: Mapping[str, DesiredJob],
    memory: Memory,
    now: float,
) -> Command | None:
    for op, items in ready:
        jobs = _pick_batch(node, items, memory, now)
        if jobs:
            return _command(id, node, op, jobs, desired, now)
    return None


def _pick_batch(node: str, ready: list[str], memory: Memory, now: float) -> list[str]:
    """What goes in one command: all that were never refused, else one of the refused alone, so that
    an answer shows which job is to blame."""
    fresh = [job for job in ready if (node, job) not in memory.refusals]
    if fresh:
        return fresh[:MOST_JOBS]
    return [job for job in ready if memory.refusals[node, job].until <= now][:1]


def _command(
    id: int,
    node: str,
    op: str,
    jobs: list[str],
    desired: Mapping[str, DesiredJob],
    now: float,
) -> Command:
    deadline = now + DEADLINE_SECONDS
    if op == REMOVE:
        versions = tuple(REMOVED for _ in jobs)
        return Command(id, node, op, tuple(jobs), versions, deadline)
    items = [desired[job] for job in jobs]
    return Command(
        id,
        node,
        op,
        tuple(jobs),
        tuple(item.version for item in items),
        deadline,
        tuple(item.assignment for item in items),
    )
