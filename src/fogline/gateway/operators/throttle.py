"""`throttle`, also called `publish`: at most one record per key in so many seconds of event time.

Time is cut into stretches of that length; of every stretch the latest record of each key goes on,
once event time has passed its end by `lateness` seconds. Records of stretches that are closed go no
further: leaving records out is what this is for.

What is held is held as text: of many keys that takes a fifth of the memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fogline.gateway.operators.base import (
    MOST_KEYS,
    BadStep,
    GatewayOperator,
    Record,
    StepOptions,
    key_of,
)

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ThrottleOperator(GatewayOperator):
    """`{"op": "throttle", "seconds": 10, "by": ["room"]}`, or `rate`, records a second."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        options = StepOptions(step)
        if options.has("rate") == options.has("seconds"):
            raise BadStep("it needs 'seconds' between records, or their 'rate' a second")
        seconds = options.positive("seconds", None) or 1 / options.positive("rate")
        self._length = max(int(seconds * 1e6), 1)
        self._by = options.texts("by", ())
        self._lateness = int(options.not_negative("lateness", 0.0) * 1e6)
        self._held: dict[str, tuple[int, str]] = {}
        self._open = -(1 << 62)
        """The start of the first stretch that is not closed."""
        options.close()

    def feed(self, record: Record) -> list[Record]:
        start = (record.time - self._lateness) // self._length * self._length
        out = self._close(start) if start > self._open else []
        if record.time < self._open:
            return out
        key = key_of(record.values, self._by)
        held = self._held.get(key)
        if held is None or held[0] <= record.time:
            # A key whose stretch is over while another one is still open: with lateness.
            if held is not None and held[0] // self._length != record.time // self._length:
                out.append(_record(held))
            self._held[key] = (record.time, _ENCODE(record.values))
        if len(self._held) > MOST_KEYS:
            out += self.flush()
        return out

    def _close(self, start: int) -> list[Record]:
        self._open = start
        closed = [key for key, (time, _) in self._held.items() if time < start]
        return [_record(self._held.pop(key)) for key in closed]

    def flush(self) -> list[Record]:
        out = [_record(held) for held in self._held.values()]
        self._held.clear()
        return out

    def state(self) -> Any:
        return {"open": self._open, "held": [[k, t, v] for k, (t, v) in self._held.items()]}

    def restore(self, state: Any) -> None:
        self._open = state["open"]
        self._held = {key: (time, values) for key, time, values in state["held"]}


def _record(held: tuple[int, str]) -> Record:
    time, values = held
    return Record(time, json.loads(values))
