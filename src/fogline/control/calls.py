"""Requests that wait for their answers, any number at once.

Every future ends: with the answer's body, with the error the other side answered, with
`NoAnswerError` at its deadline, or with `ControlError` when this side is closed. A request made
while the broker is unreachable is sent when it is back, if that is still in time.
"""

from __future__ import annotations

import heapq
import itertools
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from fogline.broker import Message
from fogline.common.errors import DataError, FoglineError
from fogline.control.connection import ControlConnection
from fogline.control.envelope import Answer, ControlRequest, NodePart
from fogline.control.errors import ControlError, NoAnswerError

Body = dict[str, Any]

LONGEST_WAIT = 3600.0


class OutgoingRequest(NamedTuple):
    """What is asked, and on which topic; of which nodes, where several share it, with what each of
    them gets besides the body."""

    topic: str
    op: str
    body: NodePart
    nodes: Mapping[str, NodePart] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class _Call:
    timeout: float
    ask: OutgoingRequest
    payload: bytes
    future: Future[Body]
    due: float = field(init=False)

    def __post_init__(self) -> None:
        self.due = time.monotonic() + self.timeout


class Calls:
    """What one side asks; answers come to its topic `answers`."""

    def __init__(self, answers: str, connection: ControlConnection) -> None:
        self.bad = 0
        """Messages that are no answers."""
        self._answers = answers
        self._connection = connection
        self._open: dict[str, _Call] = {}
        self._unsent: dict[str, _Call] = {}
        """Of these, what waits for a connection."""
        self._dues: list[tuple[float, str]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._ours, self._numbers = secrets.token_hex(8), itertools.count(1)
        """Ids of requests: a name that nobody else has, and numbers."""

    def send(self, topic: str, op: str, body: Mapping[str, Any], timeout: float) -> Future[Body]:
        """Never waits long. What cannot be sent fails the future, nothing is raised."""
        return self.send_all([OutgoingRequest(topic, op, body)], timeout)[0]

    def send_all(self, asks: Iterable[OutgoingRequest], timeout: float) -> list[Future[Body]]:
        """Like `send` for each of them, but on their way all at once."""
        futures = [self._add(ask, timeout) for ask in asks]
        if self._connection.connected:
            self._dispatch()
        return futures

    def connected(self) -> None:
        """Sends what was waiting for a connection."""
        self._dispatch()

    def take_answers(self, payload: bytes) -> None:
        """An answer that nobody waits for, or no longer, is ignored."""
        try:
            answers = Answer.decode_all(payload)
        except DataError:
            self.bad += 1
            return
        for answer in answers:
            self._end(answer)

    def _end(self, answer: Answer) -> None:
        if answer.ok:
            if (call := self._take(answer.id)) is not None:
                call.future.set_result(dict(answer.body))
        else:
            self._fail(answer.id, ControlError(answer.error, answer.hint))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            ids = list(self._open)
        for id in ids:
            self._fail(id, ControlError("closed before the answer came"))

    def _add(self, ask: OutgoingRequest, timeout: float) -> Future[Body]:
        future: Future[Body] = Future()
        future.set_running_or_notify_cancel()
        id = f"{self._ours}-{next(self._numbers)}"
        deadline = time.time() + timeout
        try:
            request = ControlRequest(id, ask.op, ask.body, deadline, self._answers, ask.nodes)
            self._keep(id, _Call(timeout, ask, request.encode(), future))
        except FoglineError as error:
            future.set_exception(_as_control_error(error))
        return future

    def _keep(self, id: str, call: _Call) -> None:
        with self._changed:
            if self._closed:
                raise ControlError("nothing can be asked after closing")
            self._open[id] = self._unsent[id] = call
            heapq.heappush(self._dues, (call.due, id))
            if self._dues[0][1] == id:
                self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._expire, name="control deadlines", daemon=True
                )
                self._thread.start()

    def _dispatch(self) -> None:
        with self._changed:
            calls, self._unsent = self._unsent, {}
        if not calls:
            return
        try:
            self._connection.publish(*(Message(c.ask.topic, c.payload) for c in calls.values()))
        except FoglineError as error:
            for id in calls:
                self._fail(id, _as_control_error(error))

    def _take(self, id: str) -> _Call | None:
        with self._changed:
            self._unsent.pop(id, None)
            return self._open.pop(id, None)

    def _fail(self, id: str, error: ControlError) -> None:
        if (call := self._take(id)) is not None:
            call.future.set_exception(error)

    # ── the thread of the deadlines ──────────────────────────────────────────────────────────────

    def _expire(self) -> None:
        while (late := self._next_late()) is not None:
            for id in late:
                if (call := self._take(id)) is not None:
                    call.future.set_exception(self._no_answer(call))

    def _next_late(self) -> list[str] | None:
        """Waits for the next deadlines to pass; nothing when this side is closed."""
        with self._changed:
            while not self._closed:
                late = self._pop_late()
                if late:
                    return late
                left = self._dues[0][0] - time.monotonic() if self._dues else LONGEST_WAIT
                self._changed.wait(min(left, LONGEST_WAIT))
        return None

    def _pop_late(self) -> list[str]:
        late, now = [], time.monotonic()
        while self._dues and (self._dues[0][0] <= now or self._dues[0][1] not in self._open):
            id = heapq.heappop(self._dues)[1]
            if id in self._open:
                late.append(id)
        return late

    def _no_answer(self, call: _Call) -> NoAnswerError:
        why = self._connection.problem
        hint = f"the control broker is unreachable: {why}" if why else "is the other side running?"
        what = f"{call.ask.op!r} on {call.ask.topic}"
        what += f" for {_list_names(list(call.ask.nodes))}" if call.ask.nodes else ""
        return NoAnswerError(f"no answer to {what} within {call.timeout:g} s", hint)


def _list_names(nodes: list[str]) -> str:
    return ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


def _as_control_error(error: FoglineError) -> ControlError:
    if isinstance(error, ControlError):
        return error
    made = ControlError(f"the request cannot be sent: {error.message}", error.hint)
    made.__cause__ = error
    return made
