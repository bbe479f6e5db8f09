"""Carries out requests one after the other, in the order they came, in a thread of its own.

Every request that can be read gets an answer, whatever its operation does. One that comes again
(the same id and asker) is not carried out again as long as its answer is remembered: it gets the
same answer.

Operations may leave the last part of their work to `settle`, which is done once for all requests
that wait: many of them then need the disk no more often than one does.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fogline.broker import BrokerError, Message
from fogline.common.errors import DataError, FoglineError
from fogline.control.envelope import Answer, ControlRequest, join_answers
from fogline.control.groups import answer_of

OperationHandler = Callable[[dict[str, Any]], dict[str, Any]]
Operations = Mapping[str, OperationHandler]
_Key = tuple[str, str]
"""Who asked, by the topic of the answer, and the request's id."""

MOST_WAITING = 1000
MOST_TOGETHER = 256
"""Requests that are settled together."""
MOST_REMEMBERED = 256
MOST_REMEMBERED_BYTES = 16 << 20
STOP_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    request: ControlRequest
    asked: Mapping[str, Operations]
    """What those can do who carry it out; without a name for one that names no nodes."""

    @property
    def key(self) -> _Key:
        return self.request.answer, self.request.id


class Worker:
    """`start`, then `take` from any thread, then `stop`; what has not begun then is dropped.

    `publish` takes any number of messages. `settle` is called between operations and their
    answers. When it raises they have failed.
    """

    def __init__(
        self,
        publish: Callable[..., object],
        settle: Callable[[], None] | None = None,
    ) -> None:
        self.bad = 0
        """Messages that are no requests."""
        self._publish = publish
        self._settle = settle
        self._waiting: queue.Queue[_Task | None] = queue.Queue()
        self._answers = AnswerCache()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control requests", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def take(self, payload: bytes, operations_of: Callable[[str], Operations | None]) -> None:
        """Never waits. `operations_of` gives what a node can do that a request names, or who is
        asked by one that names none; None: that is left to others."""
        try:
            request = ControlRequest.decode(payload)
        except DataError:
            self.bad += 1
            return
        found = {name: operations_of(name) for name in request.nodes or ("",)}
        asked = {name: known for name, known in found.items() if known is not None}
        if not asked:
            return
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(_Task(request, asked))
        else:
            busy = Answer.failure(request.id, f"{MOST_WAITING} requests wait already", "try later")
            self._send(Message(request.answer, busy.encode()))

    def stop(self) -> None:
        """Waits a little for the operation that is under way."""
        self._stopping.set()
        self._waiting.put(None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None and not self._stopping.is_set():
            tasks = self._with_those_behind(first)
            payloads = self._payloads(tasks)
            self._send(*_messages(tasks, payloads))

    def _with_those_behind(self, first: _Task) -> list[_Task]:
        """What waits besides and can be settled with the first."""
        tasks = [first]
        while self._settle and len(tasks) < MOST_TOGETHER:
            try:
                more = self._waiting.get_nowait()
            except queue.Empty:
                break
            if more is None:
                self._waiting.put(None)
                break
            tasks.append(more)
        return tasks

    def _payloads(self, tasks: Iterable[_Task]) -> dict[_Key, bytes]:
        """The answers to all of them; a request that comes again gets the one that is known."""
        known: dict[_Key, bytes] = {}
        fresh: dict[_Key, Answer] = {}
        for task in tasks:
            key = task.key
            if (payload := self._answers.get(key)) is not None:
                known[key] = payload
            elif key not in fresh:
                fresh[key] = _carried_out(task)
        made = {key: _encode_answer(answer) for key, answer in self._settle_answers(fresh).items()}
        self._answers.add(made)
        return known | made

    def _settle_answers(self, answers: dict[_Key, Answer]) -> dict[_Key, Answer]:
        if self._settle is None or not any(answer.ok for answer in answers.values()):
            return answers
        try:
            self._settle()
        except Exception as error:
            return {key: _make_failure(a, error) if a.ok else a for key, a in answers.items()}
        return answers

    def _send(self, *answers: Message) -> None:
        # Who asked notices by its deadline.
        with contextlib.suppress(BrokerError):
            self._publish(*answers)


def _messages(tasks: Iterable[_Task], payloads: Mapping[_Key, bytes]) -> Iterable[Message]:
    """What goes to one asker goes together."""
    askers: dict[str, list[bytes]] = {}
    for task in tasks:
        askers.setdefault(task.request.answer, []).append(payloads[task.key])
    for topic, answers in askers.items():
        yield from (Message(topic, payload) for payload in join_answers(answers))


def _carried_out(task: _Task) -> Answer:
    request = task.request
    late = time.time() - request.deadline
    if late >= 0:
        text = f"{request.op!r} was not begun: its deadline passed {late:.1f} s ago"
        return Answer.failure(request.id, text, "is one of the clocks wrong?")
    done = Answer(request.id)
    answers = {name: _answer(request, name, known, done) for name, known in task.asked.items()}
    if not request.nodes:
        return answers[""]
    return answer_of(request.id, answers, request.nodes.keys() - answers.keys())


def _answer(request: ControlRequest, node: str, operations: Operations, done: Answer) -> Answer:
    """`done` is that of everybody who has nothing to say."""
    operation = operations.get(request.op)
    if operation is None:
        known = ", ".join(sorted(operations)) or "none"
        return Answer.failure(request.id, f"no operation {request.op!r}", f"there are: {known}")
    try:
        body = operation(request.content(node))
        if not isinstance(body, dict):
            raise TypeError(f"{request.op!r} gave {type(body).__name__}, not an object")
        return Answer(request.id, body=body) if body else done
    except (Exception, SystemExit) as error:
        return _make_failure(Answer(request.id), error)


def _make_failure(answer: Answer, error: BaseException) -> Answer:
    if isinstance(error, FoglineError):
        return Answer.failure(answer.id, error.message, error.hint)
    _log.error("a request failed", exc_info=error)
    return Answer.failure(answer.id, f"internal error: {type(error).__name__}: {error}")


def _encode_answer(answer: Answer) -> bytes:
    try:
        return answer.encode()
    except DataError as error:
        text = f"internal error: the answer cannot be sent: {error}"
        return Answer.failure(answer.id, text).encode()


class AnswerCache:
    """The last answers, by who asked and the request's id; bounded in number and bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, key: _Key) -> bytes | None:
        return self._kept.get(key)

    def add(self, answers: Mapping[_Key, bytes]) -> None:
        self._kept.update(answers)
        self._bytes += sum(map(len, answers.values()))
        while len(self._kept) > MOST_REMEMBERED or self._bytes > MOST_REMEMBERED_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1])
