"""How much a job has taken since it was deployed, through all starts of its queries.

Spark counts from the start of a query on. Here those counts are added up, and kept in a file so
that they go on after a restart. When Spark dies the last second or so may be missing, when this
process is killed a few seconds, and what a query repeats after a crash counts again.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state
from fogline.model.sites import JobStatus, QueryStatus

_NOTE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Amount:
    records: int = 0
    bad: int = 0
    late: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.records + other.records, self.bad + other.bad, self.late + other.late)

    @classmethod
    def of(cls, query: QueryStatus) -> Amount:
        return cls(query.records, query.bad, query.late)


class InputCounter:
    """`add` the status of a job, again and again; `note` when it ends. For one thread."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._before = _load(file)
        """Of runs that are over."""
        self._runs: dict[str, tuple[str, Amount]] = {}
        """Of each query: the run of now."""
        self._noted, self._due = self._before, 0.0

    @property
    def total(self) -> Amount:
        return sum((amount for _, amount in self._runs.values()), self._before)

    def add(self, status: JobStatus) -> None:
        for query in status.queries:
            if not query.run:
                continue
            run, amount = self._runs.get(query.name, (query.run, Amount()))
            if run != query.run:
                self._before += amount
            self._runs[query.name] = (query.run, Amount.of(query))
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _NOTE_SECONDS
            self.note()

    def note(self) -> None:
        """Raises OSError where there is no space; the next one has all of it."""
        total = self.total
        if total != self._noted:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_state(self._file, json.dumps(asdict(total)))
            self._noted = total


def _load(file: Path) -> Amount:
    """A damaged file is set aside: counting begins again, and the site says so."""
    try:
        return Amount(**json.loads(read_state(file)))
    except FileNotFoundError:
        return Amount()
    except (ValueError, TypeError, StateDamaged):
        set_aside(file)
        return Amount()
