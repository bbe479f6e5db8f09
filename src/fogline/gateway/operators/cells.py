"""The partials of keys in a pane: number for number what the Spark source computes."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fogline.gateway.operators.packing import pack_numbers, unpack_numbers

NAN = math.nan
Numbers: TypeAlias = "array[float]"
"""Doubles without objects around them: there may be many cells, and a gateway has little memory."""

WIDTHS = {
    "count": 1, "sum": 1, "logsum": 1, "min": 1, "max": 1, "moments": 3, "comoments": 6,
    "timed": 7, "first": 2, "last": 2,
}  # fmt: skip
LISTS = ("values", "events")
COUNTING = ("count", "moments", "comoments", "timed")
"""Their first number counts records, and so is 0 over none."""


@dataclass(frozen=True, slots=True)
class CellSlot:
    """One partial over inputs; `at` is its first place in the numbers or in the lists."""

    kind: str
    inputs: tuple[int, ...]
    at: int


class Cells:
    """The cells of one pane, by key: rows of one array of numbers, the lists of each, and the time
    of its newest record. There may be many, so none is an object of its own."""

    __slots__ = ("_empty", "_listed", "lists", "newest", "nums", "pane", "places")

    def __init__(self, pane: int, empty: Numbers, listed: int) -> None:
        """`empty`: the numbers over no record; `listed`: how many lists a cell has."""
        self.pane = pane
        self.places: dict[str, int] = {}
        self.nums = array("d")
        self.newest = array("q")
        self.lists: list[Numbers] = []
        self._empty = empty
        self._listed = listed

    def __len__(self) -> int:
        return len(self.places)

    def add(
        self, key: str, slots: tuple[CellSlot, ...], inputs: Sequence[float], time: int
    ) -> None:
        """A record; `inputs` hold NaN where it has no value, `time` is in microseconds."""
        place = self._place(key)
        self.newest[place] = max(self.newest[place], time)
        base, millis = place * len(self._empty), time / 1000
        for slot in slots:
            value = inputs[slot.inputs[0]]
            if slot.kind == "events":
                self._events(place * self._listed + slot.at, slot, inputs, millis)
            elif value == value:
                at = base + slot.at
                if slot.kind == "values":
                    self.lists[place * self._listed + slot.at].append(value)
                elif slot.kind == "comoments":
                    _comoments(self.nums, at, value, inputs[slot.inputs[1]])
                elif slot.kind == "timed":
                    _comoments(self.nums, at, (millis - self.pane) / 1000, value)
                    self.nums[at + 6] = float(self.pane)
                else:
                    _ADD[slot.kind](self.nums, at, value, millis)

    def numbers_of(self, place: int) -> Numbers:
        width = len(self._empty)
        return self.nums[place * width : (place + 1) * width]

    def lists_of(self, place: int) -> list[Numbers]:
        return self.lists[place * self._listed : (place + 1) * self._listed]

    def state(self) -> list[Any]:
        lists = [values.tolist() for values in self.lists]
        return [list(self.places), pack_numbers(self.nums), pack_numbers(self.newest), lists]

    def restore(self, state: Any) -> None:
        keys, nums, newest, lists = state
        self.places = {key: place for place, key in enumerate(keys)}
        self.nums, self.newest = unpack_numbers("d", nums), unpack_numbers("q", newest)
        self.lists = [array("d", values) for values in lists]

    def _place(self, key: str) -> int:
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = len(self.places)
            self.nums.extend(self._empty)
            self.newest.append(-(1 << 62))
            self.lists.extend(array("d") for _ in range(self._listed))
        return place

    def _events(self, at: int, slot: CellSlot, inputs: Sequence[float], millis: float) -> None:
        values = [inputs[i] for i in slot.inputs]
        if any(value == value for value in values):
            self.lists[at].append(millis)
            for place, value in enumerate(values):
                self.lists[at + 1 + place].append(value)


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
        n[at : at + 3] = array("d", (1.0, v, 0.0))
        return
    n[at] += 1
    delta = v - n[at + 1]
    n[at + 1] += delta / n[at]
    n[at + 2] += delta * (v - n[at + 1])


def _comoments(n: Numbers, at: int, a: float, b: float) -> None:
    if b != b:
        return
    if n[at] == 0:
        n[at : at + 6] = array("d", (1.0, a, b, 0.0, 0.0, 0.0))
        return
    n[at] += 1
    delta_a = a - n[at + 1]
    delta_b = b - n[at + 2]
    n[at + 1] += delta_a / n[at]
    n[at + 2] += delta_b / n[at]
    n[at + 3] += delta_a * (a - n[at + 1])
    n[at + 4] += delta_b * (b - n[at + 2])
    n[at + 5] += delta_a * (b - n[at + 2])


_ADD: dict[str, Callable[[Numbers, int, float, float], None]] = {
    "count": _count, "sum": _sum, "logsum": _logsum, "min": _min, "max": _max,
    "first": _first, "last": _last, "moments": _moments,
}  # fmt: skip
