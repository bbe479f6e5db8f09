"""The files of a gateway's jobs: a checkpoint and some logs each.

Which there are is read from the disk once, and known from then on: jobs come and go without a look
at it as long as they have no files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fogline.gateway.jobs import checkpoint
from fogline.gateway.jobs.checkpoint import Checkpoint
from fogline.log import LogWriter, SiteLog
from fogline.log.files.names import folder_name
from fogline.model.sites import out_log


class JobFiles:
    """For one thread at a time. The files of jobs are made here only."""

    def __init__(self, folder: Path, logs: SiteLog) -> None:
        self.logs = logs
        self._states = folder / "state"
        self._topics = set(logs.topics())
        self._kept = {path.name for path in self._states.glob("*.json")}
        """The names of checkpoints."""

    def topics(self) -> list[str]:
        """All that have a log."""
        return sorted(self._topics)

    def has(self, log: str) -> bool:
        return log in self._topics

    def of(self, job: str) -> list[str]:
        """The logs of a job."""
        below = (f"bad/{job}/", f"late/{job}/")
        return [name for name in self._topics if name == out_log(job) or name.startswith(below)]

    def writer(self, log: str) -> LogWriter:
        """The log is made when it is new."""
        self._topics.add(log)
        return self.logs.writer(log)

    def checkpoint(self, job: str) -> Checkpoint | None:
        """The last one, if there is any. Raises `LogError` for one that cannot be read."""
        if not self._kept:
            return None
        name = _file_of(job)
        return checkpoint.load(self._states / name) if name in self._kept else None

    def keep(self, job: str, state: Checkpoint) -> None:
        """On disk when this returns. Raises what writing a log does."""
        name = _file_of(job)
        self._kept.add(name)
        checkpoint.store(self._states / name, state)

    def forget(self, job: str) -> None:
        """The state of a job, and its logs."""
        if self._kept and (name := _file_of(job)) in self._kept:
            (self._states / name).unlink(missing_ok=True)
            self._kept.discard(name)
        for log in self.of(job):
            shutil.rmtree(self.logs.folder(log), ignore_errors=True)
            self._topics.discard(log)


def _file_of(job: str) -> str:
    return f"{folder_name(job)}.json"


def state_folders(folder: Path) -> list[Path]:
    """Where a gateway keeps state files."""
    inner = ("logs/*", "logs/*/readers")
    found = [path for pattern in inner for path in sorted(folder.glob(pattern))]
    logs = (folder / "jobs", folder / "journal")
    data = folder / "broker" / "data"
    return [folder / "state", data, *logs, *(log / "readers" for log in logs), *found]
