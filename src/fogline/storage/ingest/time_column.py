"""Event times of a whole column, where all are written in one plain way (`formats.times`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fogline.storage.values import END_TIME, FIRST_TIME, Integers

_ISO = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-](0\d|1[0-8])(:?[0-5]\d)?)$"
"""What Arrow and `formats.times` read alike."""
_WITH_SECONDS = len("2026-01-01T00:00:00Z")


def parse_column(column: Any) -> Integers | None:
    """Microseconds since 1970; nothing where single values have to be looked at, be it one."""
    if column.null_count:
        return None
    if pa.types.is_integer(column.type):
        return _in_range(_scale_times(column.to_numpy(zero_copy_only=False)))
    if pa.types.is_string(column.type) and _is_plain(column):
        try:
            found = pc.cast(column, pa.timestamp("us", tz="UTC")).cast(pa.int64())
        except pa.ArrowException:
            return None
        return _in_range(found.to_numpy(zero_copy_only=False))
    return None


def _is_plain(column: Any) -> bool:
    """Whether all are ISO times; most end with seconds and Z, which is seen without expressions."""
    if (
        pc.all(pc.ends_with(column, "Z")).as_py()
        and pc.min(pc.binary_length(column)).as_py() >= _WITH_SECONDS
    ):
        return True
    return bool(pc.all(pc.match_substring_regex(column, _ISO)).as_py())


def _scale_times(numbers: Integers) -> Integers:
    size = np.where(numbers >= 10**14, 1, np.where(numbers >= 10**11, 1_000, 1_000_000))
    in_reach = np.abs(numbers) < 10**18 // size
    return np.where(in_reach, numbers * np.where(in_reach, size, 0), END_TIME)


def _in_range(times: Integers) -> Integers | None:
    return times if ((times >= FIRST_TIME) & (times < END_TIME)).all() else None
