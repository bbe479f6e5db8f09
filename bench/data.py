"""The events that are measured: made once, the same on every machine, kept in a cache folder.

A data set is a folder of part files of json lines, in order of event time. There are several,
because Spark's own file source cannot cut a file. Beside it stands a closing record, for an
engine that has no other way to be told that the stream has ended.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SENSORS = 788
ZONES = 20
START_MS = 1_735_689_600_000
"""2025-01-01T00:00:00Z."""
END_MS = 4_102_444_800_000
"""2100-01-01T00:00:00Z: the time of the closing record."""
EVENTS_PER_PART = 450_000
SCHEMA = (
    "sensor STRING, zone STRING, time BIGINT, temperature DOUBLE, humidity DOUBLE, "
    "dust DOUBLE, battery DOUBLE"
)
_VERSION = 3


@dataclass(frozen=True)
class DataSet:
    """Events on disk. `events` holds the parts, `closing` the folder of the closing record."""

    folder: Path
    count: int

    @property
    def events(self) -> Path:
        return self.folder / "events"

    @property
    def closing(self) -> Path:
        return self.folder / "closing"

    @property
    def bytes(self) -> int:
        return sum(f.stat().st_size for f in self.events.iterdir())


def default_cache() -> Path:
    return Path(tempfile.gettempdir()) / "fogline-bench"


def make(count: int, per_second: int, cache: Path) -> DataSet:
    """The data set of this size and rate; it is written only where it is not there yet."""
    folder = cache / f"v{_VERSION}-{count}-at-{per_second}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=cache))
        try:
            _write(DataSet(unfinished, count), per_second)
            os.rename(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return DataSet(folder, count)


def whole_file(events: Path) -> Path:
    """All parts as one file, made once: for what reads a file, or a folder in no certain order."""
    target = events.with_name("whole.json")
    if not target.exists():
        unfinished = target.with_name("whole.json.unfinished")
        with unfinished.open("wb") as file:
            for part in sorted(events.iterdir()):
                with part.open("rb") as lines:
                    shutil.copyfileobj(lines, file)
        unfinished.replace(target)
    return target


def _write(data: DataSet, per_second: int) -> None:
    data.events.mkdir()
    data.closing.mkdir()
    lines = _lines(data.count, per_second)
    for part, first in enumerate(range(0, data.count, EVENTS_PER_PART)):
        size = min(EVENTS_PER_PART, data.count - first)
        with (data.events / f"part-{part:04}.json").open("w", encoding="ascii") as file:
            file.writelines(next(lines) for _ in range(size))
    closing = {"sensor": "", "zone": "", "time": END_MS}
    (data.closing / "closing.json").write_text(json.dumps(closing) + "\n", encoding="ascii")


def _lines(count: int, per_second: int) -> Iterator[str]:
    """Sensors report in turn, so none has two values at one time, and drift around a level of
    their own. About 5 % of the dust values are above 95.
    """
    rng = random.Random(7)
    names = [f"ci4lr75{rng.randrange(36**6):09x}ypo4q{i:03}" for i in range(SENSORS)]
    levels = [rng.uniform(5, 30) for _ in range(SENSORS)]
    noise = rng.random
    turn = rng.sample(range(SENSORS), SENSORS)
    for n in range(count):
        sensor = turn[n % SENSORS]
        level = levels[sensor] = levels[sensor] + (noise() - 0.5) * 0.1
        yield (
            f'{{"sensor":"{names[sensor]}","zone":"z{sensor % ZONES:02}",'
            f'"time":{START_MS + n * 1000 // per_second},'
            f'"temperature":{level + noise() - 0.5:.2f},"humidity":{40 + noise() * 30:.1f},'
            f'"dust":{noise() * 100:.2f},"battery":{3 + noise():.3f}}}\n'
        )
