"""The coordinator and its nodes, over every kind of control broker."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

from fogline.common.errors import DataError, UsageError
from fogline.control import (
    ControlClient,
    ControlError,
    ControlledNode,
    ControlOptions,
    Member,
    NoAnswerError,
    topics,
)
from fogline.control.announcements import Announcement
from fogline.control.envelope import Answer, ControlRequest
from fogline.control.rhythm import SHORTEST_PAUSE
from fogline.model.nodes import OFFLINE, ONLINE, SILENT, Observed
from tests.control.worlds import (
    QUICK,
    SECONDS,
    Counted,
    World,
    all_online,
    broker_of,
    echo,
    eventually,
    heard,
    publish,
    site,
    state_of,
    view_of,
)

# ── being there ──────────────────────────────────────────────────────────────────────────────────


def test_a_node_is_seen_with_what_it_tells(world: World) -> None:
    job = Observed("j", "v", "running", records_in=5)
    status = {"jobs": [job.as_json()], "links": {"b": {"latency_ms": 3.5, "mbit_s": None}}}
    coordinator = world.coordinator()
    node = world.node(site("a", cores=4, labels={"x": "y"}), status=lambda: status)
    eventually(lambda: (view := view_of(coordinator, "a")) and view.jobs)
    view = coordinator.views()["a"]
    assert view.node == site("a", cores=4, labels={"x": "y"})
    assert view.online
    assert view.jobs == {"j": job}
    assert view.links["b"].latency_ms == 3.5
    assert (node.problem, coordinator.problem, coordinator.bad_messages) == ("", "", 0)


def test_a_coordinator_that_comes_later_sees_the_nodes(world: World) -> None:
    nodes = [world.node(site(name)) for name in "abc"]
    eventually(lambda: all(node.connected for node in nodes))
    coordinator = world.coordinator()
    all_online(coordinator, *"abc")


def test_who_closes_is_gone_and_who_returns_has_a_new_since(world: World) -> None:
    coordinator = world.coordinator()
    node = world.node(site("a"))
    all_online(coordinator, "a")
    first = coordinator.views()["a"].since
    node.close()
    eventually(lambda: state_of(coordinator, "a") == OFFLINE)
    world.node(site("a"))
    all_online(coordinator, "a")
    assert coordinator.views()["a"].since > first


def test_a_broken_connection_is_gone_and_back(world: World) -> None:
    announcements = world.client(topics.announcement("a"))
    node = world.node(site("a"))
    heard(announcements, 1)
    world.cut(node)
    states = [json.loads(message.payload)["state"] for message in heard(announcements, 2)]
    assert states[:2] == [OFFLINE, ONLINE]


def test_a_node_declared_gone_contradicts(world: World) -> None:
    coordinator = world.coordinator()
    node = world.node(site("a"))
    all_online(coordinator, "a")
    other = world.client(topics.announcement("a"))
    heard(other, 1)
    for payload in (Announcement(OFFLINE, node.instance, site("a")).encode(), b"", b"rubbish"):
        publish(other, topics.announcement("a"), payload, retain=True)
        said, put_right = heard(other, 2)[:2]
        assert said.payload == payload
        assert Announcement.decode(put_right.payload, "a").state == ONLINE
    all_online(coordinator, "a")


def test_births_and_statuses_are_told_again_and_again(world: World) -> None:
    listener = world.client(topics.ANNOUNCEMENTS, topics.STATUSES)
    world.node(site("a"), options=ControlOptions(announcement_seconds=0.15, status_seconds=0.1))
    found = [topics.parse_topic(message.topic)[1] for message in heard(listener, 12)]
    assert found.count("birth") >= 3
    assert found.count("status") >= 3


def test_a_change_is_told_at_once_and_many_as_one(world: World) -> None:
    state = {"jobs": [{"job": "j0"}]}
    node = world.node(site("a"), status=lambda: state, options=ControlOptions(status_seconds=60))
    listener = world.client(topics.status("a"))
    heard(listener, 1)
    started = time.monotonic()
    for number in range(500):
        state = {"jobs": [{"job": f"j{number}"}]}
        node.publish_own_status()
        time.sleep(0.001)
    found: list[Any] = []
    while not found or found[-1]["jobs"][0]["job"] != "j499":
        found += [json.loads(message.payload) for message in heard(listener, 1)]
    assert len(found) <= (time.monotonic() - started) / SHORTEST_PAUSE + 2


def test_a_description_may_change_but_not_the_name(world: World) -> None:
    described = site("a", cores=1)
    coordinator = world.coordinator()
    node = world.node(lambda: described, options=ControlOptions(announcement_seconds=0.1))
    all_online(coordinator, "a")
    described = site("a", cores=2)
    eventually(lambda: coordinator.views()["a"].node.cores == 2)
    described = site("b")
    eventually(lambda: "change its name" in node.problem)
    assert set(coordinator.views()) == {"a"}


def test_a_status_that_fails_is_a_problem_and_not_the_end(world: World) -> None:
    broken = threading.Event()

    def status() -> dict[str, Any]:
        if broken.is_set():
            raise OSError("the disk is away")
        return {}

    node = world.node(site("a"), status=status, options=ControlOptions(status_seconds=0.1))
    eventually(lambda: node.connected and not node.problem)
    broken.set()
    eventually(lambda: "the disk is away" in node.problem)
    broken.clear()
    eventually(lambda: not node.problem)


def test_silence_is_noticed_and_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fogline.control.registry.SILENT_SECONDS", 0.3)
    states: list[str] = []
    coordinator = world.coordinator(on_change=lambda: states.append(state_of(coordinator, "a")))
    node = world.node(site("a"), options=ControlOptions(status_seconds=60))
    eventually(lambda: states[-2:] == [ONLINE, SILENT])
    assert state_of(coordinator, "a") == SILENT
    node.publish_own_status()
    all_online(coordinator, "a")


def test_changes_are_told_and_sameness_is_not(world: World) -> None:
    changes = Counted()
    coordinator = world.coordinator(on_change=changes)
    eventually(lambda: coordinator.connected and changes.count)
    node = world.node(site("a"), options=ControlOptions(status_seconds=0.05))
    eventually(lambda: (view := view_of(coordinator, "a")) and view.reported_at > view.since)
    time.sleep(0.1)
    before, reported_at = changes.count, coordinator.views()["a"].reported_at
    eventually(lambda: coordinator.views()["a"].reported_at > reported_at + 0.5)
    assert changes.count == before
    node.close()
    eventually(lambda: changes.count > before)


def test_rubbish_on_the_topics_changes_nothing(world: World) -> None:
    coordinator = world.coordinator({"echo": echo})
    world.node(site("a"))
    all_online(coordinator, "a")
    other = world.client()
    places = [topics.announcement("x"), topics.status("a"), topics.COORDINATOR]
    for topic in [*places, topics.answers("coordinator"), topics.do("a")]:
        for payload in (b"{", b"[" * 10_000, b"\xff", b'{"id": "1"}'):
            publish(other, topic, payload)
    eventually(lambda: coordinator.bad_messages >= 16)
    assert coordinator.send("a", "echo", {"x": 1}, SECONDS).result() == {"x": 1}
    assert set(coordinator.views()) == {"a"}


def test_the_forgotten_are_cleared_and_the_living_come_back(world: World) -> None:
    coordinator = world.coordinator()
    dead = world.node(site("dead"))
    world.node(site("alive"))
    all_online(coordinator, "dead", "alive")
    dead.close()
    eventually(lambda: state_of(coordinator, "dead") == OFFLINE)
    coordinator.forget("dead")
    coordinator.forget("alive")
    eventually(lambda: state_of(coordinator, "alive") == ONLINE)
    later = world.coordinator(name="later")
    eventually(lambda: state_of(later, "alive") == ONLINE)
    assert set(later.views()) == {"alive"} == set(coordinator.views())
    with pytest.raises(ControlError):
        coordinator.forget("a/b")


# ── several on one connection ────────────────────────────────────────────────────────────────────


def members(*names: str) -> list[Member]:
    return [
        Member(lambda name=name: site(name), {"who": lambda body, name=name: {"who": name}}, dict)  # type: ignore[misc]
        for name in names
    ]


def test_several_nodes_share_a_connection_and_each_answers_for_itself(world: World) -> None:
    coordinator, settled = world.coordinator(), Counted()
    nodes = world.nodes(members(*"abc"), settle=settled)
    all_online(coordinator, *"abc")
    futures = {name: coordinator.send(name, "who", {}, SECONDS) for name in "abc"}
    assert {name: future.result() for name, future in futures.items()} == {
        name: {"who": name} for name in "abc"
    }
    assert 1 <= settled.count <= 3
    answer = coordinator.send("b", "describe", {}, SECONDS).result()
    assert answer["instance"] == nodes.instance
    nodes.close()
    eventually(lambda: {state_of(coordinator, name) for name in "abc"} == {OFFLINE})


def test_a_broken_connection_of_several_is_all_gone_and_all_back(world: World) -> None:
    states: list[dict[str, str]] = []
    coordinator = world.coordinator(on_change=lambda: states.append(seen()))

    def seen() -> dict[str, str]:
        return {name: view.state for name, view in coordinator.views().items()}

    nodes = world.nodes(members(*"abc"))
    all_online(coordinator, *"abc")
    world.cut(nodes)
    eventually(lambda: dict.fromkeys("abc", OFFLINE) in states)
    all_online(coordinator, *"abc")


def test_several_contradict_a_will_that_came_too_late(world: World) -> None:
    coordinator = world.coordinator()
    nodes = world.nodes(members(*"ab"))
    all_online(coordinator, *"ab")
    will = Announcement(OFFLINE, nodes.instance, site("a"), everybody=True).encode()
    announcements = world.client(topics.announcement("a"), topics.announcement("b"))
    heard(announcements, 2)
    publish(announcements, topics.announcement("a"), will, retain=True)
    again = [m for m in heard(announcements, 3) if m.payload != will]
    assert {m.topic for m in again} == {topics.announcement("a"), topics.announcement("b")}
    all_online(coordinator, *"ab")


def test_the_second_of_several_takes_over_all_at_once(world: World) -> None:
    coordinator = world.coordinator()
    first = world.nodes(members(*"ab"))
    all_online(coordinator, *"ab")
    second = world.nodes(members(*"ab"))
    eventually(lambda: all(not one.in_charge() for one in second._presences.values()))
    will = Announcement(OFFLINE, first.instance, site("a"), everybody=True).encode()
    first._closing.set()
    publish(world.client(), topics.announcement("a"), will, retain=True)
    eventually(lambda: all(one.in_charge() for one in second._presences.values()))


def test_the_statuses_of_several_come_in_one_message(world: World) -> None:
    coordinator = world.coordinator()
    jobs = {name: [Observed(f"job-{name}", "1", "running").as_json()] for name in "abc"}
    members = [
        Member(lambda name=name: site(name), {}, lambda name=name: {"jobs": jobs[name]})  # type: ignore[misc]
        for name in "abc"
    ]
    nodes = world.nodes(members)
    all_online(coordinator, *"abc")
    eventually(lambda: all(coordinator.views()[name].jobs for name in "abc"))
    jobs["b"] = [Observed("job-b", "2", "running").as_json()]
    statuses = world.client(topics.STATUSES)
    kept = heard(statuses, 1)[0]
    assert kept.topic == topics.status("a")
    assert json.loads(kept.payload)["nodes"].keys() == set("abc"), "who comes later hears of all"
    nodes.publish_status("b")
    eventually(lambda: coordinator.views()["b"].jobs["job-b"].version == "2")
    told_now = [json.loads(message.payload)["nodes"] for message in heard(statuses, 1)]
    assert any(list(found) == ["b"] for found in told_now), "the others have nothing new"


def test_several_without_their_first_tell_and_are_asked_all_the_same(world: World) -> None:
    coordinator = world.coordinator()
    first = world.node(site("a"), {"who": lambda body: {"who": "another a"}})
    all_online(coordinator, "a")
    several = world.nodes(members(*"ab"))
    all_online(coordinator, *"ab")
    eventually(lambda: not several._presences["a"].in_charge())
    statuses = world.client(topics.status("b"))
    several.publish_status("b")
    heard(statuses, 1)
    assert coordinator.send("b", "who", {}, SECONDS).result() == {"who": "b"}
    assert coordinator.send("a", "who", {}, SECONDS).result() == {"who": "another a"}
    first.close()


# ── two of one name ──────────────────────────────────────────────────────────────────────────────


def test_the_second_of_a_name_keeps_quiet_until_the_first_is_gone(world: World) -> None:
    coordinator = world.coordinator()
    first = world.node(site("a"), {"who": lambda body: {"who": 1}})
    all_online(coordinator, "a")
    second = world.node(site("a"), {"who": lambda body: {"who": 2}})
    eventually(lambda: "another node is called a" in second.problem)
    eventually(lambda: "another node is called a" in first.problem)
    eventually(lambda: coordinator._registry._nodes["a"].announcement.instance == first.instance)
    for _ in range(5):
        assert coordinator.send("a", "who", {}, SECONDS).result() == {"who": 1}
    first.close()
    eventually(lambda: coordinator._registry._nodes["a"].announcement.instance == second.instance)
    eventually(lambda: second.problem == "")
    assert coordinator.send("a", "who", {}, SECONDS).result() == {"who": 2}


def test_the_end_of_a_quiet_one_does_not_disturb(world: World) -> None:
    coordinator = world.coordinator()
    first = world.node(site("a"))
    all_online(coordinator, "a")
    second = world.node(site("a"))
    eventually(lambda: "keeps quiet" in second.problem)
    announcements = world.client(topics.announcement("a"))
    second.close()
    world.cut(first)
    found = [Announcement.decode(message.payload, "a") for message in heard(announcements, 3)]
    assert {birth.instance for birth in found} == {first.instance}
    all_online(coordinator, "a")


def test_a_birth_left_by_a_dead_process_does_not_keep_a_node_quiet(world: World) -> None:
    left = Announcement(ONLINE, "000000000000dead", site("a")).encode()
    publish(world.client(), topics.announcement("a"), left, retain=True)
    coordinator = world.coordinator()
    all_online(coordinator, "a")
    node = world.node(site("a"))
    eventually(lambda: coordinator._registry._nodes["a"].announcement.instance == node.instance)
    assert node.problem == ""


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def test_commands_go_both_ways(world: World) -> None:
    coordinator = world.coordinator({"package": lambda body: {"size": body["offset"] + 1}})
    node = world.node(site("a"))
    all_online(coordinator, "a")
    body = {"text": "grüße", "list": [1, 2.5, None], "deep": {"a": {}}}
    assert coordinator.send("a", "echo", body, SECONDS).result() == body
    assert node.call("package", {"offset": 6}, SECONDS) == {"size": 7}


def test_a_large_body_comes_through(world: World) -> None:
    coordinator = world.coordinator()
    world.node(site("a"))
    all_online(coordinator, "a")
    body = {"data": "x" * (4 << 20)}
    assert coordinator.send("a", "echo", body, SECONDS).result() == body


def test_a_node_answers_its_status_when_asked(world: World) -> None:
    coordinator = world.coordinator()
    node = world.node(site("a"), status=lambda: {"jobs": [{"job": "j"}], "extra": 1})
    all_online(coordinator, "a")
    answer = coordinator.send("a", "describe", {}, SECONDS).result()
    assert (answer["instance"], answer["jobs"]) == (node.instance, [{"job": "j"}])
    assert (answer["links"], answer["extra"]) == ({}, 1)


def test_an_operation_may_ask_the_coordinator(world: World) -> None:
    coordinator = world.coordinator({"double": lambda body: {"n": 2 * body["n"]}})
    node = world.node(site("a"), {"ask": lambda body: node.call("double", body, SECONDS)})
    all_online(coordinator, "a")
    assert coordinator.send("a", "ask", {"n": 4}, SECONDS).result() == {"n": 8}


def failing(error: BaseException) -> Any:
    def operation(body: dict[str, Any]) -> dict[str, Any]:
        raise error

    return operation


def test_what_operations_raise_is_answered_and_the_node_lives_on(world: World) -> None:
    operations = {
        "known": failing(DataError("no such job", "look again")),
        "bug": failing(ZeroDivisionError("by zero")),
        "exit": failing(SystemExit(3)),
        "silent": failing(ValueError()),
        "list": lambda body: [1],
        "unwritable": lambda body: {"a": object()},
        "too large": lambda body: {"a": "x" * (9 << 20)},
        "echo": echo,
    }
    coordinator = world.coordinator()
    world.node(site("a"), operations)
    all_online(coordinator, "a")
    expected = {
        "known": "no such job (look again)",
        "bug": "internal error: ZeroDivisionError: by zero",
        "exit": "internal error: SystemExit: 3",
        "silent": "internal error: ValueError",
        "list": "internal error: TypeError",
        "unwritable": "internal error: the answer cannot be sent",
        "too large": "internal error: the answer cannot be sent",
        "missing": "no operation 'missing' (there are: bug, describe, echo",
    }
    for op, text in expected.items():
        error = coordinator.send("a", op, {}, SECONDS).exception()
        assert isinstance(error, ControlError)
        assert not isinstance(error, NoAnswerError)
        assert str(error).startswith(text)
    assert coordinator.send("a", "echo", {"x": 1}, SECONDS).result() == {"x": 1}


def test_the_coordinator_says_no(world: World) -> None:
    refusing = {"package": failing(DataError("no such package", "deploy again"))}
    coordinator = world.coordinator(refusing)
    node = world.node(site("a"))
    all_online(coordinator, "a")
    with pytest.raises(ControlError, match="no such package") as refused:
        node.call("package", {}, SECONDS)
    assert refused.value.hint == "deploy again"


def test_requests_are_carried_out_in_order_one_at_a_time(world: World) -> None:
    done: list[int] = []
    running = threading.Semaphore(1)

    def operation(body: dict[str, Any]) -> dict[str, Any]:
        assert running.acquire(blocking=False)
        done.append(body["n"])
        time.sleep(0.001)
        running.release()
        return body

    coordinator = world.coordinator()
    world.node(site("a"), {"count": operation})
    all_online(coordinator, "a")
    futures = [coordinator.send("a", "count", {"n": n}, SECONDS) for n in range(200)]
    assert [future.result()["n"] for future in futures] == list(range(200))
    assert done == list(range(200))


def test_a_request_that_comes_twice_is_done_once_and_answered_twice(world: World) -> None:
    calls = Counted()
    world.node(site("a"), {"count": lambda body: calls() or {"n": calls.count}})
    listener = world.client(topics.answers("me"), topics.announcement("a"))
    heard(listener, 1)
    request = ControlRequest("7", "count", {}, time.time() + SECONDS, topics.answers("me")).encode()
    for _ in range(3):
        publish(listener, topics.do("a"), request)
    found = [message for message in heard(listener, 3) if message.topic == topics.answers("me")]
    found += heard(listener, 3 - len(found))
    assert [Answer.decode(message.payload) for message in found] == [Answer("7", body={"n": 1})] * 3


def test_an_answer_that_comes_twice_or_unasked_is_ignored(world: World) -> None:
    coordinator = world.coordinator()
    world.node(site("a"))
    all_online(coordinator, "a")
    other = world.client(topics.do("a"))
    future = coordinator.send("a", "echo", {"x": 1}, SECONDS)
    request = ControlRequest.decode(heard(other, 1)[0].payload)
    for body in ({"x": 2}, {"x": 3}):
        publish(other, request.answer, Answer(request.id, body=body).encode())
    publish(other, request.answer, Answer("nobody asked").encode())
    assert future.result(SECONDS) in ({"x": 1}, {"x": 2})
    assert coordinator.send("a", "echo", {"x": 4}, SECONDS).result() == {"x": 4}
    assert coordinator.bad_messages == 0


def test_after_its_deadline_a_request_is_not_begun(world: World) -> None:
    calls, started, release = Counted(), threading.Event(), threading.Event()
    held = {
        "block": lambda body: started.set() or {"was": release.wait(SECONDS)},
        "count": lambda body: calls() or {},
    }
    coordinator = world.coordinator()
    world.node(site("a"), held)
    all_online(coordinator, "a")
    listener = world.client(topics.answers("coordinator"))
    blocked = coordinator.send("a", "block", {}, SECONDS)
    assert started.wait(SECONDS)
    late = coordinator.send("a", "count", {}, 0.1)
    with pytest.raises(NoAnswerError, match=r"no answer to 'count' on fogline/nodes/a/do"):
        late.result()
    release.set()
    assert blocked.result() == {"was": True}
    answers = [Answer.decode(message.payload) for message in heard(listener, 2)]
    assert "its deadline passed" in answers[1].error
    assert not calls.count


def test_nobody_answers(world: World) -> None:
    coordinator = world.coordinator()
    node = world.node(site("a"))
    eventually(lambda: node.connected and coordinator.connected)
    futures = [coordinator.send("nobody", "echo", {}, 0.1 + n / 100) for n in range(10)]
    for future in futures:
        assert isinstance(future.exception(SECONDS), NoAnswerError)
    silent = world.node(site("b"))
    coordinator.close()
    with pytest.raises(NoAnswerError):
        silent.call("package", {}, 0.1)


def test_what_cannot_be_sent_fails_its_future(world: World) -> None:
    coordinator = world.coordinator()
    unsendable: list[Future[Any]] = [
        coordinator.send("a/b", "echo", {}, 1.0),
        coordinator.send("a", "", {}, 1.0),
        coordinator.send("a", "echo", {"a": object()}, 1.0),
        coordinator.send("a", "echo", {"a": "x" * (9 << 20)}, 1.0),
        coordinator.send("a", "echo", {}, float("inf")),
    ]
    for future in unsendable:
        error = future.exception(0.1)
        assert isinstance(error, ControlError)
        assert not isinstance(error, NoAnswerError)


def test_closing_ends_all_that_waits(world: World) -> None:
    coordinator = world.coordinator()
    node = world.node(site("a"))
    future = coordinator.send("nobody", "echo", {}, 1000.0)
    coordinator.close()
    coordinator.close()
    assert isinstance(future.exception(1.0), ControlError)
    assert isinstance(coordinator.send("a", "echo", {}, 1.0).exception(1.0), ControlError)
    node.close()
    node.close()
    with pytest.raises(ControlError):
        node.call("package", {}, 1.0)


def test_two_hundred_nodes_answer_at_once(world: World) -> None:
    names = [f"site-{number}" for number in range(200)]
    coordinator = world.coordinator()
    for name in names:
        world.node(site(name))
    eventually(lambda: [v.online for v in coordinator.views().values()] == [True] * 200)
    futures = {name: coordinator.send(name, "echo", {"to": name}, SECONDS) for name in names}
    assert all(future.result() == {"to": name} for name, future in futures.items())


def test_many_are_asked_at_once_and_a_wrong_name_fails_alone(world: World) -> None:
    coordinator = world.coordinator()
    for name in "abc":
        world.node(site(name))
    all_online(coordinator, *"abc")
    wrong = ["a/b", "", "+", "x" * 500]
    names = ["a", *wrong, "b", "c"]
    heard: dict[str, object] = {}
    coordinator.send_each(
        "echo", {"all": 1}, {name: {"to": name} for name in names}, SECONDS, heard.update
    )
    eventually(lambda: len(heard) == len(names))
    for name in names:
        if name in wrong:
            assert isinstance(heard[name], ControlError)
        else:
            assert heard[name] == {"all": 1, "to": name}


# ── the broker is away ───────────────────────────────────────────────────────────────────────────


def test_starting_does_not_wait_for_the_broker(world: World) -> None:
    world.crash()
    started = time.monotonic()
    coordinator = world.coordinator({"double": lambda body: {"n": 2 * body["n"]}})
    node = world.node(site("a"))
    expired = coordinator.send("a", "echo", {"x": 2}, 0.1)
    assert time.monotonic() - started < 30.0
    eventually(lambda: node.problem not in ("", "not connected yet"))
    error = expired.exception(SECONDS)
    assert isinstance(error, NoAnswerError)
    assert "the control broker is unreachable" in error.hint
    world.start()
    all_online(coordinator, "a")
    assert node.call("double", {"n": 2}, SECONDS) == {"n": 4}
    assert coordinator.send("a", "echo", {"x": 1}, SECONDS).result() == {"x": 1}
    assert (node.problem, coordinator.problem) == ("", "")


def test_a_broker_that_crashed_and_forgot_all_is_told_again(world: World) -> None:
    coordinator = world.coordinator({"echo": echo})
    nodes = [world.node(site(name)) for name in "abc"]
    all_online(coordinator, *"abc")
    for _ in range(2):
        world.crash()
        eventually(lambda: not coordinator.connected and not any(n.connected for n in nodes))
        world.start()
        later = world.coordinator(name="later")
        all_online(later, *"abc")
        for name in "abc":
            assert coordinator.send(name, "echo", {"x": name}, SECONDS).result() == {"x": name}
        assert nodes[0].call("echo", {"x": 1}, SECONDS) == {"x": 1}
        later.close()


def test_a_cut_coordinator_goes_on(world: World) -> None:
    coordinator = world.coordinator()
    node = world.node(site("a"))
    all_online(coordinator, "a")
    before = broker_of(coordinator).receive(timeout=0).connection
    world.cut(coordinator)
    eventually(lambda: broker_of(coordinator).receive(timeout=0).connection > before)
    assert coordinator.send("a", "echo", {"x": 1}, SECONDS).result() == {"x": 1}
    node.close()
    eventually(lambda: state_of(coordinator, "a") == OFFLINE)


def test_closing_without_a_broker_is_quick(world: World) -> None:
    world.crash()
    node, coordinator = world.node(site("a")), world.coordinator()
    started = time.monotonic()
    node.close()
    coordinator.close()
    assert time.monotonic() - started < 30.0
    assert not node.connected


def test_nothing_is_left_running_after_closing(world: World) -> None:
    before = threading.active_count()
    coordinator = world.coordinator({"echo": echo})
    nodes = [world.node(site(name)) for name in "abc"]
    all_online(coordinator, *"abc")
    assert nodes[0].call("echo", {}, SECONDS) == {}
    for side in (*nodes, coordinator):
        side.close()
    eventually(lambda: threading.active_count() <= before)


def test_an_address_that_is_none_is_refused_at_once(world: World) -> None:
    with pytest.raises(UsageError):
        ControlledNode("http://x", lambda: site("a"), {}, dict, QUICK)
    with pytest.raises(UsageError):
        ControlClient("nowhere", {}, lambda: None, "c")
