"""The files of a gateway's jobs: a checkpoint and some logs each.

Which logs there are is read from the disk once, and known from then on: jobs come and go without a
look at it as long as they have no files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fogline.log import LogWriter, SiteLog
from fogline.log.names import folder_name
from fogline.model.sites import out_log


class JobFiles:
    """For one thread at a time. The logs of jobs are made here only."""

    def __init__(self, folder: Path, logs: SiteLog) -> None:
        self.logs = logs
        self._states = folder / "state"
        self._topics = set(logs.topics())

    def topics(self) -> list[str]:
        """All that have a log."""
        return sorted(self._topics)

    def has(self, log: str) -> bool:
        return log in self._topics

    def writer(self, log: str) -> LogWriter:
        """The log is made when it is new."""
        self._topics.add(log)
        return self.logs.writer(log)

    def checkpoint(self, job: str) -> Path:
        return self._states / f"{folder_name(job)}.json"

    def forget(self, job: str) -> None:
        """The state of a job, and its logs."""
        self.checkpoint(job).unlink(missing_ok=True)
        below = (f"bad/{job}/", f"late/{job}/")
        for log in [
            name for name in self._topics if name == out_log(job) or name.startswith(below)
        ]:
            shutil.rmtree(self.logs.folder(log), ignore_errors=True)
            self._topics.discard(log)
