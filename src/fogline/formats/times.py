"""Event times as the Spark source reads them, in microseconds since the epoch.

A number from 1e14 on is microseconds, from 1e11 on milliseconds, below seconds; a text is such a
number or ISO 8601, UTC where it names no zone. Times outside the years 1 to 9998 are no times.
"""

from __future__ import annotations

import math
import re
from datetime import date
from functools import lru_cache
from typing import Any

from fogline.formats.values import parse_number

FIRST = -62_135_596_800_000_000
END = 253_370_764_800_000_000
_EPOCH = date(1970, 1, 1).toordinal()
_LONG = re.compile(r"[+-]?[0-9]+")
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r" *(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2}))?)?)?"
)


def time_of(value: Any) -> int | None:
    """The time that a value of a message is; None where it is none."""
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return of_long(value)
    return of_double(value) if isinstance(value, float) else None


def parse_time(text: str) -> int | None:
    text = text.strip(" ")
    if len(text) <= 64 and _LONG.fullmatch(text):
        return of_long(int(text))
    if len(text) >= 10 and text[4] == "-" and text[7] == "-":
        return _iso(text)
    found = parse_number(text)
    return None if found is None else of_double(found)


def of_long(value: int) -> int | None:
    if not -(1 << 63) <= value < 1 << 63:
        return None
    if value >= 100_000_000_000_000:
        return in_range(value)
    if value >= 100_000_000_000:
        return value * 1_000
    return None if value < FIRST // 1_000_000 else value * 1_000_000


def of_double(value: float) -> int | None:
    if not abs(value) < 1e18:
        return None
    scale = 1.0 if value >= 1e14 else 1e3 if value >= 1e11 else 1e6
    scaled = value * scale
    if abs(scaled) > 1e18:
        return None
    below = math.floor(scaled)
    return in_range(below + (scaled - below >= 0.5))


def in_range(micros: int) -> int | None:
    """The time itself where it is of the years 1 to 9998."""
    return micros if FIRST <= micros < END else None


def _iso(text: str) -> int | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    day, hour, minute, second, fraction, sign, zone_hour, zone_minute = found.groups()
    days = _days(day)
    if days is None:
        return None
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    offset_hours, offset_minutes = int(zone_hour or 0), int(zone_minute or 0)
    if hours > 23 or max(minutes, seconds, offset_minutes) > 59 or offset_hours > 18:
        return None
    micros = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000
    micros += int((fraction or "0")[:6].ljust(6, "0"))
    offset = (offset_hours * 60 + offset_minutes) * 60_000_000
    return in_range(micros + offset if sign == "-" else micros - offset)


@lru_cache(64)  # messages come in the order of their days
def _days(text: str) -> int | None:
    """Since the epoch."""
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return None
