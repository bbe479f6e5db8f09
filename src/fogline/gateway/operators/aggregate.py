"""`aggregate`: tumbling windows by key, as records that people can read.

A window is told once, when event time has passed its end by `lateness` seconds; records for windows
that are told are late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fogline.gateway.operators.base import (
    MOST_KEYS,
    BadStep,
    LateRecord,
    Operator,
    Options,
    Record,
    key_of,
    lookup,
    number,
)

# What is kept of a field: count, sum, smallest, largest.
Cell = list[float]
_FUNCTIONS: dict[str, Callable[[Cell], float | int | None]] = {
    "count": lambda c: int(c[0]),
    "sum": lambda c: c[1] if c[0] else None,
    "avg": lambda c: c[1] / c[0] if c[0] else None,
    "min": lambda c: c[2] if c[0] else None,
    "max": lambda c: c[3] if c[0] else None,
}
Window = tuple[dict[str, Any], int, list[Cell]]
"""The key's values, how many records, and a cell for every field."""


class Aggregate(Operator):
    """`{"op": "aggregate", "window": 60, "fields": ["t"], "functions": ["avg", "max"],
    "by": ["room"], "lateness": 5}` gives `avg_t`, `max_t`, `count` with `start` and `end`."""

    def __init__(self, step: Mapping[str, Any], lateness_ms: float) -> None:
        options = Options(step)
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
        self._windows: dict[int, dict[str, Window]] = {}
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
            raise LateRecord("its window was told already", out)
        if not self._add(start, record):
            raise LateRecord(f"more than {MOST_KEYS} keys in open windows", out)
        return out

    def _add(self, start: int, record: Record) -> bool:
        """False where there is no room for another key."""
        windows = self._windows.setdefault(start, {})
        key = key_of(record.values, self._by)
        if key not in windows:
            if self._keys >= MOST_KEYS:
                return False
            self._keys += 1
            named = {name: lookup(record.values, name) for name in self._by}
            windows[key] = (named, 0, [[0, 0.0, 0.0, 0.0] for _ in self._fields])
        named, count, cells = windows[key]
        windows[key] = (named, count + 1, cells)
        for name, cell in zip(self._fields, cells, strict=True):
            value = number(lookup(record.values, name))
            if value is not None:
                first = not cell[0]
                cell[2] = value if first or value < cell[2] else cell[2]
                cell[3] = value if first or value > cell[3] else cell[3]
                cell[0] += 1
                cell[1] += value
        return True

    def _close(self) -> list[Record]:
        before = self._newest - self._lateness - self._length
        due = sorted(start for start in self._windows if start <= before)
        return [record for start in due for record in self._told(start)]

    def _told(self, start: int) -> list[Record]:
        windows = self._windows.pop(start)
        self._keys -= len(windows)
        end = start + self._length
        times = {"start": start / 1000, "end": end / 1000}
        return [Record(end, {**w[0], **times, **self._results(w)}) for w in windows.values()]

    def _results(self, window: Window) -> dict[str, Any]:
        found: dict[str, Any] = {"count": window[1]} if "count" in self._functions else {}
        for name, cell in zip(self._fields, window[2], strict=True):
            found |= {f"{fn}_{name}": _FUNCTIONS[fn](cell) for fn in self._functions}
        return found

    def flush(self) -> list[Record]:
        return [record for start in sorted(self._windows) for record in self._told(start)]

    def state(self) -> Any:
        windows = [[start, list(w.items())] for start, w in self._windows.items()]
        return {"newest": self._newest, "windows": windows}

    def restore(self, state: Any) -> None:
        self._newest = state["newest"]
        self._windows = {
            start: {key: (named, count, cells) for key, (named, count, cells) in windows}
            for start, windows in state["windows"]
        }
        self._keys = sum(map(len, self._windows.values()))
