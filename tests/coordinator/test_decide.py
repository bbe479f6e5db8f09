"""Single decisions of the control loop's heart, and their timing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.backoff import wait_seconds
from fogline.coordinator.reconcile.answers import absorb, forget_settled
from fogline.coordinator.reconcile.decide import decide, replay
from fogline.coordinator.reconcile.state import (
    BELIEF_SECONDS,
    DONE,
    INSTALL,
    LOST,
    MOST_JOBS,
    MOST_READERS,
    REFUSED,
    REMOVE,
    Command,
    CommandResult,
    DesiredJob,
    Look,
    LoopEvent,
    Memory,
    Order,
)
from fogline.model.jobs import Assignment, Place, Steps
from fogline.model.nodes import OFFLINE, ONLINE, SILENT, SITE, Node, NodeView, Observed

ORDER = Order.of({"down": ["up"], "up": []})
outcomes = st.sampled_from([DONE, REFUSED, LOST])


def test_the_order_of_jobs_that_feed_nobody_is_their_names() -> None:
    order = Order.of({"down": ["up"], "up": [], "alone": frozenset()})
    assert (order.upstream, order.downstream) == ({"down": {"up"}}, {"up": {"down"}})
    assert order.ours == {"down", "up", "alone"}
    assert Order.of({"a": ()}, {"b"}).ours == {"a", "b"}


def want(**nodes: str) -> dict[str, DesiredJob]:
    return {
        job: DesiredJob.of(node, Assignment(job, "p", Steps(()))) for job, node in nodes.items()
    }


def see(state: str = ONLINE, **jobs: DesiredJob | None) -> dict[str, NodeView]:
    """Node `a` with these jobs running; None: some other version."""
    found = {
        job: Observed(job, item.version if item else "other", "running")
        for job, item in jobs.items()
    }
    return {"a": NodeView(Node("a", SITE), state, 0.0, found)}


def first(
    desired: Mapping[str, DesiredJob], views: Mapping[str, NodeView], order: Order = ORDER
) -> tuple[Command, Memory]:
    commands, memory = decide(desired, views, order, Memory(), 0.0)
    assert len(commands) == 1
    return commands[0], memory


def test_downstream_goes_first_and_the_rest_when_it_is_confirmed() -> None:
    desired = want(up="a", down="a")
    command, memory = first(desired, see())
    assert (command.op, command.jobs) == (INSTALL, ("down",))
    assert decide(desired, see(), ORDER, memory, 1.0)[0] == ()
    memory = absorb(memory, CommandResult(command.id, "a", 1.0, DONE))
    (command,), memory = decide(desired, see(), ORDER, memory, 1.0)
    assert command.jobs == ("up",)


def changed(job: str, node: str = "a", **more: Any) -> tuple[DesiredJob, DesiredJob]:
    """A job as it was wanted, and with another parameter."""
    before = DesiredJob.of("a", Assignment(job, "p", Steps(()), reads=(Place("t"),)))
    told = replace(before.assignment, parameters={"n": 1}, **more)
    return before, DesiredJob.of(node, told).after(before)


def test_who_is_there_and_reads_the_same_need_not_be_waited_for() -> None:
    (up, new_up), (down, new_down) = changed("up"), changed("down")
    command, memory = first({"up": new_up, "down": new_down}, see(up=up, down=down))
    assert (command.op, command.jobs) == (INSTALL, ("down", "up"))
    memory = absorb(memory, CommandResult(command.id, "a", 0.0, DONE))
    again = {"up": changed("up", input={"x": "y"})[1], "down": new_down}
    (command,), _ = decide(again, see(up=up, down=down), ORDER, memory, 0.1)
    assert command.jobs == ("up",)


@pytest.mark.parametrize(
    "more",
    [{"reads": (Place("other"),)}, {"running": False}, {"node": "b"}],
)
def test_who_reads_something_else_is_waited_for(more: dict[str, Any]) -> None:
    (up, new_up), (down, new_down) = changed("up"), changed("down", **more)
    assert new_down.readers == ()
    commands, _ = decide(
        {"up": new_up, "down": new_down}, see(up=up, down=down), ORDER, Memory(), 0.0
    )
    assert "up" not in [job for command in commands for job in command.jobs]


def test_who_is_there_in_a_version_that_nobody_knows_is_waited_for() -> None:
    (up, new_up), (_, new_down) = changed("up"), changed("down")
    command, _ = first({"up": new_up, "down": new_down}, see(up=up, down=None))
    assert command.jobs == ("down",)


def test_only_the_last_versions_are_remembered() -> None:
    desired = DesiredJob.of("a", Assignment("j", "p", Steps(())))
    versions = []
    for number in range(20):
        versions.append(desired.version)
        told = replace(desired.assignment, parameters={"n": number})
        desired = DesiredJob.of("a", told).after(desired)
    assert list(desired.readers) == versions[-MOST_READERS:]


def test_what_goes_together_is_removed_together() -> None:
    command, memory = first({}, see(up=None, down=None))
    assert (command.op, command.jobs, command.assignments) == (REMOVE, ("down", "up"), ())
    memory = absorb(memory, CommandResult(command.id, "a", 1.0, DONE))
    assert decide({}, see(up=None, down=None), ORDER, memory, 1.0)[0] == ()


def test_what_goes_waits_for_those_that_stay_and_fed_it() -> None:
    desired, seen = want(up="a"), see(up=None, down=None)
    command, memory = first(desired, seen)
    assert (command.op, command.jobs) == (INSTALL, ("up",))
    memory = absorb(memory, CommandResult(command.id, "a", 1.0, DONE))
    (command,), _ = decide(desired, seen, ORDER, memory, 1.0)
    assert (command.op, command.jobs) == (REMOVE, ("down",))


def test_nothing_to_do() -> None:
    desired = want(up="a", down="a")
    assert decide(desired, see(ONLINE, **desired), ORDER, Memory(), 0.0)[0] == ()


def test_gone_and_silent_nodes_are_told_nothing() -> None:
    for state in (OFFLINE, SILENT):
        assert decide(want(down="a"), see(state, up=None), ORDER, Memory(), 0.0)[0] == ()
    assert decide(want(down="nowhere"), see(), ORDER, Memory(), 0.0)[0] == ()


def test_names_that_were_never_ours_and_local_jobs_stay() -> None:
    local = Observed("up", "x", "running", more={"local": True})
    views = {"a": NodeView(Node("a", SITE), ONLINE, 0.0, {"up": local})}
    assert decide({}, views, ORDER, Memory(), 0.0)[0] == ()
    assert decide({}, see(stranger=None), ORDER, Memory(), 0.0)[0] == ()
    assert decide(want(up="a"), views, ORDER, Memory(), 0.0)[0] == ()


def test_lost_commands_are_sent_again_later_and_later() -> None:
    desired, memory, now = want(down="a"), Memory(seed=3), 0.0
    waits = []
    for _ in range(12):
        commands, memory = decide(desired, see(), ORDER, memory, now)
        assert len(commands) == 1
        memory = absorb(memory, CommandResult(commands[0].id, "a", now, LOST))
        waits.append(memory.pauses["a"].until - now)
        assert decide(desired, see(), ORDER, memory, now + waits[-1] - 0.01)[0] == ()
        now += waits[-1]
    assert 0.25 <= waits[0] <= 0.5
    assert all(15 <= wait <= 30 for wait in waits[-3:])
    assert len(set(waits)) == len(waits)


def test_a_node_that_comes_back_is_told_at_once() -> None:
    command, memory = first(want(down="a"), see())
    for _ in range(3):
        memory = absorb(memory, CommandResult(command.id, "a", 0.0, LOST))
    _, memory = decide(want(down="a"), see(OFFLINE), ORDER, memory, 0.1)
    assert len(decide(want(down="a"), see(), ORDER, memory, 0.1)[0]) == 1


def test_after_its_deadline_a_command_is_lost() -> None:
    command, memory = first(want(down="a"), see())
    assert command.deadline == 10.0
    commands, memory = decide(want(down="a"), see(), ORDER, memory, 10.1)
    assert commands == ()
    assert "in time" in memory.pauses["a"].problem
    assert len(decide(want(down="a"), see(), ORDER, memory, 10.7)[0]) == 1


def test_an_answer_to_another_command_changes_nothing() -> None:
    command, memory = first(want(down="a"), see())
    assert absorb(memory, CommandResult(command.id + 1, "a", 1.0, DONE)) is memory
    assert absorb(memory, CommandResult(command.id, "b", 1.0, DONE)) is memory


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-1, 1), outcomes), max_size=12))
def test_many_answers_are_like_one_after_the_other(answered: list[tuple[str, int, str]]) -> None:
    views = {name: NodeView(Node(name, SITE), ONLINE, 0.0) for name in "abcd"}
    order = Order.of({f"{name}{n}": [] for name in "abcd" for n in range(2)})
    commands, memory = decide(want(**{j: j[0] for j in order.ours}), views, order, Memory(7), 0.0)
    ids = {command.node: command.id for command in commands}
    answers = [
        CommandResult(ids[node] + off, node, 1.0 + at, outcome, "why")
        for at, (node, off, outcome) in enumerate(answered)
    ]
    single = memory
    for answer in answers:
        single = absorb(single, answer)
    assert absorb(memory, *answers) == single


def test_who_is_to_blame_for_a_refusal_is_found_out() -> None:
    order = Order.of({"x": [], "y": [], "z": []})
    desired = want(x="a", y="a", z="a")
    command, memory = first(desired, see(), order)
    assert command.jobs == ("x", "y", "z")
    memory = absorb(memory, CommandResult(command.id, "a", 0.0, REFUSED, "no"))
    tried = []
    for _ in range(3):
        (command,), memory = decide(desired, see(), order, memory, 0.0)
        tried.append(command.jobs)
        bad = command.jobs == ("y",)
        answer = CommandResult(
            command.id, "a", 0.0, REFUSED if bad else DONE, "bad y" if bad else ""
        )
        memory = absorb(memory, answer)
    assert tried == [("x",), ("y",), ("z",)]
    assert memory.problem("a", "y") == "bad y"
    assert memory.problem("a", "x") == ""
    assert decide(desired, see(x=desired["x"], z=desired["z"]), order, memory, 2.4)[0] == ()
    assert decide(desired, see(x=desired["x"], z=desired["z"]), order, memory, 5.1)[0] != ()


def test_another_version_of_a_refused_job_is_tried_at_once() -> None:
    command, memory = first(want(down="a"), see())
    memory = absorb(memory, CommandResult(command.id, "a", 0.0, REFUSED, "no"))
    other = {"down": DesiredJob.of("a", Assignment("down", "p", Steps(()), parameters={"n": 1}))}
    assert len(decide(other, see(), ORDER, memory, 0.1)[0]) == 1


def test_a_move_copies_confirms_switches_drops() -> None:
    desired = want(down="b")
    views = see(down=None) | {"b": NodeView(Node("b", SITE), ONLINE, 0.0)}
    command, memory = first(desired, views)
    assert (command.node, command.op) == ("b", INSTALL)
    memory = absorb(memory, CommandResult(command.id, "b", 0.0, DONE))
    for state, told in (("starting", 0), ("failed", 0), ("running", 1)):
        seen = Observed("down", desired["down"].version, state)
        views["b"] = NodeView(Node("b", SITE), ONLINE, 0.0, {"down": seen})
        commands, _ = decide(desired, views, ORDER, memory, 1.0)
        assert len(commands) == told
    assert (commands[0].node, commands[0].op) == ("a", REMOVE)


def test_many_nodes_are_told_at_the_same_time_and_many_jobs_in_parts() -> None:
    nodes = {f"n{n}": NodeView(Node(f"n{n}", SITE), ONLINE, 0.0) for n in range(200)}
    desired = want(**{f"j{n}": f"n{n}" for n in range(200)})
    order = Order.of(dict.fromkeys(desired, ()))
    assert len(decide(desired, nodes, order, Memory(), 0.0)[0]) == 200
    desired = want(**{f"j{n}": "a" for n in range(500)})
    command, _ = first(desired, see(), Order.of(dict.fromkeys(desired, ())))
    assert len(command.jobs) == MOST_JOBS


def test_a_log_of_events_makes_the_same_commands() -> None:
    desired = want(up="a", down="a")
    events: list[LoopEvent] = [
        Look(desired, see(), ORDER, 0.0),
        CommandResult(1, "a", 0.1, DONE),
        Look(desired, see(), ORDER, 0.2),
        CommandResult(2, "a", 0.3, LOST),
        Look(desired, see(), ORDER, 0.4),
        Look(desired, see(), ORDER, 2.0),
    ]
    said, memory = replay(events, Memory(seed=5))
    assert [command.jobs for command in said] == [("down",), ("up",), ("up",)]
    assert replay(events, Memory(seed=5)) == (said, memory)


def test_waits_differ_between_nodes_and_repeat_for_a_seed() -> None:
    assert wait_seconds("1/a", 3, 0.5, 30) == wait_seconds("1/a", 3, 0.5, 30)
    assert wait_seconds("1/a", 3, 0.5, 30) != wait_seconds("1/b", 3, 0.5, 30)


def test_old_beliefs_go_and_the_others_stay() -> None:
    memory = Memory()
    for number, at in enumerate((0.0, 1.0, 2.0)):
        command = Command(number, "a", REMOVE, (f"j{number % 2}",), ("",), 100.0)
        memory = absorb(
            replace(memory, under_way={"a": command}), CommandResult(number, "a", at, DONE)
        )
    assert list(memory.beliefs) == [("a", "j1"), ("a", "j0")], "in the order in which they came"

    def left(now: float) -> list[str]:
        return [job for _, job in forget_settled(memory, {}, {}, now).beliefs]

    assert left(1.0 + BELIEF_SECONDS - 0.1) == ["j1", "j0"]
    assert left(1.0 + BELIEF_SECONDS) == ["j0"]
    assert left(2.0 + BELIEF_SECONDS) == []
