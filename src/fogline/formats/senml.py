"""SenML: packs of RFC 8428, and the older form `{"e": [entries], "bt": …}`.

Entries of one base name and one time make one record, in the order in which they first appear. A
message may start with `epoch_ms,`, its arrival time.
"""

from __future__ import annotations

import re
from typing import Any

from fogline.formats.errors import MOST_RECORDS, BadMessage, too_many_records
from fogline.formats.json import parse
from fogline.formats.times import in_range, parse_time, time_of
from fogline.formats.values import OTHER, NumberText, Reading, parse_number

_VALUES = ("v", "vs", "vb", "vd", "sv")
_RELATIVE = (1 << 28) * 1_000_000
"""Times below this, in microseconds, are relative to the arrival, as RFC 8428 says."""
_NEWEST_VERSION = 10
_ARRIVAL = re.compile(r"([0-9]+),")


class Pack:
    """Reads one message."""

    def __init__(self, entity: str | None, keep_texts: bool) -> None:
        self._entity = entity
        self._keep_texts = keep_texts
        self._rows: dict[tuple[str | None, int], Reading] = {}
        self._name: str | None = None
        self._time = 0
        self._value = 0.0

    def read(self, text: str, arrival: int) -> list[Reading]:
        """The records of a message. Raises `BadMessage`."""
        found = _ARRIVAL.match(text)
        if found:
            own = parse_time(found[1])
            if own is None:
                raise BadMessage("the arrival time is not a time")
            arrival, text = own, text[found.end() :]
        data = parse(text, self._keep_texts)
        if isinstance(data, dict):
            self._base(data)
            data = data.get("e")
            if not isinstance(data, list):
                raise BadMessage("not SenML: no list e")
        if not isinstance(data, list):
            raise BadMessage("not JSON: expected a SenML pack")
        for entry in data:
            self._add(entry, arrival)
        return list(self._rows.values())

    def _add(self, entry: Any, arrival: int) -> None:
        if not isinstance(entry, dict):
            raise BadMessage("not JSON: expected an entry")
        self._base(entry)
        value = next((entry[v] for v in _VALUES if entry.get(v) is not None), None)
        name = entry.get("n")
        if value is None and name is None:
            return
        total = self._time + (_time(entry["t"]) if entry.get("t") is not None else 0)
        time = in_range(arrival + total if total < _RELATIVE else total)
        if time is None:
            raise BadMessage("not SenML: a time is not a time")
        row = self._row(time)
        if name is not None and not _is_text(name):
            raise BadMessage("not SenML: a name is not a string")
        if value is not None:
            row["" if name is None else str(name)] = self._final(entry, value)

    def _final(self, entry: dict[str, Any], value: Any) -> Any:
        if isinstance(value, dict | list):
            return OTHER
        if self._value and entry.get("v") is not None:
            own = _number(value)
            return value if own is None else self._value + own
        return value

    def _row(self, time: int) -> dict[str, Any]:
        key = (self._name, time)
        found = self._rows.get(key)
        if found is None:
            if len(self._rows) >= MOST_RECORDS:
                raise too_many_records()
            named = self._entity is not None and self._name is not None
            values: dict[str, Any] = {str(self._entity): self._name} if named else {}
            found = self._rows[key] = (time, values, self._name)
        return found[1]

    def _base(self, entry: dict[str, Any]) -> None:
        for label in entry:
            if label[-1:] == "_":
                text = "a SenML field whose name ends in _ must be known"
                raise BadMessage(f"not understood: {text}")
        if entry.get("bver") is not None:
            version = _number(entry["bver"])
            if version is None or version > _NEWEST_VERSION:
                raise BadMessage(f"not understood: SenML version above {_NEWEST_VERSION}")
        if entry.get("bn") is not None:
            if not _is_text(entry["bn"]):
                raise BadMessage("not SenML: the base name is not a string")
            self._name = str(entry["bn"])
        if entry.get("bt") is not None:
            self._time = _time(entry["bt"])
        if entry.get("bv") is not None:
            value = _number(entry["bv"])
            if value is None:
                raise BadMessage("not SenML: the base value is not a number")
            self._value = value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, NumberText)


def _time(value: Any) -> int:
    found = time_of(value)
    if found is None:
        raise BadMessage("not SenML: a time is not a time")
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return parse_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
