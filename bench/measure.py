"""Measures one workload: all its engines warm at the same time, their passes taken in turn."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from data import DataSet
from processes import Worker, WorkerError, await_rest
from protocol import Checked
from workloads import FLINK, SPARK, Subject, Workload

_SHORT_WARM_UPS = 5
_WARM_UP_SECONDS = 25.0
"""Of passes over all events, for every engine alike: Java goes on compiling what it runs."""
_LONG_SECONDS = 30.0
"""A pass that takes longer than this is not repeated: noise is small in it."""
_TOLERANCE = 1e-6

Tell = Callable[[str], None]


@dataclass
class Measured:
    """What is known of one engine in one workload. `problem` says why it is worth nothing."""

    engine: str
    variant: str
    label: str
    events: int = 0
    """Of one pass."""
    seconds: list[float] = field(default_factory=list)
    count: int = 0
    total: float = 0.0
    peak_bytes: int = 0
    problem: str | None = None

    @property
    def rate(self) -> float | None:
        """Events a second, of the median pass."""
        known = self.seconds and not self.problem
        return self.events / median(self.seconds) if known else None


def measure(
    workload: Workload,
    subjects: tuple[Subject, ...],
    data: DataSet,
    small: DataSet,
    repeats: int,
    logs: Path,
    tell: Tell,
) -> dict[str, Any]:
    """The workload's part of the report."""
    sets = [small if subject.slow else data for subject in subjects]
    found = [
        Measured(s.engine, s.variant, s.label, of.count)
        for s, of in zip(subjects, sets, strict=True)
    ]
    with contextlib.ExitStack() as stack:
        workers: list[Worker] = []
        for subject, measured, events in zip(subjects, found, sets, strict=True):
            tell(f"{workload.name}: {measured.label}: starting and warming up")
            log = logs / f"{workload.name}-{subject.engine}-{subject.variant}.log"
            workers.append(stack.enter_context(Worker(subject, workload.name, log)))
            with _problems(measured, tell):
                _warm_up(workers[-1], measured, events, small)
        fewer = _reference(workers, found, small)
        for number in range(repeats):
            for worker, measured, events in zip(workers, found, sets, strict=True):
                if _wanted(measured):
                    await_rest(workers)
                    with _problems(measured, tell):
                        measured.seconds.append(worker.time(events))
                        tell(_progress(workload, measured, number, repeats))
        for worker, measured in zip(workers, found, strict=True):
            measured.peak_bytes = worker.peak_bytes
    if workload.baseline is None:
        _compare(found, fewer, tell)
    return {
        "name": workload.name,
        "title": workload.title,
        "goal": workload.goal,
        "baseline": workload.baseline,
        "events": data.count,
        "bytes": data.bytes,
        "engines": [_entry(m, found, workload) for m in found],
    }


def _warm_up(worker: Worker, measured: Measured, data: DataSet, small: DataSet) -> None:
    worker.await_ready()
    for _ in range(_SHORT_WARM_UPS if data.count > small.count else 1):
        worker.time(small)
    begun = time.monotonic()
    checked = worker.check(data)
    measured.count, measured.total = checked.count, checked.total
    while time.monotonic() - begun < _WARM_UP_SECONDS:
        worker.time(data)


def _wanted(measured: Measured) -> bool:
    return not measured.problem and not any(s > _LONG_SECONDS for s in measured.seconds)


@contextlib.contextmanager
def _problems(measured: Measured, tell: Tell) -> Any:
    try:
        yield
    except WorkerError as error:
        measured.problem = str(error)
        tell(f"{measured.label}: FAILED: {error}")


def _progress(workload: Workload, found: Measured, number: int, of: int) -> str:
    seconds = found.seconds[-1]
    rate = found.events / seconds / 1000
    return (
        f"{workload.name}: {found.label}: pass {number + 1} of {of}: "
        f"{seconds:.2f} s, {rate:,.0f} thousand events/s"
    )


def _reference(workers: list[Worker], found: list[Measured], small: DataSet) -> Checked | None:
    """What the first engine gives for fewer events, where another gets only those."""
    if found[0].problem or all(m.events != small.count for m in found):
        return None
    return workers[0].check(small)


def _compare(found: list[Measured], fewer: Checked | None, tell: Tell) -> None:
    """All engines must give what the first one gives for the same events."""
    sound = [m for m in found if not m.problem]
    for other in sound[1:]:
        first = Checked(sound[0].count, sound[0].total)
        wanted = first if other.events == sound[0].events or fewer is None else fewer
        if not _agree(wanted, Checked(other.count, other.total)):
            other.problem = (
                f"results differ: {other.count} with the sum {other.total!r}, "
                f"{sound[0].label} has {wanted.count} with {wanted.total!r}"
            )
            tell(f"{other.label}: FAILED: {other.problem}")


def _agree(one: Checked, other: Checked) -> bool:
    near = abs(one.total - other.total) <= _TOLERANCE * max(abs(one.total), abs(other.total))
    return one.count == other.count and near


def _entry(measured: Measured, found: list[Measured], workload: Workload) -> dict[str, Any]:
    rate = measured.rate
    entry = asdict(measured) | {"events_per_second": rate}
    against = {
        "to_pyspark": _best(found, lambda m: m.engine == SPARK),
        "to_flink": _best(found, lambda m: m.engine == FLINK),
        "to_baseline": _best(found, lambda m: m.variant == workload.baseline),
    }
    for name, best in against.items():
        entry[name] = None if rate is None or best is None else rate / best
    return entry


def _best(found: list[Measured], which: Callable[[Measured], bool]) -> float | None:
    return max((m.rate for m in found if which(m) and m.rate is not None), default=None)
