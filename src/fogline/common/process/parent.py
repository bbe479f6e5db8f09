"""A child process's side: what its parent wants, and how it tells how it is.

`fogline.common.process.children` is the parent's side, and says how the two talk.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any


class Parent:
    """The process that started us: what it wants, and whether it is still there.

    Made once, first. Ctrl-C is the parent's business.
    """

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.gone = threading.Event()
        """Set when the parent closes our input, or asks us to end."""
        self.config: dict[str, Any] = json.loads(sys.stdin.readline() or "{}")
        """What it wanted first."""
        self._newer: dict[str, Any] | None = None
        self._guard = threading.Lock()
        self.news = threading.Event()
        """Set while there is something new: it wants something else, or is gone."""
        self.call: Callable[[], None] = lambda: None
        """Called then, by any thread."""
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        threading.Thread(target=self._listen, daemon=True).start()

    def changed(self) -> dict[str, Any] | None:
        """What it wants now, if that has changed since the last call."""
        with self._guard:
            newer, self._newer = self._newer, None
            if not self.gone.is_set():
                self.news.clear()
        return newer

    def wait(self, seconds: float) -> None:
        """Until something changes or the parent is gone, at most so long."""
        self.news.wait(seconds)

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := sys.stdin.readline():
                config = json.loads(line)
                with self._guard:
                    self._newer = config
                    self.news.set()
                self.call()
        self._end()

    def _end(self) -> None:
        self.gone.set()
        self.news.set()
        self.call()


class _Told:
    """What the parent was told last."""

    line = ""


def tell(status: dict[str, Any]) -> None:
    """Tells the parent how we are, if that is new; a parent that is gone is noticed elsewhere."""
    line = json.dumps(status)
    if line != _Told.line:
        _Told.line = line
        with contextlib.suppress(OSError, ValueError):
            print(line, flush=True)
