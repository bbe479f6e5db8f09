"""Times and durations in questions, and columns of times in answers."""

from __future__ import annotations

import re
import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fogline.formats.times import parse_time
from fogline.storage.errors import BadQuery
from fogline.storage.values import TIME, micros

_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)(us|ms|s|m|h|d|w)", re.ASCII)
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?",
    re.ASCII,
)
_LOST_PLUS = re.compile(r"(?<=[0-9]) (?=[0-9]{2}:?[0-9]{2}$)", re.ASCII)
"""In an address + is a space, so that of a zone arrives as one."""
_LONGEST = 1 << 60
ZONE = "Z"


def moment(text: str, now: int | None = None) -> int:
    """Microseconds since 1970 from such a number, ISO 8601, `now`, or `-15m` before now."""
    clock = time.time_ns() // 1000 if now is None else now
    if _NUMBER.fullmatch(text):
        return max(min(int(text), _LONGEST), -_LONGEST)
    if text == "now":
        return clock
    if text.startswith("-") and _DURATION.fullmatch(text[1:]):
        return clock - duration(text[1:])
    dated = _LOST_PLUS.sub("+", text[:50])
    found = parse_time(dated) if _ISO.fullmatch(dated) else None
    if found is None:
        hint = "2026-01-02T03:04:05Z, microseconds since 1970, or -15m before now"
        raise BadQuery(f"invalid time {text!r:.80}", hint)
    return found


def duration(text: str) -> int:
    """Microseconds from `60s`, `5m`, `1h`, …"""
    parts = _DURATION.fullmatch(text)
    found = round(float(parts[1]) * _UNITS[parts[2]]) if parts else 0
    if not parts or found > _LONGEST:
        raise BadQuery(f"invalid duration {text!r:.80}", "60s, 5m, 1h, 7d")
    return found


def texts(column: Any) -> Any:
    """A column of times as ISO 8601 in UTC; to the millisecond where all are whole ones."""
    return pc.binary_join_element_wise(write_times(column), ZONE, "")


def write_times(column: Any) -> Any:
    """The same without the `ZONE` at the end."""
    whole = bool(len(column)) and not (micros(column.fill_null(0)) % 1_000).any()
    unit = pa.timestamp("ms") if whole else TIME
    return pc.binary_replace_slice(column.cast(unit).cast(pa.string()), 10, 11, "T")


def text(moment: int) -> str:
    """One time, written as columns of times are."""
    found: str = texts(pa.array([moment]).cast(TIME))[0].as_py()
    return found
