"""Requests that wait, with a connection made up; and work that is too much."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from fogline.broker import BrokerTimeoutError, DeliveryFuture, Message
from fogline.common.errors import DataError
from fogline.control import ControlError, NoAnswerError, topics
from fogline.control.calls import Calls, OutgoingRequest
from fogline.control.envelope import Answer, ControlRequest
from fogline.control.groups import outcomes_of
from fogline.control.worker import (
    MOST_REMEMBERED,
    MOST_TOGETHER,
    MOST_WAITING,
    Operations,
    Worker,
)
from tests.control.worlds import SECONDS, eventually

ANSWERS = topics.answers("me")


class Line:
    """Stands for a connection: keeps what is published."""

    def __init__(self, connected: bool = True) -> None:
        self.connected = connected
        self.full = False
        self.sent: list[Message] = []
        self.published = 0
        """How often; each time wakes the thread of the network."""

    @property
    def problem(self) -> str:
        return "" if self.connected else "the cable is cut"

    def publish(self, *messages: Message) -> DeliveryFuture:
        if self.full:
            raise BrokerTimeoutError("no room")
        self.sent += messages
        self.published += 1
        return DeliveryFuture(0)

    @property
    def requests(self) -> list[ControlRequest]:
        return [ControlRequest.decode(message.payload) for message in self.sent]

    @property
    def answers(self) -> list[Answer]:
        return [item for message in self.sent for item in Answer.decode_all(message.payload)]


def made(line: Line) -> Calls:
    return Calls(ANSWERS, line)  # type: ignore[arg-type]


def test_what_waits_for_a_connection_is_sent_once_in_order_and_in_time() -> None:
    line = Line(connected=False)
    calls = made(line)
    late = calls.send("x", "late", {}, 0.02)
    waiting = [calls.send("x", "op", {"n": n}, SECONDS) for n in range(3)]
    assert isinstance(late.exception(SECONDS), NoAnswerError)
    assert "the cable is cut" in str(late.exception())
    assert not line.sent
    line.connected = True
    calls.connected()
    calls.connected()
    assert [request.body["n"] for request in line.requests] == [0, 1, 2]
    for request in line.requests:
        calls.take_answers(Answer(request.id, body=request.body).encode())
    assert [future.result()["n"] for future in waiting] == [0, 1, 2]


def test_no_room_fails_at_once() -> None:
    line = Line()
    line.full = True
    error = made(line).send("x", "op", {}, SECONDS).exception(0)
    assert isinstance(error, ControlError)
    assert "no room" in str(error)


def test_many_requests_are_on_their_way_at_once_and_answered_one_by_one() -> None:
    line = Line()
    calls = made(line)
    futures = calls.send_all(
        [OutgoingRequest(f"to/{n}", "op", {"n": n}) for n in range(300)], SECONDS
    )
    assert line.published == 1
    assert [message.topic for message in line.sent] == [f"to/{n}" for n in range(300)]
    for request in reversed(line.requests):
        calls.take_answers(Answer(request.id, body=request.body).encode())
    assert [future.result(0)["n"] for future in futures] == list(range(300))
    assert calls.send_all([], SECONDS) == []
    assert line.published == 1


def test_of_many_requests_only_those_fail_that_cannot_be_sent() -> None:
    line = Line()
    huge, broken = {"x": "x" * (9 << 20)}, {"x": object()}
    bodies = [{}, huge, {}, broken, {}]
    futures = made(line).send_all([OutgoingRequest("x", "op", body) for body in bodies], SECONDS)
    assert [isinstance(f.exception(0), ControlError) if f.done() else None for f in futures] == [
        *(None, True, None, True, None)
    ]
    assert len(line.sent) == 3


def test_without_room_all_of_many_fail_at_once() -> None:
    line = Line()
    line.full = True
    calls = made(line)
    for future in calls.send_all([OutgoingRequest("x", "op", {})] * 3, SECONDS):
        assert "no room" in str(future.exception(0))
    line.full = False
    calls.connected()
    assert not line.sent


def test_deadlines_pass_in_their_own_order() -> None:
    calls, ended = made(Line()), []
    for seconds in (0.15, 0.05, 0.1, 1e12):
        future = calls.send("x", "op", {}, seconds)
        future.add_done_callback(lambda _, seconds=seconds: ended.append(seconds))  # type: ignore[misc]
    eventually(lambda: len(ended) == 3)
    assert ended == [0.05, 0.1, 0.15]
    calls.close()
    assert ended[3:] == [1e12]


def test_a_future_cannot_be_cancelled_and_a_late_answer_does_no_harm() -> None:
    line = Line()
    calls = made(line)
    future = calls.send("x", "op", {}, 0.02)
    assert not future.cancel()
    assert isinstance(future.exception(SECONDS), NoAnswerError)
    calls.take_answers(Answer(line.requests[0].id).encode())
    assert calls.bad == 0


# ── the other side ───────────────────────────────────────────────────────────────────────────────


class Work:
    """A worker that is started, and asked the same operations again and again."""

    def __init__(
        self, line: Line, operations: Operations, settle: Callable[[], None] | None = None
    ) -> None:
        self._operations = operations
        self.worker = Worker(line.publish, settle)
        self.worker.start()

    def take(self, payload: bytes) -> None:
        self.worker.take(payload, lambda node: self._operations)

    def stop(self) -> None:
        self.worker.stop()


def asked(id: str, op: str = "op", seconds: float = SECONDS) -> bytes:
    return ControlRequest(id, op, {}, time.time() + seconds, ANSWERS).encode()


def test_too_much_work_is_refused() -> None:
    line, release, begun = Line(), threading.Event(), threading.Event()
    worker = Work(line, {"op": lambda body: {"was": begun.set() or release.wait(SECONDS)}})
    worker.take(asked("first"))
    assert begun.wait(SECONDS)
    for number in range(MOST_WAITING + 1):
        worker.take(asked(str(number)))
    assert [answer.id for answer in line.answers] == [str(MOST_WAITING)]
    release.set()
    eventually(lambda: len(line.sent) == MOST_WAITING + 2)
    worker.stop()


def test_only_the_last_answers_are_remembered() -> None:
    line, done = Line(), []
    worker = Work(line, {"op": lambda body: done.append(1) or {}})
    for number in range(MOST_REMEMBERED + 1):
        worker.take(asked(str(number)))
    for number in (MOST_REMEMBERED, 0):
        worker.take(asked(str(number)))
    eventually(lambda: len(line.sent) == MOST_REMEMBERED + 3)
    assert len(done) == MOST_REMEMBERED + 2
    worker.stop()


def test_answers_that_cannot_be_sent_do_not_end_the_work() -> None:
    line = Line()
    worker = Work(line, {"op": lambda body: {}})
    line.full = True
    worker.take(asked("1"))
    worker.take(b"rubbish")
    eventually(lambda: worker.worker._answers._kept)
    line.full = False
    worker.take(asked("2"))
    eventually(lambda: [answer.id for answer in line.answers] == ["2"])
    worker.stop()
    assert worker.worker.bad == 1


@pytest.mark.parametrize("seconds", [0.0, -5.0])
def test_a_request_after_its_deadline_is_answered_with_an_error(seconds: float) -> None:
    line = Line()
    worker = Work(line, {"op": lambda body: {}})
    worker.take(asked("1", seconds=seconds))
    eventually(lambda: line.sent)
    assert "deadline" in line.answers[0].error
    worker.stop()


# ── many requests settled together ───────────────────────────────────────────────────────────────


class Disk:
    """What operations did, and how much of it was settled when; the first operation is held up."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()
        self.done = 0
        self.settled: list[int] = []
        self.broken: Exception | None = None

    def operation(self, body: dict[str, object]) -> dict[str, object]:
        self.begun.set()
        assert self.release.wait(SECONDS)
        self.done += 1
        return {"n": self.done}

    def settle(self) -> None:
        if self.broken is not None:
            raise self.broken
        self.settled.append(self.done)


def held_up(line: Line, disk: Disk, *ids: str) -> Work:
    """All requests wait while the first is carried out; then they are let go."""
    worker = Work(line, {"op": disk.operation}, disk.settle)
    worker.take(asked("first"))
    assert disk.begun.wait(SECONDS)
    for id in ids:
        worker.take(asked(id))
    disk.release.set()
    eventually(lambda: len(line.answers) == len(ids) + 1)
    return worker


def test_what_waits_is_settled_once_and_answered_in_order_afterwards() -> None:
    line, disk = Line(), Disk()
    ids = [str(number) for number in range(100)]
    worker = held_up(line, disk, *ids)
    assert [answer.id for answer in line.answers] == ["first", *ids]
    assert disk.settled == [1, 101]
    assert len(line.sent) == 2, "answers to one asker travel together"
    worker.stop()


def test_no_more_than_so_many_are_settled_together() -> None:
    line, disk = Line(), Disk()
    worker = held_up(line, disk, *map(str, range(MOST_TOGETHER + 1)))
    assert disk.settled == [1, MOST_TOGETHER + 1, MOST_TOGETHER + 2]
    worker.stop()


def test_one_request_twice_among_those_settled_together_is_done_once() -> None:
    line, disk = Line(), Disk()
    worker = held_up(line, disk, "a", "b", "a")
    assert [(a.id, a.body["n"]) for a in line.answers[1:]] == [("a", 2), ("b", 3), ("a", 2)]
    worker.stop()


@pytest.mark.parametrize("broken", [DataError("the disk is full"), OSError("no disk")])
def test_what_cannot_be_settled_has_failed(broken: Exception) -> None:
    line, disk = Line(), Disk()
    disk.broken = broken
    worker = held_up(line, disk, "a", "b")
    assert [answer.ok for answer in line.answers] == [False] * 3
    assert all(str(broken.args[0]) in answer.error for answer in line.answers)
    disk.broken = None
    worker.take(asked("c"))
    eventually(lambda: len(line.answers) == 4)
    assert line.answers[3].ok
    worker.stop()


def test_nothing_is_settled_for_requests_that_failed() -> None:
    line, disk = Line(), Disk()
    worker = Work(line, {}, disk.settle)
    worker.take(asked("1"))
    eventually(lambda: line.sent)
    assert "no operation" in line.answers[0].error
    assert disk.settled == []
    worker.stop()


def test_answers_too_large_to_be_remembered_are_sent() -> None:
    line, begun, release = Line(), threading.Event(), threading.Event()

    def operation(body: dict[str, object]) -> dict[str, object]:
        begun.set()
        assert release.wait(SECONDS)
        return {"x": "x" * (7 << 20)}

    worker = Work(line, {"op": operation}, lambda: None)
    for number in range(4):
        worker.take(asked(str(number)))
    assert begun.wait(SECONDS)
    release.set()
    eventually(lambda: len(line.sent) == 4)
    assert [len(answer.body["x"]) for answer in line.answers] == [7 << 20] * 4
    worker.stop()


# ── nodes that share a topic ─────────────────────────────────────────────────────────────────────


def test_a_request_for_several_nodes_has_a_part_for_each() -> None:
    line = Line()
    parts = {f"node-{n}": {"n": n} for n in range(100)}
    (future,) = made(line).send_all([OutgoingRequest("to/first", "op", {"all": 1}, parts)], SECONDS)
    (request,) = line.requests
    assert request.nodes == parts
    assert request.content("node-7") == {"all": 1, "n": 7}
    assert not future.done()


def test_what_nobody_answers_says_which_nodes_were_asked() -> None:
    asks = [
        OutgoingRequest("to/first", "op", {}, {n: {} for n in nodes}) for nodes in ("c", "abcdef")
    ]
    one, many = made(Line()).send_all(asks, 0.01)
    assert "for c within" in str(one.exception(SECONDS))
    assert "for a, b, c and 3 more within" in str(many.exception(SECONDS))


def group(id: str, nodes: str, op: str = "op") -> bytes:
    parts = {node: {"own": node} for node in nodes}
    return ControlRequest(id, op, {"all": 1}, time.time() + SECONDS, ANSWERS, parts).encode()


def test_a_request_for_several_is_carried_out_by_each_settled_once_and_answered_once() -> None:
    line, settled = Line(), []
    worker = Worker(line.publish, lambda: settled.append(len(done)))
    done: list[dict[str, object]] = []

    def operation(body: dict[str, object]) -> dict[str, object]:
        done.append(body)
        if body["own"] == "b":
            raise DataError("not here", "go away")
        return {"said": "c"} if body["own"] == "c" else {}

    known: dict[str, Operations] = {name: {"op": operation} for name in "abc"}
    worker.start()
    for _ in range(2):
        worker.take(group("1", "abxc"), known.get)
    worker.take(group("2", "xy"), known.get)
    eventually(lambda: len(line.answers) == 2)
    worker.stop()
    assert [body["own"] for body in done] == ["a", "b", "c"], "the same request is done once"
    assert [body["all"] for body in done] == [1, 1, 1]
    assert settled[0] == 3
    first, again = line.answers
    assert first == again
    assert first.id == "1", "what is for none of us is left to others"
    outcomes = outcomes_of(first.body, "abxc")
    assert (outcomes["a"], outcomes["c"]) == ({}, {"said": "c"})
    assert isinstance(outcomes["x"], NoAnswerError)
    assert isinstance(outcomes["b"], ControlError)
    assert str(outcomes["b"]) == str(ControlError("not here", "go away"))


def test_all_of_a_group_fail_with_what_keeps_them_from_settling() -> None:
    line = Line()

    def settle() -> None:
        raise DataError("the disk is full")

    worker = Worker(line.publish, settle)
    worker.start()
    worker.take(group("1", "ab"), lambda node: {"op": lambda body: {}})
    eventually(lambda: line.answers)
    worker.stop()
    assert (line.answers[0].ok, line.answers[0].error) == (False, "the disk is full")


@pytest.mark.parametrize(
    "body",
    [{"failed": []}, {"failed": {"a": {}}}, {"failed": {"a": 1}}, {"left": {}}, {"said": {"a": 1}}],
)
def test_an_answer_of_a_group_that_is_none_fails_all_of_it(body: dict[str, object]) -> None:
    found = outcomes_of(body, "ab")
    assert all(isinstance(outcome, ControlError) for outcome in found.values())
    assert not any(isinstance(outcome, NoAnswerError) for outcome in found.values())
