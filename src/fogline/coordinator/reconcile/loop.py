"""The control loop's thread: looks, decides, sends, hears answers, and goes on whatever happens."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fogline.common.errors import FoglineError
from fogline.control.groups import Outcome
from fogline.coordinator.pipelines.ports import ControlPort
from fogline.coordinator.reconcile.answers import absorb
from fogline.coordinator.reconcile.command_batches import batch_commands
from fogline.coordinator.reconcile.decide import decide
from fogline.coordinator.reconcile.planner import Nodes, Planner
from fogline.coordinator.reconcile.state import (
    DEADLINE_SECONDS,
    DONE,
    LOST,
    REFUSED,
    Command,
    CommandResult,
    Look,
    LoopEvent,
    Memory,
)
from fogline.coordinator.repository.store import Entry, Store

LOOK_SECONDS = 0.5
REST_SHARE, LONGEST_REST = 9, 0.1
"""After a round the loop rests so many times as long as that took, and so many seconds at most:
however much there is to hear, looking at everything takes a part of the time only, and what comes
meanwhile is taken together. When all that was asked is answered, it goes on at once."""

LOG_SECONDS = 0.25
"""What happened is written down no more often: the store waits for the disk each time."""

MOST_SHOWN = 20
"""Nodes and jobs in a line of the event log."""

_say = logging.getLogger(__name__)


class EventCounter:
    """Counts what happens. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0

    @property
    def number(self) -> int:
        return self._number

    def add(self) -> None:
        """Something may be different now."""
        with self._changed:
            self._number += 1
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Until there is more than was seen, or so long."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != seen, seconds)


class Outstanding:
    """Commands that have no answer yet. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0
        self._over = False

    def add(self, commands: int = 1) -> None:
        with self._changed:
            self._open += commands

    def note_answers(self, commands: int = 1) -> None:
        with self._changed:
            self._open -= commands
            if not self._open:
                self._end()

    def look(self) -> None:
        """The answers until now are taken in."""
        with self._changed:
            self._over = False

    def rest(self, seconds: float) -> None:
        """Waits so long; not when since the last look the last open command was answered, or
        somebody was in a hurry."""
        with self._changed:
            self._changed.wait_for(lambda: self._over, seconds)

    def hurry(self) -> None:
        """No rest before the next look."""
        with self._changed:
            self._end()

    def _end(self) -> None:
        self._over = True
        self._changed.notify_all()


class Loop:
    """`start`, then `stop`. It may be woken from any thread.

    `record` gets every event, in order: `decide.replay` makes the same commands of them again.
    """

    def __init__(
        self,
        planner: Planner,
        nodes: Nodes,
        control: ControlPort,
        store: Store,
        clock: Callable[[], float] = time.time,
        seed: int = 0,
        record: Callable[[LoopEvent], None] = lambda event: None,
    ) -> None:
        self._planner, self._nodes, self._control, self._store = planner, nodes, control, store
        self._clock, self._record = clock, record
        self.memory = Memory(seed)
        self.news = EventCounter()
        """Of what nodes report and answer."""
        self._rounds = self._sent_round = 0
        """How many have begun, and the last in which the nodes were sent all there was."""
        self._sent = threading.Condition()
        self.failures = 0
        self.problem = ""
        self._answers: queue.SimpleQueue[tuple[CommandResult, Command]] = queue.SimpleQueue()
        self._asked = Outstanding()
        self._states: dict[str, str] = {}
        self._entries: list[Entry] = []
        self._logged = float("-inf")
        self._woken, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="control loop", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something has changed: look when the rest is over."""
        self.news.add()
        if not self._woken.is_set():
            self._woken.set()

    def hurry(self, seconds: float = 0.0) -> None:
        """The desired state has changed: look at once. Waits up to so long until the nodes are
        notified: that goes before whatever else there is to do."""
        desired = self._rounds + 1
        self._woken.set()
        self._asked.hurry()
        if seconds and self.alive:
            with self._sent:
                self._sent.wait_for(lambda: self._sent_round >= desired, seconds)

    def stop(self) -> None:
        self._ended.set()
        self.hurry()
        if self._thread.is_alive():
            self._thread.join()
        self._write_log()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def round(self) -> None:
        """One turn: answers in, commands out."""
        self._rounds += 1
        self._take_answers()
        now = self._clock()
        heard = self._control.views()
        self._call_safely(lambda: self._nodes.remember(heard, now))
        views = self._nodes.views(heard)
        plan = self._planner.plan(views)
        self._note_states({name: view.state for name, view in views.items()}, now)
        self._record(Look(plan.desired, views, plan.order, now))
        commands, self.memory = decide(plan.desired, views, plan.order, self.memory, now)
        self._send(commands)
        with self._sent:
            self._sent_round = self._rounds
            self._sent.notify_all()
        if time.monotonic() - self._logged >= LOG_SECONDS:
            self._write_log()

    def _write_log(self) -> None:
        self._logged = time.monotonic()
        entries, self._entries = self._entries, []
        self._call_safely(lambda: self._store.log(entries))

    def _call_safely(self, call: Callable[[], None]) -> None:
        """What cannot be written down keeps no command from being sent."""
        try:
            call()
        except FoglineError as error:
            self._note_failure(error)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._woken.wait(LOOK_SECONDS)
            self._woken.clear()
            if self._ended.is_set():
                return
            before, begun = self.failures, time.monotonic()
            try:
                self.round()
            except Exception as error:
                self._note_failure(error)
                self._ended.wait(0.05)
            if self.failures == before:
                self.problem = ""
            self._asked.rest(min(LONGEST_REST, REST_SHARE * (time.monotonic() - begun)))

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        text = str(error) if isinstance(error, FoglineError) else repr(error)
        if text != self.problem:
            _say.error("the control loop goes on after: %s", text, exc_info=error)
        self.problem = text
        del self._entries[:-1000]

    def _take_answers(self) -> None:
        self._asked.look()
        came: list[tuple[CommandResult, Command]] = []
        while not self._answers.empty():
            came.append(self._answers.get())
            self._record(came[-1][0])
        self.memory = absorb(self.memory, *(answer for answer, _ in came))
        alike: dict[tuple[str, str], list[tuple[CommandResult, Command]]] = {}
        for answer, command in came:
            alike.setdefault((answer.outcome, answer.problem), []).append((answer, command))
        for (outcome, problem), group in alike.items():
            for body in _about(command for _, command in group):
                self._note(group[-1][0].at, outcome, body | _problem(problem))

    def _send(self, commands: Sequence[Command]) -> None:
        if not commands:
            return
        for body in _about(commands):
            self._note(self._clock(), "sent", body)
        self._asked.add(len(commands))
        for batch in batch_commands(commands):
            on_outcomes = partial(self._take_outcomes, batch.commands)
            try:
                control, seconds = self._control, DEADLINE_SECONDS
                control.send_each(batch.op, batch.body, batch.parts, seconds, on_outcomes)
            except Exception as error:
                on_outcomes(dict.fromkeys(batch.commands, error))

    def _take_outcomes(
        self, commands: Mapping[str, Command], outcomes: Mapping[str, Outcome]
    ) -> None:
        now = self._clock()
        for node, came in outcomes.items():
            command, outcome, problem = commands[node], DONE, ""
            if isinstance(came, BaseException):
                outcome = REFUSED if self._control.is_refusal(came) else LOST
                problem = str(came)
            self._answers.put((CommandResult(command.id, node, now, outcome, problem), command))
        self.wake()
        self._asked.note_answers(len(outcomes))

    def _note_states(self, states: Mapping[str, str], now: float) -> None:
        for name, state in states.items():
            if self._states.get(name) != state:
                self._note(now, "node", {"node": name, "state": state})
        self._states = dict(states)

    def _note(self, at: float, kind: str, body: dict[str, Any]) -> None:
        self._entries.append(Entry(at, kind, body))


def _about(commands: Iterable[Command]) -> Iterator[dict[str, Any]]:
    """For the log: what is asked of several nodes at once is one line."""
    by_op: dict[str, list[Command]] = {}
    for command in commands:
        by_op.setdefault(command.op, []).append(command)
    for op, group in by_op.items():
        nodes = [command.node for command in group]
        jobs = [job for command in group for job in command.jobs]
        event: dict[str, Any] = {"op": op, "nodes": nodes[:MOST_SHOWN], "jobs": jobs[:MOST_SHOWN]}
        yield event if len(jobs) <= MOST_SHOWN else event | {"of": len(jobs)}


def _problem(text: str) -> dict[str, str]:
    return {"problem": text} if text else {}
