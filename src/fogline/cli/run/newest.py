"""A summary of many results: the newest of each insight and key, the busiest first.

No terminal here: results in, rows of text out. Memory is bounded: beyond `MOST_KEYS` keys, results
of further ones are only counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Literal

from fogline.model.results import Result

MOST_KEYS = 10_000
_LONGEST = 500
"""Characters of one cell: more does not fit any terminal."""


@dataclass(frozen=True, slots=True)
class NewestResult:
    """The newest result of an insight and key, and how many there were."""

    insight: str
    keys: str
    value: str
    end: str
    count: int


@dataclass(slots=True)
class _Newest:
    result: Result
    count: int = 0


class NewestResults:
    def __init__(self, insights: Sequence[str], most_keys: int = MOST_KEYS) -> None:
        self._insights: dict[str, dict[str, _Newest]] = {name: {} for name in insights}
        self._most_keys = most_keys
        self._keys = 0
        self.uncounted: dict[str, int] = dict.fromkeys(insights, 0)
        """Results of keys beyond the most, by insight."""
        self.newest_ms = 0
        """The latest end of any result."""

    def add(self, results: Iterable[Result]) -> None:
        for result in results:
            self.newest_ms = max(self.newest_ms, result.end_ms)
            keys = self._insights.setdefault(result.insight, {})
            known = keys.get(result.key)
            if known is None:
                if self._keys >= self._most_keys:
                    self.uncounted[result.insight] = self.uncounted.get(result.insight, 0) + 1
                    continue
                self._keys += 1
                known = keys[result.key] = _Newest(result)
            known.result = result
            known.count += 1

    def rows(self, most: int) -> list[NewestResult]:
        """At most `most` lines, divided fairly among insights. If an insight has more keys than are
        shown, its last line counts the rest; one without results has a line that says so."""
        found: list[NewestResult] = []
        for name, count in self._split_lines(most).items():
            keys = self._insights[name]
            if count and not keys and not self.uncounted.get(name):
                found.append(NewestResult(name, "", "no result yet", "", 0))
                continue
            whole = count >= len(keys) and not self.uncounted.get(name)
            shown = nsmallest(count if whole else count - 1, keys.items(), key=_by_count)
            found += [_row(newest) for _, newest in shown]
            if not whole and count:
                found.append(self._rest(name, {key for key, _ in shown}))
        return found

    def _rest(self, name: str, shown: set[str]) -> NewestResult:
        others = [newest for key, newest in self._insights[name].items() if key not in shown]
        beyond = self.uncounted.get(name, 0)
        count = sum(newest.count for newest in others) + beyond
        latest = max(others, key=lambda newest: newest.result.end_ms, default=None)
        end = "" if latest is None else end_of(latest.result)
        many = f"{len(others):,} other keys" if not beyond else "other keys"
        return NewestResult(name, f"… {many}", "", end, count)

    def _split_lines(self, most: int) -> dict[str, int]:
        """Lines for each insight: one in turn until there are no more."""
        needed = {
            name: max(1, len(keys) + bool(self.uncounted.get(name)))
            for name, keys in self._insights.items()
        }
        lines = dict.fromkeys(needed, 0)
        left = most
        while left > 0 and (open_ := [n for n in needed if lines[n] < needed[n]]):
            for name in open_[:left]:
                lines[name] += 1
            left -= len(open_)
        return lines


def _by_count(item: tuple[str, _Newest]) -> tuple[int, str]:
    return -item[1].count, item[0]


def _row(newest: _Newest) -> NewestResult:
    result = newest.result
    return NewestResult(
        result.insight, key_text(result), value_text(result), end_of(result), newest.count
    )


def end_of(result: Result, precision: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """When the window ended: `2026-01-02 03:04:05`, in UTC."""
    text = str(json.loads(result.record)["window"]["end"]).replace("T", " ")
    return text[: 19 if precision == "seconds" else 23]


def key_text(result: Result) -> str:
    return plain(", ".join(f"{k}={_show_value(v)}" for k, v in json.loads(result.key).items()))


def value_text(result: Result) -> str:
    """Numbers short, lists as `key value, key value`."""
    return plain(_show_value(json.loads(result.record)["value"]))


def _show_value(value: Any) -> str:
    match value:
        case float():
            return f"{value:.6g}"
        case str():
            return value
        case list():
            return ", ".join(_show_value(item) for item in value)
        case Mapping() if set(value) == {"keys", "value"}:
            keys = " ".join(_show_value(key) for key in value["keys"].values())
            return f"{keys} {_show_value(value['value'])}"
        case _:
            return json.dumps(value, ensure_ascii=False)


def plain(text: str) -> str:
    """Text that cannot steer a terminal; what is not printable is replaced."""
    short = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return short if short.isprintable() else "".join(c if c.isprintable() else "�" for c in short)
