"""Requests that wait, with a connection made up; and work that is too much."""

from __future__ import annotations

import threading
import time

import pytest

from fogline.broker import BrokerTimeoutError, Message, Ticket
from fogline.control import ControlError, NoAnswerError, topics
from fogline.control.calls import Calls
from fogline.control.envelope import Answer, Request
from fogline.control.worker import MOST_REMEMBERED, MOST_WAITING, Worker
from tests.control.worlds import SECONDS, eventually

ANSWERS = topics.answers("me")


class Line:
    """Stands for a connection: keeps what is published."""

    def __init__(self, connected: bool = True) -> None:
        self.connected = connected
        self.full = False
        self.sent: list[Message] = []

    @property
    def problem(self) -> str:
        return "" if self.connected else "the cable is cut"

    def publish(self, message: Message) -> Ticket:
        if self.full:
            raise BrokerTimeoutError("no room")
        self.sent.append(message)
        return Ticket(0)

    @property
    def requests(self) -> list[Request]:
        return [Request.decode(message.payload) for message in self.sent]

    @property
    def answers(self) -> list[Answer]:
        return [Answer.decode(message.payload) for message in self.sent]


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


def asked(id: str, op: str = "op", seconds: float = SECONDS) -> bytes:
    return Request(id, op, {}, time.time() + seconds, ANSWERS).encode()


def test_too_much_work_is_refused() -> None:
    line, release, begun = Line(), threading.Event(), threading.Event()
    worker = Worker(
        {"op": lambda body: {"was": begun.set() or release.wait(SECONDS)}}, line.publish
    )
    worker.start()
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
    worker = Worker({"op": lambda body: done.append(1) or {}}, line.publish)
    worker.start()
    for number in range(MOST_REMEMBERED + 1):
        worker.take(asked(str(number)))
    for number in (MOST_REMEMBERED, 0):
        worker.take(asked(str(number)))
    eventually(lambda: len(line.sent) == MOST_REMEMBERED + 3)
    assert len(done) == MOST_REMEMBERED + 2
    worker.stop()


def test_answers_that_cannot_be_sent_do_not_end_the_work() -> None:
    line = Line()
    worker = Worker({"op": lambda body: {}}, line.publish)
    worker.start()
    line.full = True
    worker.take(asked("1"))
    worker.take(b"rubbish")
    eventually(lambda: worker._answers._kept)
    line.full = False
    worker.take(asked("2"))
    eventually(lambda: [answer.id for answer in line.answers] == ["2"])
    worker.stop()
    assert worker.bad == 1


@pytest.mark.parametrize("seconds", [0.0, -5.0])
def test_a_request_after_its_deadline_is_answered_with_an_error(seconds: float) -> None:
    line = Line()
    worker = Worker({"op": lambda body: {}}, line.publish)
    worker.start()
    worker.take(asked("1", seconds=seconds))
    eventually(lambda: line.sent)
    assert "deadline" in line.answers[0].error
    worker.stop()
