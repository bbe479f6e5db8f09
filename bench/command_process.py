"""One command, cold: its time, and the processor time and memory of everything it starts."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from processes import kill_session, members, processor_seconds_of, resident

_SAMPLE_EVERY = 0.2


class CommandError(Exception):
    """A command failed; the message is for people."""


@dataclass(frozen=True)
class Cost:
    seconds: float
    processor_seconds: float
    """User and system time of all processes, as far as they lived to be sampled."""
    peak_bytes: int
    """The most that all processes together held resident; pages that two share count twice."""


def run_cold(
    command: Sequence[str], output: Path, log: Path, environment: Mapping[str, str] | None = None
) -> Cost:
    """Runs it with standard output into `output`; raises CommandError where it fails.

    It has a session of its own, and what it leaves running there is ended.
    """
    with output.open("wb") as out, log.open("ab") as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=os.environ | (environment or {}),
            start_new_session=True,
        )
        sampler = _Sampler(process.pid)
        try:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            sampler.stop()
            kill_session(process.pid)
    if process.returncode:
        raise CommandError(f"exit code {process.returncode}; see {log}")
    waited_for = usage.ru_utime + usage.ru_stime
    return Cost(seconds, max(waited_for, sampler.processor_seconds), sampler.peak)


class _Sampler:
    """Watches the processes of a session until it is stopped."""

    def __init__(self, session: int) -> None:
        self.peak = 0
        self._session = session
        self._used: dict[int, float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def processor_seconds(self) -> float:
        return sum(self._used.values())

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        ended = False
        while not ended:
            found = members(self._session)
            self.peak = max(self.peak, sum(map(resident, found)))
            for pid in found:
                self._used[pid] = max(self._used.get(pid, 0.0), processor_seconds_of(pid))
            ended = self._stopped.wait(_SAMPLE_EVERY)
