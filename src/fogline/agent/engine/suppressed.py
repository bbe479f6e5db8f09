"""Logs that a job must not write to although it computes what would be in them.

They are in a file that the connector's sink looks into again and again, so that a query need not
be started anew when there are others. The engine process changes them; it is the only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fogline.common.state_files import write_state
from fogline.log.errors import write_failed
from fogline.spark.jobs.log_append import Append


def muted_file(folder: Path) -> Path:
    """In the folder of a job."""
    return folder / "muted"


class MutedLogs:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._logs: frozenset[str] | None = None

    def set(self, logs: Iterable[str]) -> None:
        """These from now on, and no others. Raises LogError where there is no space for it."""
        desired = frozenset(logs)
        if desired == self._logs:
            return
        try:
            self._write(sorted(desired))
        except OSError as error:
            raise write_failed(self.path, error) from error
        self._logs = desired

    def _write(self, logs: Sequence[str]) -> None:
        if logs:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_state(self.path, "".join(f"{log}\n" for log in logs))
        else:
            self.path.unlink(missing_ok=True)

    def around(self, append: Append) -> Append:
        """Appends what is not for one of them."""

        def add(log: str, source: int, epoch: int, records: Sequence[tuple[str, bytes]]) -> None:
            if log not in (self._logs or ()):
                append(log, source, epoch, records)

        return add
