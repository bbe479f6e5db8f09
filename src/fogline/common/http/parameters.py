"""Query parameters: declared once, read and checked, described in OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fogline.common.errors import DataError


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """`read` makes the value from a text, or raises a `FoglineError` that means 400."""

    name: str
    about: str
    read: Callable[[str], Any] = str
    default: Any = None
    many: bool = False
    required: bool = False
    type: str = "string"


def read_parameters(
    known: Sequence[QueryParameter], given: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Their values, defaults included. Raises `DataError` for what is unknown, double or wrong."""
    by_name = {parameter.name: parameter for parameter in known}
    found: dict[str, Any] = {}
    for name, text in given:
        parameter = by_name.get(name)
        if parameter is None:
            hint = f"there is {', '.join(by_name)}" if by_name else "there is none here"
            raise DataError(f"unknown parameter {name!r:.80}", hint)
        if parameter.many:
            found.setdefault(name, []).append(parameter.read(text))
        elif name in found:
            raise DataError(f"{name} is given twice")
        else:
            found[name] = parameter.read(text)
    for parameter in known:
        if parameter.required and parameter.name not in found:
            raise DataError(f"{parameter.name} is missing", parameter.about)
        found.setdefault(parameter.name, parameter.default)
    return found


def between(name: str, lowest: int, highest: int) -> Callable[[str], int]:
    """A whole number with bounds."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        if len(digits) > 20 or not (digits.isascii() and digits.isdigit()):
            raise DataError(f"{name} must be a whole number, not {text!r:.80}")
        if not lowest <= int(text) <= highest:
            raise DataError(f"{name} is between {lowest} and {highest}, not {text}")
        return int(text)

    return read


def one_of(name: str, *allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise DataError(f"{name} is {' or '.join(allowed)}, not {text!r:.80}")
        return text

    return read
