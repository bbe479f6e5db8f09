"""Moments as numbers and as texts."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)


def iso_micros(time: int) -> str:
    """Microseconds since 1970, of the years 1 to 9999, as ISO 8601 in UTC, exactly."""
    return (_EPOCH + timedelta(microseconds=time)).isoformat(timespec="microseconds") + "Z"
