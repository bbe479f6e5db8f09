"""`deadband`: a value goes on only when it differs enough from the last one that did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.formats.values import lookup
from fogline.gateway.operators.base import (
    MOST_KEYS,
    BadStep,
    GatewayOperator,
    Record,
    StepOptions,
    key_of,
    number,
)


class DeadbandOperator(GatewayOperator):
    """`{"op": "deadband", "field": "t", "by": ["room"], "band": 0.5, "max_seconds": 600}`.

    `band` is absolute, `percent` relative to the last value; with both, either is enough. What is
    no number goes on when it is another one. Beyond 50,000 keys the one quiet longest is forgotten.
    """

    def __init__(self, step: Mapping[str, Any]) -> None:
        options = StepOptions(step)
        self._field = options.text("field")
        self._by = options.texts("by", ())
        self._band = options.not_negative("band", None)
        self._percent = options.not_negative("percent", None)
        if self._band is None and self._percent is None:
            raise BadStep("it needs 'band' or 'percent'")
        longest = options.positive("max_seconds", None)
        self._longest = None if longest is None else longest * 1e6
        self._last: dict[str, tuple[int, Any]] = {}
        options.close()

    def feed(self, record: Record) -> list[Record]:
        value = lookup(record.values, self._field)
        key = key_of(record.values, self._by)
        last = self._last.get(key)
        if last is not None and not self._differs(last, record.time, value):
            return []
        # Put behind the others, so that the first one is the one quiet longest.
        self._last.pop(key, None)
        self._last[key] = (record.time, value)
        if len(self._last) > MOST_KEYS:
            del self._last[next(iter(self._last))]
        return [record]

    def _differs(self, last: tuple[int, Any], time: int, value: Any) -> bool:
        if self._longest is not None and time - last[0] >= self._longest:
            return True
        old, new = number(last[1]), number(value)
        if old is None or new is None:
            return bool(last[1] != value)
        distance = abs(new - old)
        absolute = self._band is not None and distance > self._band
        return absolute or (self._percent is not None and distance > abs(old) * self._percent / 100)

    def state(self) -> Any:
        return [[key, time, value] for key, (time, value) in self._last.items()]

    def restore(self, state: Any) -> None:
        self._last = {key: (time, value) for key, time, value in state}
