"""Event times of messages, read as the Spark connector reads them (docs/connector.md)."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fogline.storage.values import END_TIME, FIRST_TIME, Integers

NO_TIME = np.iinfo(np.int64).min
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def parse(value: object) -> int:
    """Microseconds since 1970 from a number (its size tells the unit) or ISO 8601, or `NO_TIME`."""
    if isinstance(value, bool):
        return NO_TIME
    if isinstance(value, int | float):
        return _number(value)
    return _text(value) if isinstance(value, str) else NO_TIME


def parse_column(column: Any) -> Integers | None:
    """The same for a column of one type; nothing where single values have to be looked at."""
    if pa.types.is_integer(column.type):
        return _scaled(column.fill_null(0).to_numpy(zero_copy_only=False), column)
    if pa.types.is_string(column.type):
        try:
            times = pc.cast(column, pa.timestamp("us", tz="UTC")).cast(pa.int64())
        except pa.ArrowException:
            return None
        return _bounded(times.fill_null(NO_TIME).to_numpy(zero_copy_only=False))
    return None


def _scaled(numbers: Integers, column: Any) -> Integers:
    size = np.where(numbers >= 10**14, 1, np.where(numbers >= 10**11, 1_000, 1_000_000))
    in_reach = np.abs(numbers) < 10**18 // size
    times = np.where(in_reach, numbers * np.where(in_reach, size, 0), NO_TIME)
    return _bounded(np.where(_missing(column), NO_TIME, times))


def _missing(column: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _bounded(times: Integers) -> Integers:
    return np.asarray(np.where((times >= FIRST_TIME) & (times < END_TIME), times, NO_TIME))


def _number(value: float) -> int:
    if not (isinstance(value, int) or math.isfinite(value)) or abs(value) >= 10**18:
        return NO_TIME
    scale = 1 if value >= 10**14 else 1_000 if value >= 10**11 else 1_000_000
    return bounded(math.floor(value * scale + 0.5) if isinstance(value, float) else value * scale)


def _text(value: str) -> int:
    text = value.strip(" ")
    try:
        if text[4:5] == "-" and text[7:8] == "-":
            time = datetime.fromisoformat(text)
            return bounded((_zoned(time) - _EPOCH) // _MICRO)
        return _number(int(text) if text.lstrip("-").isdigit() else float(text))
    except (ValueError, OverflowError):
        return NO_TIME


def _zoned(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def bounded(time: int) -> int:
    return time if FIRST_TIME <= time < END_TIME else NO_TIME
