"""Things done again and again in one thread: each every so often, and sooner when asked for."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

SHORTEST_PAUSE = 0.02
STOP_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Beat:
    """One such thing. It is due at once when it is made."""

    action: Callable[[], None]
    every: float
    due: float = 0.0
    last: float = float("-inf")
    problem: str = ""
    """Why it failed the last time; empty when it did not."""

    def hurry(self, now: float) -> None:
        """As soon as possible, but fifty times a second at most, however often this is called."""
        self.due = min(self.due, max(now, self.last + SHORTEST_PAUSE))

    def begin(self, now: float) -> None:
        """What hurries it from now on makes it run once more."""
        self.last, self.due = now, now + self.every

    def perform(self) -> None:
        try:
            self.action()
            self.problem = ""
        except Exception as error:
            if not self.problem:
                _log.exception("what is published regularly cannot be published")
            self.problem = f"{type(error).__name__}: {error}"


class Rhythm:
    """`start` once, `hurry` from any thread, then `stop`. Actions that raise are tried again.

    `after` is called when everything that was due at a time is done.
    """

    def __init__(self, *beats: Beat, after: Callable[[], None] = lambda: None) -> None:
        self._after = after
        self._numbers = itertools.count()
        self._queue: list[tuple[float, int, Beat]] = []
        """When beats are due. One that was hurried is in it twice; what is not its `due` any more
        does not count."""
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="control announcements", daemon=True)
        for beat in beats:
            self._push(beat)

    def start(self) -> None:
        self._thread.start()

    def hurry(self, *beats: Beat) -> None:
        with self._changed:
            for beat in beats:
                before = beat.due
                beat.hurry(time.monotonic())
                if beat.due != before:
                    self._push(beat)
            self._changed.notify_all()

    def stop(self) -> None:
        """Waits a little for what is being done."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def _push(self, beat: Beat) -> None:
        heapq.heappush(self._queue, (beat.due, next(self._numbers), beat))

    def _run(self) -> None:
        while beats := self._next():
            for beat in beats:
                beat.perform()
            self._after()

    def _next(self) -> list[Beat]:
        """Waits until something is due; nothing when it is over."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                if beats := self._due(now):
                    return beats
                self._changed.wait(self._queue[0][0] - now)
        return []

    def _due(self, now: float) -> list[Beat]:
        found = []
        while self._queue[0][0] <= now:
            due, _, beat = heapq.heappop(self._queue)
            if due == beat.due:
                found.append(beat)
                beat.begin(now)
                self._push(beat)
        return found
