"""The partials of one key in one pane: number for number what the Spark source computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

NAN = math.nan
Numbers = list[float]

WIDTHS = {
    "count": 1, "sum": 1, "logsum": 1, "min": 1, "max": 1, "moments": 3, "comoments": 6,
    "timed": 7, "first": 2, "last": 2,
}  # fmt: skip
LISTS = ("values", "events")
COUNTING = ("count", "moments", "comoments", "timed")
"""Their first number counts records, and so is 0 over none."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One partial over inputs; `at` is its first place in the numbers or in the lists."""

    kind: str
    inputs: tuple[int, ...]
    at: int


class Cell:
    """Numbers and lists of one key and pane; `newest` is the time of its newest record."""

    __slots__ = ("lists", "newest", "nums", "pane")

    def __init__(self, pane: int, nums: Numbers, lists: list[Numbers], newest: int) -> None:
        self.pane = pane
        self.nums = nums
        self.lists = lists
        self.newest = newest

    def add(self, slots: tuple[Slot, ...], inputs: Numbers, time: float) -> None:
        """Adds a record; `inputs` hold NaN where it has no value, `time` is in milliseconds."""
        for slot in slots:
            value = inputs[slot.inputs[0]]
            if slot.kind == "events":
                self._events(slot, inputs, time)
            elif value == value:
                if slot.kind == "values":
                    self.lists[slot.at].append(value)
                elif slot.kind == "comoments":
                    _comoments(self.nums, slot.at, value, inputs[slot.inputs[1]])
                elif slot.kind == "timed":
                    _comoments(self.nums, slot.at, (time - self.pane) / 1000, value)
                    self.nums[slot.at + 6] = float(self.pane)
                else:
                    _ADD[slot.kind](self.nums, slot.at, value, time)

    def _events(self, slot: Slot, inputs: Numbers, time: float) -> None:
        values = [inputs[i] for i in slot.inputs]
        if any(value == value for value in values):
            self.lists[slot.at].append(time)
            for place, value in enumerate(values):
                self.lists[slot.at + 1 + place].append(value)


def _count(n: Numbers, at: int, v: float, t: float) -> None:
    n[at] += 1


def _sum(n: Numbers, at: int, v: float, t: float) -> None:
    n[at] = v if n[at] != n[at] else n[at] + v


def _logsum(n: Numbers, at: int, v: float, t: float) -> None:
    if v > 0:
        _sum(n, at, math.log(v), t)


def _min(n: Numbers, at: int, v: float, t: float) -> None:
    n[at] = n[at] if n[at] <= v else v


def _max(n: Numbers, at: int, v: float, t: float) -> None:
    n[at] = n[at] if n[at] >= v else v


def _first(n: Numbers, at: int, v: float, t: float) -> None:
    if not (n[at] < t or (n[at] == t and n[at + 1] <= v)):
        n[at], n[at + 1] = t, v


def _last(n: Numbers, at: int, v: float, t: float) -> None:
    if not (n[at] > t or (n[at] == t and n[at + 1] >= v)):
        n[at], n[at + 1] = t, v


def _moments(n: Numbers, at: int, v: float, t: float) -> None:
    if n[at] == 0:
        n[at : at + 3] = (1.0, v, 0.0)
        return
    n[at] += 1
    away = v - n[at + 1]
    n[at + 1] += away / n[at]
    n[at + 2] += away * (v - n[at + 1])


def _comoments(n: Numbers, at: int, a: float, b: float) -> None:
    if b != b:
        return
    if n[at] == 0:
        n[at : at + 6] = (1.0, a, b, 0.0, 0.0, 0.0)
        return
    n[at] += 1
    away_a = a - n[at + 1]
    away_b = b - n[at + 2]
    n[at + 1] += away_a / n[at]
    n[at + 2] += away_b / n[at]
    n[at + 3] += away_a * (a - n[at + 1])
    n[at + 4] += away_b * (b - n[at + 2])
    n[at + 5] += away_a * (b - n[at + 2])


_ADD: dict[str, Callable[[Numbers, int, float, float], None]] = {
    "count": _count, "sum": _sum, "logsum": _logsum, "min": _min, "max": _max,
    "first": _first, "last": _last, "moments": _moments,
}  # fmt: skip
