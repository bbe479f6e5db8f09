"""`aggregate`: tumbling windows by key, as records that people can read.

A window is emitted once, when event time has passed its end by `lateness` seconds; records for
windows that are emitted are late.

There may be many keys, and a gateway has little memory: the numbers of all keys of a window are in
one array, and the values of a key are in its text alone.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fogline.formats.values import lookup
from fogline.gateway.operators.base import (
    MOST_KEYS,
    BadStep,
    GatewayOperator,
    LateRecord,
    Record,
    StepOptions,
    key_of,
    number,
)
from fogline.gateway.operators.packing import pack_numbers, unpack_numbers

# What is kept of a field: count, sum, smallest, largest.
Cell = Sequence[float]
_WIDTH = 4
_FUNCTIONS: dict[str, Callable[[Cell], float | int | None]] = {
    "count": lambda c: int(c[0]),
    "sum": lambda c: c[1] if c[0] else None,
    "avg": lambda c: c[1] / c[0] if c[0] else None,
    "min": lambda c: c[2] if c[0] else None,
    "max": lambda c: c[3] if c[0] else None,
}


class WindowCells:
    """Of every key a row of numbers: how many records, and a cell for every field."""

    __slots__ = ("_numbers", "_places", "_width")

    def __init__(self, fields: int) -> None:
        self._width = 1 + _WIDTH * fields
        self._places: dict[str, int] = {}
        self._numbers = array("d")

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def rows(self) -> Iterator[tuple[str, Cell]]:
        for place, key in enumerate(self._places):
            yield key, self._numbers[place * self._width : (place + 1) * self._width]

    def add(self, key: str, values: Sequence[float | None]) -> None:
        """One record, with its value of each field."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._places)
            self._numbers.frombytes(bytes(self._width * 8))
        row = place * self._width
        self._numbers[row] += 1
        for index, value in enumerate(values):
            if value is not None:
                self._put(row + 1 + _WIDTH * index, value)

    def _put(self, at: int, value: float) -> None:
        cell = self._numbers
        first = not cell[at]
        cell[at] += 1
        cell[at + 1] += value
        cell[at + 2] = value if first or value < cell[at + 2] else cell[at + 2]
        cell[at + 3] = value if first or value > cell[at + 3] else cell[at + 3]

    def state(self) -> list[Any]:
        return [list(self._places), pack_numbers(self._numbers)]

    def restore(self, state: Any) -> None:
        keys, numbers = state
        self._places = {key: place for place, key in enumerate(keys)}
        self._numbers = unpack_numbers("d", numbers)


class AggregateOperator(GatewayOperator):
    """`{"op": "aggregate", "window": 60, "fields": ["t"], "functions": ["avg", "max"],
    "by": ["room"], "lateness": 5}` gives `avg_t`, `max_t`, `count` with `start` and `end`."""

    def __init__(self, step: Mapping[str, Any], lateness_ms: float) -> None:
        options = StepOptions(step)
        self._length = max(int(options.positive("window") * 1e6), 1)
        self._fields = options.texts("fields", ())
        self._functions = options.texts("functions", ("count",))
        self._by = options.texts("by", ())
        self._lateness = int(options.not_negative("lateness", lateness_ms / 1000) * 1e6)
        unknown = [name for name in self._functions if name not in _FUNCTIONS]
        if unknown:
            raise BadStep(
                f"no function {', '.join(unknown)[:80]}; known are {', '.join(_FUNCTIONS)}"
            )
        if not self._fields and set(self._functions) != {"count"}:
            raise BadStep("'fields' is missing: what the functions are computed of")
        self._windows: dict[int, WindowCells] = {}
        self._newest = -(1 << 62)
        self._keys = 0
        options.close()

    def feed(self, record: Record) -> list[Record]:
        out: list[Record] = []
        if record.time > self._newest:
            self._newest = record.time
            out = self._close()
        start = record.time // self._length * self._length
        if start + self._length + self._lateness <= self._newest:
            raise LateRecord("its window was emitted already", out)
        if not self._add(start, record):
            raise LateRecord(f"more than {MOST_KEYS} keys in open windows", out)
        return out

    def _add(self, start: int, record: Record) -> bool:
        """False where there is no space for another key."""
        window = self._windows.get(start)
        if window is None:
            window = self._windows[start] = WindowCells(len(self._fields))
        key = key_of(record.values, self._by)
        if key not in window:
            if self._keys >= MOST_KEYS:
                return False
            self._keys += 1
        window.add(key, [number(lookup(record.values, name)) for name in self._fields])
        return True

    def _close(self) -> list[Record]:
        before = self._newest - self._lateness - self._length
        due = sorted(start for start in self._windows if start <= before)
        return [record for start in due for record in self._emit_window(start)]

    def _emit_window(self, start: int) -> list[Record]:
        window = self._windows.pop(start)
        self._keys -= len(window)
        end = start + self._length
        times = {"start": start / 1000, "end": end / 1000}
        return [
            Record(end, {**self._read_key(key), **times, **self._results(row)})
            for key, row in window.rows()
        ]

    def _read_key(self, key: str) -> dict[str, Any]:
        return dict(zip(self._by, json.loads(key), strict=True))

    def _results(self, row: Cell) -> dict[str, Any]:
        found: dict[str, Any] = {"count": int(row[0])} if "count" in self._functions else {}
        for index, name in enumerate(self._fields):
            cell = row[1 + _WIDTH * index :]
            found |= {f"{fn}_{name}": _FUNCTIONS[fn](cell) for fn in self._functions}
        return found

    def flush(self) -> list[Record]:
        return [record for start in sorted(self._windows) for record in self._emit_window(start)]

    def state(self) -> Any:
        windows = [[start, *window.state()] for start, window in self._windows.items()]
        return {"newest": self._newest, "windows": windows}

    def restore(self, state: Any) -> None:
        self._newest = state["newest"]
        self._windows = {}
        for start, *kept in state["windows"]:
            self._windows[start] = window = WindowCells(len(self._fields))
            window.restore(kept)
        self._keys = sum(map(len, self._windows.values()))
