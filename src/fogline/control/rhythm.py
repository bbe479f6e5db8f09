"""Things done again and again in one thread: each every so often, and sooner when asked for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

SHORTEST_PAUSE = 0.1
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
        """As soon as possible, but ten times a second at most, however often this is called."""
        self.due = min(self.due, max(now, self.last + SHORTEST_PAUSE))

    def begin(self, now: float) -> None:
        """What hurries it from now on wants it once more."""
        self.last, self.due = now, now + self.every

    def perform(self) -> None:
        try:
            self.action()
            self.problem = ""
        except Exception as error:
            if not self.problem:
                _log.exception("what is told regularly cannot be told")
            self.problem = f"{type(error).__name__}: {error}"


class Rhythm:
    """`start` once, `hurry` from any thread, then `stop`. Actions that raise are tried again."""

    def __init__(self, *beats: Beat) -> None:
        self._beats = beats
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="control announcements", daemon=True)

    @property
    def problem(self) -> str:
        return next((beat.problem for beat in self._beats if beat.problem), "")

    def start(self) -> None:
        self._thread.start()

    def hurry(self, *beats: Beat) -> None:
        with self._changed:
            for beat in beats:
                beat.hurry(time.monotonic())
            self._changed.notify_all()

    def stop(self) -> None:
        """Waits a little for what is being done."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while (beat := self._next()) is not None:
            beat.perform()

    def _next(self) -> Beat | None:
        """Waits until something is due; nothing when it is over."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                beat = min(self._beats, key=lambda beat: beat.due)
                if beat.due <= now:
                    beat.begin(now)
                    return beat
                self._changed.wait(beat.due - now)
        return None
