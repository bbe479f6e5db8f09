"""Conditions in the form of the Spark source's option `filter`, with SQL's three values.

They are checked when made: an unknown operator or column, or a value of another type than the
column's, is refused. Where columns have no declared types, values of another kind are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fogline.formats.times import parse_time
from fogline.formats.values import as_text, lookup
from fogline.gateway.operators.base import BadStep, Record

Test = Callable[[Record], bool | None]
Types = Mapping[str, str] | None
"""The types of the columns by name; None: whatever a message brings."""

_MOST_DEPTH = 100
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def compile_condition(node: Any, types: Types, depth: int = 0) -> Test:
    """The test that a JSON tree describes. Raises `BadStep`."""
    if not isinstance(node, Mapping) or not isinstance(node.get("op"), str):
        raise BadStep("a condition must be an object with 'op'")
    if depth > _MOST_DEPTH:
        raise BadStep("a condition is nested too deeply")
    match node["op"]:
        case "and" | "or":
            args = node.get("args")
            if not isinstance(args, list | tuple):
                raise BadStep("and, or need a list 'args'")
            parts = [compile_condition(part, types, depth + 1) for part in args]
            return _all(parts) if node["op"] == "and" else _any(parts)
        case "not":
            return _not(compile_condition(node.get("arg"), types, depth + 1))
        case "in":
            values = node.get("values")
            if not isinstance(values, list | tuple):
                raise BadStep("'in' must have a list 'values'")
            column = _column(node, types)
            return _any([_comparison("==", column, value, types) for value in values])
        case "prefix":
            return _prefix(_column(node, types), _value(node), types)
        case operator:
            return _comparison(operator, _column(node, types), _value(node), types)


def _all(parts: list[Test]) -> Test:
    def test(record: Record) -> bool | None:
        result: bool | None = True
        for part in parts:
            found = part(record)
            if found is False:
                return False
            result = None if found is None else result
        return result

    return test


def _any(parts: list[Test]) -> Test:
    def test(record: Record) -> bool | None:
        result: bool | None = False
        for part in parts:
            found = part(record)
            if found:
                return True
            result = None if found is None else result
        return result

    return test


def _not(part: Test) -> Test:
    def test(record: Record) -> bool | None:
        found = part(record)
        return None if found is None else not found

    return test


def _column(node: Mapping[str, Any], types: Types) -> str:
    name = node.get("column")
    if not isinstance(name, str) or not name:
        raise BadStep("a condition needs a 'column'")
    if types is not None and name != "_time" and name not in types:
        raise BadStep(f"column {name} is not in 'fields'")
    return name


def _value(node: Mapping[str, Any]) -> Any:
    if "value" not in node:
        raise BadStep("a condition needs a 'value'")
    return node["value"]


def _prefix(column: str, value: Any, types: Types) -> Test:
    if not isinstance(value, str) or (types is not None and types.get(column) != "string"):
        raise BadStep("prefix needs a string column and a string")

    def test(record: Record) -> bool | None:
        found = lookup(record.values, column)
        return found.startswith(value) if isinstance(found, str) else None

    return test


def _comparison(operator: str, column: str, value: Any, types: Types) -> Test:
    if operator not in _COMPARE:
        raise BadStep(f"unknown operator {operator[:40]!r} in a condition")
    if value is None:
        return lambda record: None
    compare = _COMPARE[operator]
    if column == "_time":
        return _of_time(compare, value)
    kind = _kind(operator, column, value, None if types is None else types[column])

    def test(record: Record) -> bool | None:
        found = lookup(record.values, column)
        return compare(found, value) if isinstance(found, kind) else None

    def number(record: Record) -> bool | None:
        found = lookup(record.values, column)
        fits = isinstance(found, int | float) and not isinstance(found, bool)
        return compare(found, value) if fits else None

    return number if kind is float else test


def _kind(operator: str, column: str, value: Any, declared: str | None) -> type:
    """Of what kind the column's values have to be."""
    kind = bool if isinstance(value, bool) else str if isinstance(value, str) else float
    if kind is float and (not isinstance(value, int | float) or value != value):
        raise BadStep(f"column {column} cannot be compared with {value!r:.80}")
    expected = {"double": float, "long": float, "string": str, "boolean": bool}
    if declared is not None and expected[declared] is not kind:
        raise BadStep(f"column {column} is {declared}, {value!r:.80} is not")
    if kind is bool and operator not in ("==", "!="):
        raise BadStep(f"column {column} is boolean: compare it with == or !=")
    return kind


def _of_time(compare: Callable[[Any, Any], bool], value: Any) -> Test:
    text = as_text(value)
    time = None if text is None else parse_time(text)
    if time is None:
        raise BadStep(f"{value!r:.80} is not a time")
    return lambda record: compare(record.time, time)
