"""Logs with numbered records, and the processes of a site with their configuration."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fogline.agent.contracts.ingest import IngestConfig, Subscription
from fogline.common.process.contract import to_json
from fogline.log import LogWriter, SiteLog
from tests.waiting import wait_for

SECONDS = 30.0


def ingest_config(
    logs: Path, journal: Path | None, *subscriptions: Subscription, client: str = "test"
) -> IngestConfig:
    return IngestConfig(
        revision=1,
        logs=str(logs),
        min_free_bytes=0,
        same_machine=True,
        tls=None,
        client=client,
        subscriptions=subscriptions,
        copies=(),
        journal=None if journal is None else str(journal),
    )


def eventually(condition: Callable[[], object], what: str = "it") -> None:
    wait_for(condition, SECONDS, what)


def site(folder: Path, **more: Any) -> SiteLog:
    return SiteLog(folder / "log", **{"min_free_bytes": 0} | more)


def contents(logs: SiteLog, log: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    with logs.reader(log) as reader:
        position = reader.first()
        while True:
            records, position = reader.read(position)
            if not records:
                return found
            found += records


def numbers(logs: SiteLog, log: str) -> list[int]:
    return [int(payload) for _, payload in contents(logs, log)]


def write(writer: LogWriter, values: Sequence[int], commit: int = 7) -> None:
    """As so many records, `commit` of them at a time."""
    for start in range(0, len(values), commit):
        writer.append([("own/topic", b"%d" % n) for n in values[start : start + commit]])
        writer.commit()


class Process:
    """One of our modules as a child process: its configuration in, its status out."""

    def __init__(self, module: str, config: object) -> None:
        self.status: dict[str, Any] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.configure(config)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.status = json.loads(line)

    def configure(self, config: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(to_json(config)) + "\n")
        self._process.stdin.flush()

    def reaches(self, revision: int) -> None:
        eventually(lambda: self.status.get("revision") == revision, f"revision {revision}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()

    def end(self) -> int:
        assert self._process.stdin
        self._process.stdin.close()
        code = self._process.wait(SECONDS)
        self._listener.join()
        return code

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
