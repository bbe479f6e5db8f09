"""A few threads that do the work of many: each task in turn, none by two threads at once."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

RunStep = Callable[[], bool]
"""Does a little work and returns whether there was any."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.03
_PAUSE_EACH = 0.0004
_EARLY = 0.15
"""A task may come by this part of its pause too early: many are then done at one awakening."""
_log = logging.getLogger(__name__)


class _Task:
    def __init__(self, step: RunStep) -> None:
        self.step = step
        self.pause = _SHORTEST_PAUSE
        self.running = threading.Lock()
        self.removed = False


class StepScheduler:
    """`start` once, `add` and `remove` from any thread, then `stop`."""

    def __init__(self, threads: int = 1) -> None:
        self._queue: list[tuple[float, int, _Task]] = []
        self._tasks: dict[RunStep, _Task] = {}
        self._number = itertools.count()
        self._changed = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._run, name=f"work-{i}", daemon=True)
            for i in range(threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def add(self, step: RunStep) -> None:
        """From now on it is called again and again, with longer pauses while it has no work."""
        task = _Task(step)
        with self._changed:
            self._tasks[step] = task
            self._push(task, 0.0)

    def remove(self, step: RunStep) -> None:
        """It is not called any more, not even by now."""
        with self._changed:
            task = self._tasks.pop(step, None)
        if task is not None:
            task.removed = True
            with task.running:
                pass

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            with contextlib.suppress(RuntimeError):
                thread.join(10)

    def _push(self, task: _Task, pause: float) -> None:
        entry = (time.monotonic() + pause, next(self._number), task)
        heapq.heappush(self._queue, entry)
        if self._queue[0] is entry:
            # Whoever waits does so for the one that was first until now.
            self._changed.notify()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            with task.running:
                busy = not task.removed and self._perform(task)
            longest = _LONGEST_PAUSE + _PAUSE_EACH * len(self._tasks)
            task.pause = _SHORTEST_PAUSE if busy else min(task.pause * 1.3, longest)
            if not task.removed:
                with self._changed:
                    self._push(task, 0.0 if busy else task.pause)

    def _next(self) -> _Task | None:
        with self._changed:
            while not self._stopping:
                left = self._queue[0][0] - time.monotonic() if self._queue else None
                if left is not None and left <= _EARLY * self._queue[0][2].pause:
                    return heapq.heappop(self._queue)[2]
                self._changed.wait(left)
        return None

    def _perform(self, task: _Task) -> bool:
        try:
            return task.step()
        except Exception:
            _log.exception("a part of the gateway failed; it is tried again")
            task.pause = 1.0
            return False
