"""A child process's side: its configuration from the parent, and its status to the parent.

`fogline.common.process.children` is the parent's side, and says how the two talk.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fogline.common.process.contract import ProcessStatus, from_json, to_json

C = TypeVar("C")


class Parent(Generic[C]):
    """The process that started us: how it configures us, and whether it is still there.

    Made once, first. Ctrl-C is the parent's business. `config` and `take_change` raise DataError
    for a configuration that is not as the contract says.
    """

    def __init__(self, contract: type[C]) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.ended = threading.Event()
        """Set when the parent closes our input, or asks us to end."""
        self._contract = contract
        self.config = from_json(contract, json.loads(sys.stdin.readline() or "{}"))
        """The first configuration."""
        self.report_status = StatusWriter().write
        self._newer: Any = None
        self._guard = threading.Lock()
        self.news = threading.Event()
        """Set while there is something new: another configuration, or the parent has ended."""
        self.call: Callable[[], None] = lambda: None
        """Called then, by any thread."""
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        threading.Thread(target=self._listen, daemon=True).start()

    def take_change(self) -> C | None:
        """The configuration, if it has changed since the last call."""
        with self._guard:
            newer, self._newer = self._newer, None
            if not self.ended.is_set():
                self.news.clear()
        return None if newer is None else from_json(self._contract, newer)

    def wait(self, seconds: float) -> None:
        """Until something changes or the parent has ended, at most so long."""
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
        self.ended.set()
        self.news.set()
        self.call()


class StatusWriter:
    """Writes each status that is new as a line on standard output; a parent that has ended is
    noticed elsewhere."""

    def __init__(self) -> None:
        self._last = ""

    def write(self, status: ProcessStatus) -> None:
        line = json.dumps(to_json(status))
        if line != self._last:
            self._last = line
            with contextlib.suppress(OSError, ValueError):
                print(line, flush=True)
