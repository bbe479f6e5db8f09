"""Bad and late records from the files where queries leave them into logs, which are published.

A file is moved when its query has finished it. Should we die between writing and removing it, its
records are there twice; they are never lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fogline.log import LogWriter, SiteLog
from fogline.model.sites import bad_log, late_log


class RejectMover:
    """The rejects of one job; `move` is called again and again."""

    def __init__(self, job: str, folder: Path, logs: SiteLog) -> None:
        self._job = job
        self._folder = folder
        self._logs = logs
        self._writers: dict[str, LogWriter] = {}

    def move(self) -> int:
        """Moves every finished file; returns the number of records."""
        moved = 0
        for path in sorted(self._folder.glob("*.ndjson")):
            moved += self._move(path)
            path.unlink()
        return moved

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def _move(self, path: Path) -> int:
        by_log: dict[str, list[tuple[str, bytes]]] = {}
        for line, reject in _lines(path):
            name = late_log if reject.get("kind") == "late" else bad_log
            topic = name(self._job, str(reject.get("stream")))
            by_log.setdefault(topic, []).append((topic, line))
        for topic, records in by_log.items():
            writer = self._writer(topic)
            writer.append(records)
            writer.commit()
        return sum(len(records) for records in by_log.values())

    def _writer(self, topic: str) -> LogWriter:
        if topic not in self._writers:
            self._writers[topic] = self._logs.writer(topic)
        return self._writers[topic]


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    with path.open("rb") as file:
        for line in file:
            yield line.rstrip(b"\n"), json.loads(line)
