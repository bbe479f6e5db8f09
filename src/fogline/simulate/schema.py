"""What a simulated stream is made of: fields, events, batches of events, and a stream's definition.

An `EventBatch` holds columns because numpy makes them fast; an `Event` is one row of it. Both hold
plain Python values: text, int, float, or None where a sensor sent nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FieldValue = str | int | float | None
Columns = dict[str, list[FieldValue]]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
FormatName = Literal["senml", "json", "csv"]

PLAIN = re.compile(r"[ !#-+\--\[\]-~]+")


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """One field. `decimals` is None for text; `fixed` keeps trailing zeros in SenML (money);
    `as_text` sends a number under SenML's key for text, as real taxis do with coordinates."""

    name: str
    unit: str
    decimals: int | None = None
    fixed: bool = False
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One message of one sensor, at `time_ms` since the epoch."""

    time_ms: int
    fields: dict[str, FieldValue]
    stream: str


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive events: times that never fall, and one column per field, all equally long."""

    stream: StreamKind
    times: list[int]
    columns: Columns

    def events(self) -> Iterator[Event]:
        names = tuple(self.columns)
        for time_ms, *row in zip(self.times, *self.columns.values(), strict=True):
            yield Event(time_ms, dict(zip(names, row, strict=True)), self.stream.name)


# Called with a random generator, the running numbers of the events and their times.
Model = Callable[[np.random.Generator, Ints, Ints], Columns]


@dataclass(frozen=True, slots=True)
class StreamKind:
    """A kind of stream. `prepare(seed)` sets up its sensors and returns the model of their values;
    the first field names the sensor and is always present."""

    name: str
    about: str
    default_format: FormatName
    fields: tuple[FieldSchema, ...]
    prepare: Callable[[int], Model]


def plain(text: str) -> str:
    """The text itself, which no format has to escape; anything else is a mistake in a stream."""
    if not PLAIN.fullmatch(text):
        raise ValueError(f"text of a simulated stream needs escaping: {text!r}")
    return text
