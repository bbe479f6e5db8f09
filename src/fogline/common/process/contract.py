"""Contracts between processes: dataclasses written as JSON and read back with every key checked.

The types of the fields are the contract. A field whose default is None is left out while it is
None; every other field is required. A class with `as_json` and `from_json` of its own uses these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from fogline.common.errors import DataError

T = TypeVar("T")
_Reader = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """What every child process reports."""

    state: str
    """`running`, or what is wrong."""
    revision: int | None = None
    """The configuration that is in force."""


def to_json(value: Any) -> Any:
    """What `json.dumps` takes."""
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "as_json"):
        return value.as_json()
    if is_dataclass(value):
        names = _names(cast(Hashable, type(value)))
        found = ((name, optional, getattr(value, name)) for name, optional in names)
        return {n: to_json(item) for n, optional, item in found if not optional or item is not None}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value]


def from_json(kind: type[T], data: object) -> T:
    """Raises DataError that names the key which is missing, unknown or of another type."""
    return cast(T, _reader(cast(Hashable, kind))(data, kind.__name__))


@cache
def _names(kind: Any) -> tuple[tuple[str, bool], ...]:
    return tuple((item.name, _is_optional(item)) for item in fields(kind))


def _is_optional(item: Field[Any]) -> bool:
    return item.default is None


@cache
def _reader(kind: Any) -> _Reader:
    """How a value of this type is read; the text is where it stands."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda data, where: data
    if origin in (Union, UnionType):
        return _union_reader(inner)
    if origin is tuple:
        return _tuple_reader(inner)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(inner[1]))
    if hasattr(kind, "from_json"):
        return lambda data, where: kind.from_json(data)
    if is_dataclass(kind):
        return _dataclass_reader(cast(type, kind))
    return _scalar_reader((float, int) if kind is float else (kind,), kind)


def _scalar_reader(accepted: tuple[type, ...], kind: type) -> _Reader:
    def read(data: Any, where: str) -> Any:
        if not isinstance(data, accepted) or (isinstance(data, bool) and kind is not bool):
            raise DataError(f"{where} must be {kind.__name__}, not {data!r:.80}")
        return data

    return read


def _union_reader(kinds: tuple[Any, ...]) -> _Reader:
    """Only `X | None`."""
    read_value = _reader(next(kind for kind in kinds if kind is not NoneType))
    return lambda data, where: None if data is None else read_value(data, where)


def _tuple_reader(kinds: tuple[Any, ...]) -> _Reader:
    readers = [_reader(kind) for kind in kinds if kind is not Ellipsis]

    def read(data: Any, where: str) -> Any:
        if not isinstance(data, list | tuple):
            raise DataError(f"{where} must be a list, not {data!r:.80}")
        each = readers * len(data) if Ellipsis in kinds else readers
        if len(each) != len(data):
            raise DataError(f"{where} must have {len(each)} items, not {len(data)}")
        pairs = enumerate(zip(each, data, strict=True))
        return tuple(read_item(item, f"{where}[{n}]") for n, (read_item, item) in pairs)

    return read


def _mapping_reader(read_value: _Reader) -> _Reader:
    def read(data: Any, where: str) -> Any:
        if not isinstance(data, Mapping):
            raise DataError(f"{where} must be a mapping, not {data!r:.80}")
        return {key: read_value(value, f"{where}.{key}") for key, value in data.items()}

    return read


def _dataclass_reader(kind: type) -> _Reader:
    hints = get_type_hints(kind)
    readers = {item.name: _reader(hints[item.name]) for item in fields(kind)}
    required = [item.name for item in fields(kind) if not _is_optional(item)]

    def read(data: Any, where: str) -> Any:
        if not isinstance(data, Mapping):
            raise DataError(f"{where} must be a mapping, not {data!r:.80}")
        for name in required:
            if name not in data:
                raise DataError(f"{where}: missing key {name!r}")
        found = {}
        for name, value in data.items():
            if name not in readers:
                raise DataError(f"{where}: unknown key {name!r:.80}")
            found[name] = readers[name](value, f"{where}.{name}")
        return kind(**found)

    return read
