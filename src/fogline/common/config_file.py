"""Configuration files: YAML into dataclasses, with the place of whatever is wrong in them.

A dataclass says what may stand in a file: its fields are the keys, each with its type, and with
`within` the bounds of a number. What has no default must be given, what is unknown is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import yaml

from fogline.common.errors import DataError, UsageError

_BOUNDS = "bounds"
_MOST = 1e12
_EXPECTED = {str: "a text", Path: "a path", bool: "true or false", int: "a whole number, 0 or more"}
T = TypeVar("T")


def within(least: float, most: float, default: Any = MISSING) -> Any:
    """A number of a dataclass that has bounds; others are 0 or more, or above 0 if not whole."""
    if default is MISSING:
        return field(metadata={_BOUNDS: (least, most)})
    return field(default=default, metadata={_BOUNDS: (least, most)})


def port() -> Any:
    return within(0, 65535, 0)


def read_yaml(path: Path) -> Any:
    """Whatever is in a file. Raises `DataError` when it cannot be read, else `UsageError`."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        line = str(error).replace("\n", " ")
        raise UsageError(f"{path} is not YAML: {line}") from error


class Reader:
    """For one file: paths in it are relative to `base`, and `example` is shown as a hint."""

    def __init__(self, base: Path, example: str) -> None:
        self._base = base
        lines = [line.rstrip() for line in example.splitlines() if line.strip()]
        nested = any(line[0].isspace() for line in lines)
        self._hint = f"for example {'; '.join(lines)}" if not nested else f"for example {lines[0]}"

    def make(self, kind: type[T], data: Any, name: str) -> T:
        """The dataclass from a mapping; `name` is the place. Raises `UsageError`."""
        values = self.mapping(data, name)
        known = _fields(kind)
        unknown = [key for key in values if key not in known]
        if unknown:
            raise UsageError(f"{name}: unknown {', '.join(unknown)}", f"known: {', '.join(known)}")
        missing = [
            key for key, (item, _) in known.items() if key not in values and _is_required(item)
        ]
        if missing:
            raise UsageError(f"{name}: {', '.join(missing)} is missing")
        made = {}
        for key, value in values.items():
            item, expected = known[key]
            made[key] = self._value(value, expected, f"{name}: {key}", item.metadata.get(_BOUNDS))
        return kind(**made)

    def mapping(self, data: Any, name: str) -> dict[str, Any]:
        if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
            raise UsageError(f"{name}: must be a mapping", self._hint)
        return data

    def labels(self, data: Any, name: str) -> dict[str, str]:
        """Names and texts; numbers count as texts."""
        return {key: str(value) for key, value in self.mapping(data, name).items()}

    def list(self, data: Any, name: str) -> list[Any]:
        if not isinstance(data, list):
            raise UsageError(f"{name} must be a list", self._hint)
        return data

    def _value(self, value: Any, expected: Any, name: str, bounds: Any) -> Any:
        if get_origin(expected) is UnionType:
            (expected,) = (kind for kind in get_args(expected) if kind is not NoneType)
        if is_dataclass(expected):
            return self.make(expected, value, name)  # type: ignore[arg-type]
        if get_origin(expected) is tuple:
            return self._several(value, get_args(expected)[0], name)
        if get_origin(expected) is Mapping:
            kind = get_args(expected)[1]
            found = self.mapping(value, name).items()
            return {key: self._value(one, kind, f"{name}: {key}", None) for key, one in found}
        if expected is Path and isinstance(value, str) and value:
            return self._base / value
        if expected in (str, bool) and isinstance(value, expected):
            return value
        if expected in (int, float):
            return _number(value, expected, name, bounds)
        raise _type_error(value, _EXPECTED[expected], name)

    def _several(self, value: Any, kind: Any, name: str) -> tuple[Any, ...]:
        if kind is str and not isinstance(value, list):
            raise _type_error(value, "a list of texts", name)
        return tuple(self._value(one, kind, name, None) for one in self.list(value, name))


def _fields(kind: Any) -> dict[str, tuple[Field[Any], Any]]:
    types = get_type_hints(kind)
    return {item.name: (item, types[item.name]) for item in fields(kind)}


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _number(value: Any, expected: type, name: str, bounds: tuple[float, float] | None) -> Any:
    is_number = type(value) is int or (expected is float and type(value) is float)
    if bounds is not None:
        least, most = bounds
        fits = is_number and least <= value <= most
        what = "a whole number" if expected is int else "a number"
        text = f"{what} from {least:g} to {most:g}"
    elif expected is int:
        fits, text = is_number and 0 <= value <= _MOST, _EXPECTED[int]
    else:
        fits, text = is_number and 0 < value <= _MOST, "a number above 0"
    if not fits:
        raise _type_error(value, text, name)
    return expected(value)


def _type_error(value: Any, expected: str, name: str) -> UsageError:
    """What stands there is shown only if it is one value: a list could hold anything."""
    if isinstance(value, str | int | float | NoneType):
        return UsageError(f"{name} is {value!r:.80}, not {expected}")
    return UsageError(f"{name} is not {expected}")
