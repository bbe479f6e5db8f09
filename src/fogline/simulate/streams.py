"""The streams there are, and how a run of one becomes events.

The same `Run` gives the same events, always; another seed gives other sensors and values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fogline.common.errors import UsageError
from fogline.simulate import city, fit, grid, taxi, traffic
from fogline.simulate.patterns import PATTERNS, Schedule
from fogline.simulate.schema import Event, EventBatch, StreamKind

STREAMS: dict[str, StreamKind] = {
    module.STREAM.name: module.STREAM for module in (city, taxi, fit, traffic, grid)
}
DEFAULT_START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
BATCH_SIZE = 8192


@dataclass(frozen=True, slots=True)
class Run:
    """What to simulate. One that exists is valid; otherwise `UsageError` says what is wrong."""

    name: str
    rate: float
    seconds: float
    pattern: str = "uniform"
    seed: int = 0
    start_ms: int = DEFAULT_START_MS

    def __post_init__(self) -> None:
        if self.name not in STREAMS:
            raise UsageError(f"unknown stream {self.name!r}", f"one of {', '.join(STREAMS)}")
        if self.pattern not in PATTERNS:
            known = ", ".join(PATTERNS)
            raise UsageError(f"unknown rate pattern {self.pattern!r}", f"one of {known}")
        for what, value in (("rate", self.rate), ("seconds", self.seconds)):
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"{what} must be more than 0, not {value:g}")
        if self.seed < 0:
            raise UsageError(f"seed must not be negative, but is {self.seed}")

    @property
    def stream(self) -> StreamKind:
        return STREAMS[self.name]

    @property
    def count(self) -> int:
        """How many events the run has."""
        return round(self.rate * self.seconds)


def batches(run: Run) -> Iterator[EventBatch]:
    """All events of a run in the order of their times, in batches."""
    model = run.stream.prepare(run.seed)
    schedule = Schedule(run.rate, run.seconds, run.pattern)
    for number, first in enumerate(range(0, run.count, BATCH_SIZE)):
        rng = np.random.default_rng([run.seed, 0, number])
        index = np.arange(first, min(first + BATCH_SIZE, run.count), dtype=np.int64)
        times = run.start_ms + schedule.offsets_ms(index)
        yield EventBatch(run.stream, times.tolist(), model(rng, index, times))


def events(
    name: str,
    rate: float,
    seconds: float,
    pattern: str = "uniform",
    seed: int = 0,
    start: int = DEFAULT_START_MS,
) -> Iterator[Event]:
    """The events of one stream; `start` is in milliseconds since the epoch."""
    for batch in batches(Run(name, rate, seconds, pattern, seed, start)):
        yield from batch.events()
