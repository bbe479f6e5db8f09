"""Measures whole commands: cold, over a file of readings, with their results written.

What counts is the rate: the time over all readings less that over a few, which is the start-up.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import data
from command_lines import ResultError, check_results
from command_process import CommandError, Cost, run_cold
from command_workloads import PER_SECOND, CommandWorkload
from measure import Tell
from processes import HERE, PEERS
from workloads import BYTEWAX, FLINK, FOGLINE, SPARK

SMALL = 2_000
"""Readings of the run that measures the start-up."""
_LONG_SECONDS = 60.0
"""A command that takes longer is not repeated: noise is small in it."""


@dataclass(frozen=True)
class CommandRun:
    """What a command works on. `results` is where it writes: a file or a folder of its own."""

    workload: CommandWorkload
    query: Path
    readings: Path
    results: Path


@dataclass(frozen=True)
class CommandSubject:
    """One engine in one variant. Its command writes the results, or prints them."""

    engine: str
    label: str
    command: Callable[[CommandRun], list[str]]
    slow: frozenset[str] = frozenset()
    """Workloads of which it gets a tenth of the readings: all would take it minutes."""


def _fogline(run: CommandRun) -> list[str]:
    fogline = str(Path(sys.executable).with_name("fogline"))
    return [fogline, "run", str(run.query), "--input", str(run.readings), "--json"]


def _bytewax(run: CommandRun) -> list[str]:
    return _script(PEERS, "bytewax_command.py", run)


def _bytewax_two(run: CommandRun) -> list[str]:
    """Two processes, because threads (`-w2`) share Python's lock."""
    flow = HERE / "peers" / "bytewax_command.py"
    arguments = (run.workload.name, str(run.readings), str(run.results))
    return [str(PEERS), "-m", "bytewax.testing", f"{flow}:dataflow{arguments!r}", "-p2"]


def _pyspark(run: CommandRun) -> list[str]:
    return _script(Path(sys.executable), "pyspark_command.py", run)


def _flink(run: CommandRun) -> list[str]:
    return _script(PEERS, "flink_command.py", run)


def _script(python: Path, name: str, run: CommandRun) -> list[str]:
    script = str(HERE / "peers" / name)
    return [str(python), script, run.workload.name, str(run.readings), str(run.results)]


_WINDOWS = frozenset({"sliding"})
SUBJECTS = (
    CommandSubject(FOGLINE, "Fogline", _fogline),
    CommandSubject(BYTEWAX, "Bytewax", _bytewax, slow=_WINDOWS),
    CommandSubject(BYTEWAX, "Bytewax, two processes", _bytewax_two, slow=_WINDOWS),
    CommandSubject(SPARK, "PySpark, a batch", _pyspark, slow=_WINDOWS),
    CommandSubject(FLINK, "PyFlink", _flink, slow=frozenset({"kalman"})),
)


@dataclass
class Measured:
    """The runs of one subject. `problem` says why they do not count."""

    engine: str
    label: str
    readings: int
    small_readings: int
    small: list[Cost] = field(default_factory=list)
    large: list[Cost] = field(default_factory=list)
    count: int | None = None
    """Results of all readings."""
    problem: str | None = None

    @property
    def rate(self) -> float | None:
        """Readings a second after the start-up; None where noise exceeds the difference."""
        if self.problem or not self.large:
            return None
        seconds = median(c.seconds for c in self.large) - median(c.seconds for c in self.small)
        return (self.readings - self.small_readings) / seconds if seconds > 0 else None


def measure_commands(
    workload: CommandWorkload,
    subjects: Sequence[CommandSubject],
    readings: int,
    small_readings: int,
    repeats: int,
    cache: Path,
    logs: Path,
    tell: Tell,
) -> dict[str, Any]:
    """The workload's part of the report; the first subject's results are what all must give."""
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as folder:
        bench = _Commands(workload, small_readings, cache, logs, Path(folder), tell)
        found = [
            Measured(
                s.engine,
                s.label,
                readings // 10 if workload.name in s.slow else readings,
                small_readings,
            )
            for s in subjects
        ]
        for number in range(repeats):
            for subject, measured in zip(subjects, found, strict=True):
                if _is_due(measured):
                    bench.measure(subject, measured, subjects[0], f"{number + 1} of {repeats}")
    return {
        "name": workload.name,
        "title": workload.title,
        "readings": readings,
        "small_readings": small_readings,
        "bytes": data.make(readings, PER_SECOND, cache).bytes,
        "commands": [_entry(m, found) for m in found],
    }


def _is_due(measured: Measured) -> bool:
    return not measured.problem and not any(c.seconds > _LONG_SECONDS for c in measured.large)


class _Commands:
    """The commands of one workload, and what they should give."""

    def __init__(
        self,
        workload: CommandWorkload,
        small_readings: int,
        cache: Path,
        logs: Path,
        folder: Path,
        tell: Tell,
    ) -> None:
        self._workload = workload
        self._small_readings = small_readings
        self._cache = cache
        self._logs = logs
        self._folder = folder
        self._results = folder / "results"
        self._query = folder / "query.ins"
        self._query.write_text(workload.query, encoding="utf-8")
        self._tell = tell

    def measure(
        self, subject: CommandSubject, measured: Measured, first: CommandSubject, turn: str
    ) -> None:
        """A few readings, then all; what it writes must be what the first subject wrote."""
        try:
            small = self._run(subject, self._small_readings)
            self._check(subject, first, self._small_readings)
            large = self._run(subject, measured.readings)
            measured.count = self._check(subject, first, measured.readings)
        except (CommandError, ResultError) as error:
            measured.problem = str(error)
            self._tell(f"{subject.label}: FAILED: {error}")
            return
        measured.small.append(small)
        measured.large.append(large)
        self._tell(
            f"{self._workload.name}: {subject.label}: {turn}: "
            f"{small.seconds:.1f} s, {large.seconds:.1f} s for {measured.readings:,} readings"
        )

    def _run(self, subject: CommandSubject, readings: int) -> Cost:
        """Its results are in `self._results` afterwards, wherever it put them."""
        file = data.whole_file(data.make(readings, PER_SECOND, self._cache).events)
        _remove(self._results)
        command = subject.command(CommandRun(self._workload, self._query, file, self._results))
        log = self._logs / f"command-{self._workload.name}-{subject.engine}.log"
        printed = self._folder / "printed"
        cost = run_cold(command, printed, log)
        if not self._results.exists():
            printed.rename(self._results)
        return cost

    def _check(self, subject: CommandSubject, first: CommandSubject, readings: int) -> int:
        """The number of results; raises ResultError where they are not those of the first."""
        actual, expected = self._results, self._folder / f"expected-{readings}"
        if not expected.exists():
            if subject is first:
                actual = expected
            else:  # the first one has had other readings
                actual = self._folder / "actual"
                self._results.rename(actual)
                self._run(first, readings)
            self._results.rename(expected)
        try:
            return check_results(actual, expected)
        finally:
            if actual is not expected:
                _remove(actual)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _entry(measured: Measured, found: list[Measured]) -> dict[str, Any]:
    rate = measured.rate
    entry = asdict(measured) | {"readings_per_second": rate}
    for engine in (BYTEWAX, SPARK, FLINK):
        best = max((m.rate for m in found if m.engine == engine and m.rate), default=None)
        entry[f"to_{engine}"] = None if rate is None or best is None else rate / best
    return entry
