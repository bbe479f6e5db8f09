"""The processes of a site: started, watched, started again when they die, ended with us.

A child is a Python module of ours; `fogline.common.process.parent` is its side. It gets its
configuration as a line of JSON on standard input, and another line whenever that changes; when the
input closes, the child ends. It reports its status as one JSON object a line on standard output;
what it writes to standard error goes to its log file. Both are dataclasses, read and written by
`fogline.common.process.contract`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from fogline.common.backoff import Backoff
from fogline.common.errors import DataError
from fogline.common.process.contract import ProcessStatus, from_json, to_json
from fogline.common.process.log_rotation import keep_bounded
from fogline.common.process.parent_death import die_with_parent

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
_HEALTHY_SECONDS = 30.0
_LAST_BYTES = 16 << 10
_LONGEST_REASON = 500
_ERROR = re.compile(r"(\w+: |[\w.]*(Error|Exception)\b)")

S = TypeVar("S", bound=ProcessStatus)


class Child(Generic[S]):
    """One process. `keep_running` is called again and again by one thread that lives on."""

    def __init__(
        self,
        name: str,
        module: str,
        config: Callable[[], object],
        status: type[S],
        folder: Path,
        on_status: Callable[[], None] = lambda: None,
    ) -> None:
        """`config` returns its configuration, `status` is the type of what it reports. What it
        writes to standard error is in `<folder>/<name>.log`. `on_status` is called, by a thread of
        the child, whenever there is another status."""
        self.name = name
        self.status: S | None = None
        """The last one of the process that runs; None before its first."""
        self._state = "waiting"
        self.restarts = -1
        self.died = ""
        """Its last words when it died last."""
        self._seen = 0
        self._module = module
        self._config = config
        self._status_type = status
        self._on_status = on_status
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[str] | None = None
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        self._due = 0.0
        self._started = 0.0

    @property
    def state(self) -> str:
        """As it reports it, or how far its start is."""
        return self.status.state if self.status is not None else self._state

    @property
    def revision(self) -> int:
        """Of the configuration that it reports to be in force; 0 without."""
        return (self.status.revision or 0) if self.status is not None else 0

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def keep_running(self) -> None:
        """Starts the process if it does not run and its pause is over."""
        keep_bounded(self._log)
        if self.running:
            return
        now = time.monotonic()
        if self._process is not None:
            self._note_death(now)
        if now >= self._due:
            try:
                self._start(now)
            except OSError as error:
                self.died = f"it cannot be started: {error}"
                self._due = now + self._backoff.next()

    def _note_death(self, now: float) -> None:
        assert self._process is not None
        self.died = _last_words(self._log, self._seen) or _ending(self._process.returncode)
        self._process = None
        self._state, self.status = "restarting", None
        if now - self._started > _HEALTHY_SECONDS:
            self._backoff.reset()
        self._due = now + self._backoff.next()

    def _start(self, now: float) -> None:
        self.restarts += 1
        self._started = now
        self._state, self.status = "starting", None
        with self._log.open("ab") as log:
            self._seen = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                preexec_fn=die_with_parent,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        self.update()
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                data = json.loads(line)
                if process is self._process and isinstance(data, dict):
                    self._take_status(data)
                    self._on_status()

    def _take_status(self, data: object) -> None:
        try:
            self.status = from_json(self._status_type, data)
        except DataError as error:
            self._state, self.status = f"its status cannot be read: {error}", None

    def update(self) -> None:
        """Sends a running process its configuration; it goes on without being started anew."""
        if self._process is not None and self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.write(json.dumps(to_json(self._config())) + "\n")
                self._process.stdin.flush()

    def ask_to_end(self) -> None:
        if self._process is not None and self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def wait(self, seconds: float) -> None:
        """Waits for its end; kills it, and everything it started, when that takes longer."""
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None


def _last_words(log: Path, begin: int) -> str:
    """The line that says why it ended: the last one that begins like an error, or else the last
    one of all."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(begin if begin <= size else 0, size - _LAST_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1][:_LONGEST_REASON]


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
