"""Values of messages, found by name and converted to a type as the Spark source does.

What cannot be read as the column's type is None. A number of a message is a `NumberText`, its own
text, where a column of texts may ask for it, else a plain number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

_is_numeric = re.compile(r"[0-9.+\-eE ]+").fullmatch
_LONG = re.compile(r"[+-]?[0-9]{1,19}")
OTHER: Any = object()
"""An object or a list: there, but nothing a column can hold."""
Reading = tuple[int, dict[str, Any], str | None]
"""A record: its event time in microseconds, its values by name, and SenML's base name."""


class NumberText(str):
    """A number as the message wrote it."""

    __slots__ = ()


def lookup(values: Mapping[str, Any], name: str) -> Any:
    """A field by its name, else by its path with dots; None where there is none."""
    found = values.get(name)
    if found is not None or "." not in name:
        return found
    level: Any = values
    for part in name.split("."):
        if not isinstance(level, Mapping):
            return None
        level = level.get(part)
    return level


def named_value(values: Mapping[str, Any], metric: str, metric_field: str, value_field: str) -> Any:
    """The value of a metric in a record that names its metric; None where it names another."""
    return values.get(value_field) if metric_name(values.get(metric_field)) == metric else None


def metric_name(value: Any) -> str | None:
    """What the field that names a metric holds: only a text is a name."""
    return value if isinstance(value, str) and not isinstance(value, NumberText) else None


def parse_number(text: str) -> float | None:
    """The number that a text is, blanks around it allowed; decimal notation only."""
    if not _is_numeric(text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def as_double(value: Any) -> float | None:
    found: float | None
    if isinstance(value, str):
        found = parse_number(value)
    elif isinstance(value, int | float):
        try:
            found = float(value)
        except OverflowError:
            return None
    else:
        return None
    return found if found is not None and math.isfinite(found) else None


def number_in(value: Any) -> Any:
    """The number that a text is, where it is a finite one; any other value as it is."""
    found = parse_number(value) if isinstance(value, str) else None
    return found if found is not None and math.isfinite(found) else value


def as_long(value: Any) -> int | None:
    if isinstance(value, str) and _LONG.fullmatch(value):
        exact: int | None = int(value)
    elif isinstance(value, int):
        exact = int(value)
    else:
        found = as_double(value)
        exact = int(found) if found is not None and found == math.floor(found) else None
    return exact if exact is not None and -(1 << 63) <= exact < 1 << 63 else None


def as_boolean(value: Any) -> bool | None:
    if isinstance(value, str) and not isinstance(value, NumberText) and len(value) <= 5:
        word = value.lower()
        if word in ("true", "false"):
            return word == "true"
    found = as_double(value)
    return found == 1 if found in (0.0, 1.0) else None


def as_text(value: Any) -> str | None:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return java_double(value) if isinstance(value, float) else None


CONVERT: dict[str, Callable[[Any], Any]] = {
    "double": as_double,
    "long": as_long,
    "string": as_text,
    "boolean": as_boolean,
}


def java_double(value: float) -> str:
    """A number as Java writes it: it is part of the keys of panes."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    if 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, power = _shortest(value)
    return f"{digits}E{power}"


def _shortest(value: float) -> tuple[str, int]:
    """The shortest digits that give the value, one of them before the dot, and the power of ten."""
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) if whole != "0" else len(fraction.lstrip("0")) - len(fraction)
    power = int(exponent or 0) + leading - 1
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}", power
