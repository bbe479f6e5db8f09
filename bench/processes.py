"""Engines as child processes, each in a session of its own: it ends with everything it started.

A worker is told to end by closing its input; what is still there a few seconds later is killed.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data import DataSet
from protocol import Checked
from workloads import BYTEWAX, FLINK, FOGLINE, SPARK, Subject

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
_SCRIPTS = {
    FOGLINE: (Path(sys.executable), HERE / "fogline_engine.py"),
    SPARK: (Path(sys.executable), HERE / "pyspark_engine.py"),
    FLINK: (PEERS, HERE / "peers" / "flink.py"),
}
_PACKAGES = {FLINK: "apache-flink", BYTEWAX: "bytewax"}
_PATIENCE = 5.0
_SAMPLE_EVERY = 0.2
_AT_REST = 0.1
"""Share of a core that engines which wait may use."""
_REST_SECONDS = 15.0


def installed_peers() -> dict[str, str]:
    """Versions of those in the environment of the peers, by name."""
    if not PEERS.exists():
        return {}
    code = "from importlib.metadata import *; print([(d.name, d.version) for d in distributions()])"
    done = subprocess.run([str(PEERS), "-c", code], capture_output=True, text=True, check=True)
    found = dict(ast.literal_eval(done.stdout))
    return {name: found[package] for name, package in _PACKAGES.items() if package in found}


class WorkerError(Exception):
    """An engine could not do what it was asked; the message is for people."""


class Worker:
    """One warm engine. Use as a context manager: leaving it ends the process and its children."""

    def __init__(self, subject: Subject, workload: str, log: Path) -> None:
        python, script = _SCRIPTS[subject.engine]
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            [str(python), str(script), workload, subject.variant],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self._memory = _Memory(self._process.pid)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.stop()
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        kill_session(self._process.pid)
        self._process.wait()
        self._log.close()

    @property
    def processor_seconds(self) -> float:
        """What the process and its children that are there have used."""
        return sum(processor_seconds_of(pid) for pid in members(self._process.pid))

    def await_ready(self) -> None:
        self._reply()

    def time(self, data: DataSet) -> float:
        return float(self._ask("time", data)["seconds"])

    def check(self, data: DataSet) -> Checked:
        reply = self._ask("check", data)
        return Checked(int(reply["count"]), float(reply["total"]))

    @property
    def peak_bytes(self) -> int:
        """The most memory that the process and its children held at one time."""
        return self._memory.peak

    def _ask(self, what: str, data: DataSet) -> dict[str, Any]:
        asked = {"do": what, "events": str(data.events), "closing": str(data.closing)}
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerError(f"it ended; see {self._log.name}") from error
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"it ended; see {self._log.name}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerError(f"{reply['error']}; see {self._log.name}")
        return reply


def await_rest(workers: Sequence[Worker]) -> None:
    """Until nobody tidies up any more behind a pass: that would be taken from the next one."""
    deadline = time.monotonic() + _REST_SECONDS
    used = sum(worker.processor_seconds for worker in workers)
    while time.monotonic() < deadline:
        time.sleep(_SAMPLE_EVERY)
        before, used = used, sum(worker.processor_seconds for worker in workers)
        if used - before <= _AT_REST * _SAMPLE_EVERY:
            return


class _Memory:
    """Samples the resident memory of a session's processes until it is stopped."""

    def __init__(self, session: int) -> None:
        self.peak = 0
        self._session = session
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(_SAMPLE_EVERY):
            self.peak = max(self.peak, sum(map(resident, members(self._session))))


def members(session: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                if os.getsid(int(entry)) == session:
                    found.append(int(entry))
    return found


def resident(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def processor_seconds_of(pid: int) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    user, system = words.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def kill_session(session: int) -> None:
    """Ends what a worker left behind: asks first, then insists."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in members(session):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        deadline = time.monotonic() + _PATIENCE
        while members(session) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not members(session):
            return
