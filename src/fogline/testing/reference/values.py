"""Values and what can be done to one of them: reading, arithmetic, comparing, per-record functions.

None stands for "no value" everywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

_BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


def number(value: Any) -> float | None:
    """A number, a numeric string or a boolean as a finite float; anything else is no value."""
    if isinstance(value, str):
        try:
            return number(float(value))
        except ValueError:
            return None
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def text(value: Any) -> str | None:
    """A value as a key shows it: 12.0 is "12"."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def as_json(keys: Mapping[str, Any]) -> str:
    return json.dumps(keys, separators=(",", ":"), ensure_ascii=False)


def arithmetic(operator: str, left: float | None, right: float | None) -> float | None:
    if left is None or right is None:
        return None
    if operator in "/%" and right == 0:
        return None
    if operator == "+":
        return number(left + right)
    if operator == "-":
        return number(left - right)
    if operator == "*":
        return number(left * right)
    if operator == "/":
        return number(left / right)
    return math.fmod(left, right)


def compare(operator: str, left: Any, right: Any) -> bool | None:
    """Two numbers or two strings; null when one side has no value."""
    if left is None or right is None:
        return None
    outcomes: dict[str, bool] = {
        ">": left > right,
        ">=": left >= right,
        "<": left < right,
        "<=": left <= right,
        "==": left == right,
        "!=": left != right,
    }
    return outcomes[operator]


# ── three-valued logic, as in SQL ──────────────────────────────────────────────────────────────


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def inverse(value: bool | None) -> bool | None:
    return None if value is None else not value


def either(left: bool | None, right: bool | None) -> bool | None:
    return inverse(both(inverse(left), inverse(right)))


# ── per-record functions ───────────────────────────────────────────────────────────────────────


def square_root(x: float) -> float | None:
    return math.sqrt(x) if x >= 0 else None


def square(x: float) -> float | None:
    return number(x * x)


def geohash(latitude: float, longitude: float, length: int) -> str | None:
    """Halves longitude and latitude in turn; five halvings make one letter."""
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        return None
    ranges = [[-180.0, 180.0], [-90.0, 90.0]]
    bits = []
    for turn in range(5 * length):
        side = ranges[turn % 2]
        middle = (side[0] + side[1]) / 2
        upper = (longitude, latitude)[turn % 2] >= middle
        side[0 if upper else 1] = middle
        bits.append("1" if upper else "0")
    letters = ["".join(bits[i : i + 5]) for i in range(0, len(bits), 5)]
    return "".join(_BASE32[int(letter, 2)] for letter in letters)


def per_record(function: str, parameters: Sequence[float], arguments: Sequence[Any]) -> Any:
    """SQRT, ABS, SQR or GEOHASH; null when an argument is."""
    known = [number(argument) for argument in arguments]
    values = [value for value in known if value is not None]
    if len(values) < len(known):
        return None
    if function == "SQRT":
        return square_root(values[0])
    if function == "ABS":
        return abs(values[0])
    if function == "SQR":
        return square(values[0])
    if function == "GEOHASH":
        return geohash(values[0], values[1], int(parameters[0]))
    raise ValueError(f"there is no function {function}")
