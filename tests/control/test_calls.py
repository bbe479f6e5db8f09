"""Requests that wait, with a connection made up; and work that is too much."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from fogline.broker import BrokerTimeoutError, Message, Ticket
from fogline.control import ControlError, NoAnswerError, topics
from fogline.control.calls import Ask, Calls
from fogline.control.envelope import REQUESTS, Answer, Request, joined
from fogline.control.worker import (
    MOST_REMEMBERED,
    MOST_TOGETHER,
    MOST_WAITING,
    Operations,
    Worker,
)
from fogline.errors import DataError
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

    def publish(self, *messages: Message) -> Ticket:
        if self.full:
            raise BrokerTimeoutError("no room")
        self.sent += messages
        self.published += 1
        return Ticket(0)

    @property
    def requests(self) -> list[Request]:
        return [Request.decode(message.payload) for message in self.sent]

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
        calls.answered(Answer(request.id, body=request.body).encode())
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
    futures = calls.send_all([Ask(f"to/{n}", "op", {"n": n}) for n in range(300)], SECONDS)
    assert line.published == 1
    assert [message.topic for message in line.sent] == [f"to/{n}" for n in range(300)]
    for request in reversed(line.requests):
        calls.answered(Answer(request.id, body=request.body).encode())
    assert [future.result(0)["n"] for future in futures] == list(range(300))
    assert calls.send_all([], SECONDS) == []
    assert line.published == 1


def test_of_many_requests_only_those_fail_that_cannot_be_sent() -> None:
    line = Line()
    huge, broken = {"x": "x" * (9 << 20)}, {"x": object()}
    bodies = [{}, huge, {}, broken, {}]
    futures = made(line).send_all([Ask("x", "op", body) for body in bodies], SECONDS)
    assert [isinstance(f.exception(0), ControlError) if f.done() else None for f in futures] == [
        *(None, True, None, True, None)
    ]
    assert len(line.sent) == 3


def test_without_room_all_of_many_fail_at_once() -> None:
    line = Line()
    line.full = True
    calls = made(line)
    for future in calls.send_all([Ask("x", "op", {})] * 3, SECONDS):
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
    calls.answered(Answer(line.requests[0].id).encode())
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
    return Request(id, op, {}, time.time() + seconds, ANSWERS).encode()


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


def test_requests_to_nodes_that_share_a_topic_go_together() -> None:
    line = Line()
    calls = made(line)
    asks = [Ask("to/first", "op", {"n": n}, f"node-{n}") for n in range(100)]
    futures = calls.send_all([*asks, Ask("to/alone", "op", {"n": 100})], SECONDS)
    assert sorted(message.topic for message in line.sent) == ["to/alone", "to/first"]
    requests = [r for message in line.sent for r in Request.decode_all(message.payload)]
    assert {r.node: r.body["n"] for r in requests} == {a.node: a.body["n"] for a in asks} | {
        "": 100
    }
    for request in requests:
        calls.answered(Answer(request.id, body=request.body).encode())
    assert [future.result(0)["n"] for future in futures] == list(range(101))


def test_what_no_node_answers_says_which_node_was_asked() -> None:
    (future,) = made(Line()).send_all([Ask("to/first", "op", {}, "third")], 0.01)
    assert "for third" in str(future.exception(SECONDS))


def test_requests_that_came_together_are_settled_together() -> None:
    line, settled = Line(), []
    worker = Worker(line.publish, lambda: settled.append(len(done)))
    done: list[str] = []
    known = {
        name: {"op": lambda body, name=name: done.append(name) or {}}  # type: ignore[func-returns-value]
        for name in "abc"
    }
    requests = [
        Request(str(n), "op", {}, time.time() + SECONDS, ANSWERS, node)
        for n, node in enumerate("abxc")
    ]
    worker.start()
    worker.take(joined((r.encode() for r in requests), REQUESTS)[0], known.get)
    eventually(lambda: len(line.answers) == 3)
    worker.stop()
    assert (done, settled) == (["a", "b", "c"], [3])
    assert {answer.id for answer in line.answers} == {"0", "1", "3"}, "x is left to others"
