"""JSON objects from and to bytes, whoever sent them.

Reading raises `DataError` and nothing else, whatever the bytes are; what it returns holds finite
numbers only and every name once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from fogline.common.errors import DataError

LARGEST = 8 << 20


_ENCODE = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def read_object(payload: bytes) -> dict[str, Any]:
    if len(payload) > LARGEST:
        raise DataError(f"a control message of {len(payload)} bytes", f"at most {LARGEST}")
    try:
        found = _decode(payload)
    except RecursionError as error:
        raise DataError("a control message that is nested too deeply") from error
    except ValueError as error:
        raise DataError(f"a control message that is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise DataError("a control message must be a JSON object")
    return found


def write_object(content: dict[str, Any]) -> bytes:
    """Raises `DataError` when it cannot be written, or nobody would read it."""
    try:
        payload = _ENCODE(content).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"a control message that JSON cannot hold: {error}") from error
    if len(payload) > LARGEST:
        raise DataError(f"a control message of {len(payload)} bytes", f"at most {LARGEST}")
    return payload


def _decode(payload: bytes) -> Any:
    return json.loads(
        payload.decode("utf-8"),
        parse_constant=_refuse,
        parse_float=_finite,
        object_pairs_hook=_unique,
    )


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice in one object")
    return found


# ── what is taken out of them ────────────────────────────────────────────────────────────────────


def text_of(data: dict[str, Any], key: str, longest: int, default: str | None = None) -> str:
    """A text of at most `longest` characters; without a default it must be there and not empty."""
    value = data.get(key, default)
    if not isinstance(value, str) or len(value) > longest or (not value and default is None):
        raise DataError(
            f"{key!r} in a control message must be a text of at most {longest} characters"
        )
    return value


def number_of(data: dict[str, Any], key: str) -> float:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{key!r} in a control message must be a number")
    try:
        return float(value)
    except OverflowError as error:
        raise DataError(f"the number {key!r} is too large") from error


def object_of(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise DataError(f"{key!r} in a control message must be an object")
    return value


def list_of(data: dict[str, Any], key: str, default: Sequence[Any] = ()) -> Sequence[Any]:
    value = data.get(key, list(default))
    if not isinstance(value, list):
        raise DataError(f"{key!r} in a control message must be a list")
    return value
