"""Bad and late records from the files where queries leave them into logs, which are published.

A file is moved when its query has finished it. Should we die between writing and removing it, its
records are there twice; they are never lost. Without space they wait in their files. A line that
cannot be read (a power failure can tear one) is put aside, in `torn` beside the files.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fogline.log import LogError, LogWriter, SiteLog
from fogline.model.sites import bad_log, late_log


class RejectMover:
    """The rejects of one job; `move` is called again and again."""

    def __init__(self, job: str, folder: Path, logs: SiteLog) -> None:
        self._job = job
        self._folder = folder
        self._logs = logs
        self._writers: dict[str, LogWriter] = {}
        self._written: set[tuple[Path, str]] = set()
        """Which logs have what is for them of a file that is not moved yet."""

    def move(self) -> int:
        """Moves every finished file; returns the number of records.

        Raises `LogError` or `OSError`; what is not moved then is moved by a later call.
        """
        moved = 0
        for path in sorted(self._folder.glob("*.ndjson")):
            moved += self._move(path)
            path.unlink()
            self._written.clear()
        return moved

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def _move(self, path: Path) -> int:
        by_log: dict[str, list[tuple[str, bytes]]] = {}
        torn = []
        for line, reject in _lines(path):
            if reject is None:
                torn.append(line)
                continue
            name = late_log if reject.get("kind") == "late" else bad_log
            topic = name(self._job, str(reject.get("stream")))
            by_log.setdefault(topic, []).append((topic, line))
        for topic, records in by_log.items():
            if (path, topic) not in self._written:
                self._write(topic, records)
                self._written.add((path, topic))
        if torn:
            self._put_aside(path, torn)
        return sum(len(records) for records in by_log.values())

    def _write(self, topic: str, records: list[tuple[str, bytes]]) -> None:
        try:
            if topic not in self._writers:
                self._writers[topic] = self._logs.writer(topic)
            self._writers[topic].append(records)
            self._writers[topic].commit()
        except LogError:
            if topic in self._writers:
                with contextlib.suppress(LogError, OSError):
                    self._writers.pop(topic).close()
            raise

    def _put_aside(self, path: Path, lines: list[bytes]) -> None:
        aside = self._folder / "torn" / path.name
        aside.parent.mkdir(exist_ok=True)
        aside.write_bytes(b"\n".join(lines) + b"\n")
        text = f"job {self._job}: {len(lines)} rejected records cannot be read, they are in {aside}"
        print(text, file=sys.stderr, flush=True)


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Every line, and what it says if that can be read."""
    with path.open("rb") as file:
        for line in file:
            text = line.rstrip(b"\n")
            if text:
                yield text, _reject(text)


def _reject(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
