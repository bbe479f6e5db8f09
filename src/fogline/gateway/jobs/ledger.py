"""What gateways are to run, on disk: they go on with it after a restart by themselves.

All gateways of a process share one ledger, a log of changes: any number of them is brought to disk
by one `commit`. Now and then everything that still counts is written down once more, and what is
before that is removed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fogline.common.errors import DataError
from fogline.log import Limits, LogReader, LogRecord, LogWriter, enforce, get_position, set_position
from fogline.model.jobs import Assignment, Scalar

SEGMENT_BYTES = 256 << 10
REWRITE_BYTES = 1 << 20
REWRITE_SHARE = 4
"""It is written anew when it is so many times as large as what counts."""
_LOG = "jobs"
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A job as a gateway is to run it, and how it began."""

    assignment: Assignment
    life: str
    """Another one for every computation: what an earlier job of this name left does not count."""
    begin: int
    """Where in its input it began."""
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    """With which it began; those of now are in the assignment."""
    until: int | None = None
    """Of a job that was removed: where in its input it ends."""
    counts: tuple[int, ...] = ()
    """What the computation before this one had counted: the job goes on counting from there."""

    def now(self, assignment: Assignment) -> LedgerEntry:
        """The same computation, assigned anew."""
        return replace(self, assignment=assignment)

    @property
    def job(self) -> str:
        return self.assignment.job

    @property
    def version(self) -> str:
        """Of the assignment."""
        return self.assignment.version

    def as_json(self) -> dict[str, Any]:
        """Parameters are written when they are not those of the assignment any more."""
        data = {"assignment": self.assignment.as_json(), "life": self.life, "begin": self.begin}
        if self.until is not None:
            data["until"] = self.until
        if self.counts:
            data["counts"] = list(self.counts)
        if self.parameters is not self.assignment.parameters:
            data["parameters"] = dict(self.parameters)
        return data

    @classmethod
    def from_json(cls, data: Any) -> LedgerEntry:
        assignment = Assignment.from_json(data["assignment"])
        until = int(data["until"]) if "until" in data else None
        parameters = dict(data.get("parameters", assignment.parameters))
        counts = tuple(int(count) for count in data.get("counts", ()))
        return cls(assignment, str(data["life"]), int(data["begin"]), parameters, until, counts)


class Ledger:
    """For any number of threads. Raises `LogError`, or `DataError` for entries that are none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._writer = LogWriter(folder, _LOG, segment_bytes=SEGMENT_BYTES, min_free_bytes=0)
        self._entries: dict[str, dict[str, LedgerEntry]] = {}
        self._changes: list[LogRecord] = []
        """What is not on disk yet."""
        try:
            self._begin = get_position(folder, _LOG) or 0
            self._replay()
        except BaseException:
            self._writer.close()
            raise

    def jobs(self, gateway: str) -> list[LedgerEntry]:
        with self._guard:
            return list(self._entries.get(gateway, {}).values())

    def put(self, gateway: str, entry: LedgerEntry) -> None:
        with self._guard:
            jobs = self._entries.setdefault(gateway, {})
            if jobs.get(entry.job) != entry:
                jobs[entry.job] = entry
                self._changes.append(_encode_entry(gateway, entry))

    def drop(self, gateway: str, job: str) -> None:
        with self._guard:
            if self._entries.get(gateway, {}).pop(job, None) is not None:
                self._changes.append((gateway, json.dumps({"gone": job}).encode()))

    def commit(self) -> None:
        """All changes are on disk; those that could not be written are tried again next time."""
        with self._guard:
            if self._changes:
                self._write(self._changes)
                self._changes = []
                self._rewrite_if_large()

    def close(self) -> None:
        """Without what was not committed."""
        with self._guard:
            self._writer.close()

    def _write(self, records: Iterable[LogRecord]) -> int:
        self._writer.append(records)
        return self._writer.commit()

    def _rewrite_if_large(self) -> None:
        size = self._writer.position - self._begin
        if size < REWRITE_BYTES:
            return
        entries = [
            _encode_entry(name, entry)
            for name, of in self._entries.items()
            for entry in of.values()
        ]
        if size < REWRITE_SHARE * sum(len(payload) for _, payload in entries):
            return
        begin = self._writer.position
        self._write(entries)
        set_position(self._folder, _LOG, begin)
        self._begin = begin
        enforce(self._folder, Limits(size=0), 0)

    def _replay(self) -> None:
        with LogReader(self._folder) as reader:
            position = self._begin
            while position < reader.committed():
                records, position = reader.read(position)
                for gateway, payload in records:
                    self._apply(gateway, payload)

    def _apply(self, gateway: str, payload: bytes) -> None:
        jobs = self._entries.setdefault(gateway, {})
        try:
            data = json.loads(payload)
            if "gone" in data:
                jobs.pop(str(data["gone"]), None)
            else:
                entry = LedgerEntry.from_json(data)
                jobs[entry.job] = entry
        except (ValueError, KeyError, TypeError, AttributeError, DataError) as error:
            hint = "move it away to begin without jobs"
            raise DataError(f"{self._folder} cannot be read: {error!r:.200}", hint) from error


def _encode_entry(gateway: str, entry: LedgerEntry) -> LogRecord:
    return gateway, _ENCODE(entry.as_json()).encode()
