"""A user's SQL in a process of its own, which can be ended whatever it does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from dataclasses import asdict

import pyarrow as pa

from fogline.storage.errors import BadQuery, QueryLimit, StoreError
from fogline.storage.limits import QueryLimits
from fogline.storage.query.sql import Tables
from fogline.storage.query.sql_worker import GRACE_SECONDS, receive, send

_ERRORS: dict[str, type[StoreError]] = {"BadQuery": BadQuery, "QueryLimit": QueryLimit}
_START_SECONDS = 20.0
_ARROW = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG")


class SqlProcess:
    """One statement at a time, for any thread. The others wait, none longer than a statement may
    take. `close` ends the process.

    The process starts with the first statement and stays for the next one; one that went beyond its
    limits is ended and the next statement gets a new one. It knows nothing of our environment.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, text: str, tables: Tables, limits: QueryLimits) -> pa.Table:
        """The answer. Raises `BadQuery` and `QueryLimit`."""
        head = {
            "text": text,
            "paths": list(tables.paths),
            "without": list(tables.without),
            "threads": self._threads,
            "limits": asdict(limits),
        }
        if not self._turn.acquire(timeout=limits.seconds):
            problem = f"other statements are in the way for more than {limits.seconds:g} s"
            raise QueryLimit(problem, "ask again later")
        try:
            reply, table = self._ask(head, tables, limits)
        finally:
            self._turn.release()
        if reply:
            kind = _ERRORS.get(str(reply.get("error")), StoreError)
            raise kind(str(reply.get("text")), str(reply.get("hint")))
        return table

    def close(self) -> None:
        with self._turn:
            self._end()

    def _ask(
        self, head: dict[str, object], tables: Tables, limits: QueryLimits
    ) -> tuple[dict[str, object], pa.Table]:
        if self._child is not None and self._child.poll() is not None:
            self._end()
        child = self._child or self._start_child()
        assert child.stdin is not None
        assert child.stdout is not None
        timer = threading.Timer(limits.seconds + GRACE_SECONDS, child.kill)
        timer.start()
        try:
            send(child.stdin, head, tables.recent, tables.latest, tables.metadata)
            reply, (table,) = receive(child.stdout, 1)
        except (EOFError, OSError, ValueError, pa.ArrowException) as error:
            self._end()
            problem = f"the query takes more than {limits.seconds:g} s or too much memory"
            raise QueryLimit(problem, "ask for less") from error
        finally:
            timer.cancel()
            timer.join()
        return reply, table

    def _start_child(self) -> subprocess.Popen[bytes]:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "fogline.storage.query.sql_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _ARROW,
            cwd="/",
        )
        if not self._is_ready(self._child):
            self._end()
            raise StoreError("the process for SQL does not start")
        return self._child

    def _is_ready(self, child: subprocess.Popen[bytes]) -> bool:
        assert child.stdout is not None
        timer = threading.Timer(_START_SECONDS, child.kill)
        timer.start()
        try:
            return bool(receive(child.stdout, 0)[0])
        except (EOFError, OSError, ValueError):
            return False
        finally:
            timer.cancel()
            timer.join()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                # Whatever was still to be written is lost with the process.
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
