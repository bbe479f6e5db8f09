"""Carries out requests one after the other, in the order they came, in a thread of its own.

Every request that can be read gets an answer, whatever its operation does. One that comes again
(the same id and asker) is not carried out again as long as its answer is remembered: it gets the
same answer.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from fogline.broker import BrokerError, Message
from fogline.control.envelope import Answer, Request
from fogline.errors import DataError, FoglineError

Operation = Callable[[dict[str, Any]], dict[str, Any]]

MOST_WAITING = 1000
MOST_REMEMBERED = 256
MOST_REMEMBERED_BYTES = 16 << 20
STOP_SECONDS = 2.0

_log = logging.getLogger(__name__)


class Worker:
    """`start`, then `take` from any thread, then `stop`; what has not begun then is dropped."""

    def __init__(
        self, operations: Mapping[str, Operation], publish: Callable[[Message], object]
    ) -> None:
        self.bad = 0
        """Messages that are no requests."""
        self._operations = dict(operations)
        self._publish = publish
        self._waiting: queue.Queue[Request | None] = queue.Queue()
        self._answers = Answers()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control requests", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def take(self, payload: bytes) -> None:
        """Never waits."""
        try:
            request = Request.decode(payload)
        except DataError:
            self.bad += 1
            return
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(request)
        else:
            busy = Answer.failed(request.id, f"{MOST_WAITING} requests wait already", "try later")
            self._send(request, busy.encode())

    def stop(self) -> None:
        """Waits a little for the operation that is under way."""
        self._stopping.set()
        self._waiting.put(None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while (request := self._waiting.get()) is not None and not self._stopping.is_set():
            payload = self._answers.get(request)
            if payload is None:
                payload = self._encoded(self._carry_out(request))
                self._answers.add(request, payload)
            self._send(request, payload)

    def _carry_out(self, request: Request) -> Answer:
        late = time.time() - request.deadline
        if late >= 0:
            text = f"{request.op!r} was not begun: its deadline passed {late:.1f} s ago"
            return Answer.failed(request.id, text, "is one of the clocks wrong?")
        operation = self._operations.get(request.op)
        if operation is None:
            known = ", ".join(sorted(self._operations)) or "none"
            return Answer.failed(request.id, f"no operation {request.op!r}", f"there are: {known}")
        return _called(operation, request)

    def _encoded(self, answer: Answer) -> bytes:
        try:
            return answer.encode()
        except DataError as error:
            text = f"internal error: the answer cannot be sent: {error}"
            return Answer.failed(answer.id, text).encode()

    def _send(self, request: Request, payload: bytes) -> None:
        # Who asked notices by its deadline.
        with contextlib.suppress(BrokerError):
            self._publish(Message(request.answer, payload))


def _called(operation: Operation, request: Request) -> Answer:
    try:
        body = operation(dict(request.body))
        if not isinstance(body, dict):
            raise TypeError(f"{request.op!r} gave {type(body).__name__}, not an object")
        return Answer(request.id, body=body)
    except FoglineError as error:
        return Answer.failed(request.id, error.message, error.hint)
    except (Exception, SystemExit) as error:
        _log.exception("operation %r failed", request.op)
        return Answer.failed(request.id, f"internal error: {type(error).__name__}: {error}")


class Answers:
    """The last answers, by who asked and the request's id; bounded in number and bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._bytes = 0

    def get(self, request: Request) -> bytes | None:
        return self._kept.get((request.answer, request.id))

    def add(self, request: Request, payload: bytes) -> None:
        self._kept[request.answer, request.id] = payload
        self._bytes += len(payload)
        while len(self._kept) > MOST_REMEMBERED or self._bytes > MOST_REMEMBERED_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1])
