"""What operators share: records, the operator itself, and how wrong steps are reported.

An operator is pure: it sees records in order and gives records, knows no clock and does no I/O.
The same records always give the same results, which is what makes replay after a crash exact. All
that it remembers is in `state`, which is JSON.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fogline.formats.values import lookup
from fogline.gateway.operators.hashing import xxh64

MOST_KEYS = 50_000
"""Keys that one operator remembers at most, so that a device cannot fill the memory."""

_ENCODE = json.JSONEncoder(ensure_ascii=False, default=str).encode


class ReceivedMessage:
    """A message as it came: `arrival` in microseconds since the epoch."""

    __slots__ = ("_hash", "arrival", "payload", "topic")

    def __init__(self, topic: str, payload: bytes, arrival: int) -> None:
        self.topic = topic
        self.payload = payload
        self.arrival = arrival
        self._hash: int | None = None

    @property
    def hash(self) -> int:
        """XXH64 of the content, as the Spark source makes it."""
        if self._hash is None:
            self._hash = xxh64(self.payload)
        return self._hash


class Record(NamedTuple):
    """A reading: its event time in microseconds, its values, and the message it came in."""

    time: int
    values: dict[str, Any]
    message: ReceivedMessage | None = None


class LateRecord(Exception):  # noqa: N818
    """A record came when its window was closed already; the text is the reason. What left
    nevertheless is in `out`."""

    def __init__(self, reason: str, out: list[Record]) -> None:
        super().__init__(reason)
        self.out = out


class BadStep(Exception):  # noqa: N818
    """A step cannot be run; the text says why."""


class GatewayOperator(ABC):
    """One step of a chain. The defaults are those of an operator that remembers nothing."""

    @abstractmethod
    def feed(self, record: Record) -> list[Record]:
        """What leaves when this record comes. Raises `LateRecord` and then changes nothing but
        what it knows of the time."""

    def flush(self) -> list[Record]:
        """Everything that is still held back; it is then forgotten."""
        return []

    def state(self) -> Any:
        """All that is remembered, as JSON."""
        return None

    def restore(self, state: Any) -> None:
        """Goes on from what `state` gave, also of an operator with other parameters."""
        return


def number(value: Any) -> float | None:
    """A value as a finite number; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return made if math.isfinite(made) else None


def key_of(values: Mapping[str, Any], by: tuple[str, ...]) -> str:
    """The values of the key fields as one text, the same for the same values."""
    return _ENCODE([lookup(values, name) for name in by])


# ── reading steps ────────────────────────────────────────────────────────────────────────────────


class StepOptions:
    """The fields of a step, taken one by one; `close` refuses what nobody took."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        self._left = {key: value for key, value in step.items() if key not in ("op", "name")}

    def has(self, name: str) -> bool:
        return name in self._left

    def take(
        self, name: str, check: Callable[[Any], bool], expected: str, default: Any = ...
    ) -> Any:
        if name not in self._left:
            if default is ...:
                raise BadStep(f"'{name}' is missing: {expected}")
            return default
        value = self._left.pop(name)
        if not check(value):
            raise BadStep(f"'{name}' is {_short(value)}, not {expected}")
        return value

    def positive(self, name: str, default: Any = ...) -> Any:
        return self.take(name, lambda v: is_number(v) and v > 0, "a number above 0", default)

    def not_negative(self, name: str, default: Any = ...) -> Any:
        return self.take(name, lambda v: is_number(v) and v >= 0, "a number, 0 or more", default)

    def any_number(self, name: str, default: Any = ...) -> Any:
        return self.take(name, is_number, "a number", default)

    def text(self, name: str, default: Any = ...) -> Any:
        return self.take(name, lambda v: isinstance(v, str) and v != "", "a text", default)

    def texts(self, name: str, default: Any = ...) -> tuple[str, ...]:
        found = self.take(name, _is_texts, "a list of names", default)
        return (found,) if isinstance(found, str) else tuple(found)

    def close(self) -> None:
        if self._left:
            raise BadStep(f"unknown {', '.join(map(_short, self._left))}")


def is_number(value: Any) -> bool:
    return number(value) is not None


def _is_texts(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    return isinstance(value, list | tuple) and all(isinstance(v, str) and v for v in value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
