"""What a name in a query means over one record: its value, its keys, whether a condition holds."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fogline.language.ast import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    Expression,
    Insight,
    KeyExpression,
    Membership,
    Metric,
    Negate,
    Not,
    Number,
    Or,
    Provider,
    QueryFile,
    Reference,
    Stream,
    Text,
)
from fogline.language.functions import Kind, lookup
from fogline.testing.reference import values

_COMMON = {"format", "time", "entity", "schema", "lateness", "metric", "value", "path"}
_FABRIC = {"metric": "metricID", "value": "value"}

Leaf = Callable[[Expression], Any]
"""Gives the value of a metric, a reference or an aggregate."""


@dataclass(frozen=True)
class Row:
    """A record of a stream, or a result of insights that another one reads.

    A result has the keys as fields, its values as the `arguments` of the aggregate that reads it,
    and with nested aggregates its keys as a `label`.
    """

    time: int
    fields: Mapping[str, Any]
    stream: str | None = None
    arguments: tuple[Any, ...] | None = None
    label: Mapping[str, Any] | None = None


def field(fields: Mapping[str, Any], name: str) -> Any:
    """A field by its name, or by a path with dots into nested objects."""
    if name in fields:
        return fields[name]
    head, _, rest = name.partition(".")
    inner = fields.get(head)
    return field(inner, rest) if rest and isinstance(inner, Mapping) else None


def parameter(provider: Provider, key: str) -> str | None:
    default = _FABRIC.get(key) if provider.name == "storageFabric" else None
    given = provider.get(key)
    return default if given is None else str(given)


def schema_types(streams: Iterable[Stream]) -> dict[str, str]:
    """Field to type, as the streams' schemas declare them."""
    parts = [part for s in streams for part in str(s.provider.get("schema") or "").split(",")]
    return {part.split()[0]: part.split()[-1].lower() for part in parts if part.split()}


class ScopeNames:
    """The names of one query file, and of the records it reads."""

    def __init__(self, query: QueryFile, rows: Sequence[Row]) -> None:
        self.insights = {insight.name: insight for insight in query.insights}
        self.streams = {stream.name: stream for stream in query.streams}
        self.functions = {function.name: function.target for function in query.functions}
        self.types = schema_types(query.streams)
        self.rows = rows
        self._seen: dict[Metric, bool] = {}

    def insight(self, expression: Expression) -> Insight | None:
        """The insight an expression names, if that is all it does."""
        if isinstance(expression, Reference):
            return self.insights[expression.name]
        if isinstance(expression, Metric) and not expression.streams:
            return self.insights.get(expression.name)
        return None

    def is_word(self, comparison: Comparison, keys: Iterable[str]) -> bool:
        """Whether the name on the right of == is no name at all but a string."""
        right = comparison.right
        if comparison.operator not in ("==", "!=") or not isinstance(right, Metric):
            return False
        named = right.name in {*self.insights, *self.streams, *self.types, *keys}
        return not (named or right.streams or self._is_seen(right))

    def _is_seen(self, metric: Metric) -> bool:
        if metric not in self._seen:
            self._seen[metric] = any(self.metric(metric, row) is not None for row in self.rows)
        return self._seen[metric]

    # ── a metric ───────────────────────────────────────────────────────────────────────────────

    def metric(self, metric: Metric, row: Row) -> Any:
        """The value a record has for a metric, as it stands in the record."""
        if row.arguments is not None or not self.streams:
            return field(row.fields, metric.name)
        for stream in self._streams_of(metric):
            if self._belongs(row, stream):
                value = self._metric_in(metric.name, row, stream)
                if value is not None:
                    return value
        return None

    def _streams_of(self, metric: Metric) -> list[Stream]:
        if metric.streams:
            return [self.streams[name] for name in metric.streams]
        if metric.name in self.streams:
            return [self.streams[metric.name]]
        return list(self.streams.values())

    def _metric_in(self, name: str, row: Row, stream: Stream) -> Any:
        """A stream of whole records, named itself, is good for counting only: 1."""
        metric_field = parameter(stream.provider, "metric")
        value_field = parameter(stream.provider, "value")
        if name == stream.name:
            return field(row.fields, value_field) if value_field else 1.0
        if metric_field and value_field and field(row.fields, metric_field) == name:
            return field(row.fields, value_field)
        return field(row.fields, name)

    def _belongs(self, row: Row, stream: Stream) -> bool:
        if row.stream not in (None, stream.name):
            return False
        if stream.provider.name != "storageFabric":
            return True
        asked = [p for p in stream.provider.parameters if p.key not in _COMMON]
        return all(self._matches(row, p.key, str(values.text(p.value))) for p in asked)

    def _matches(self, row: Row, key: str, expected: str) -> bool:
        found = values.text(field(row.fields, key))
        if key == "metricID" and expected.endswith("%"):
            return found is not None and found.startswith(expected[:-1])
        return found == expected

    # ── keys ───────────────────────────────────────────────────────────────────────────────────

    def keys(self, keys: Sequence[KeyExpression], row: Row) -> dict[str, Any]:
        return {key_name(key): self._key(key, row) for key in keys}

    def _key(self, key: KeyExpression, row: Row) -> Any:
        name = key_name(key)
        if isinstance(key, Call) and row.arguments is None:
            return self.over(key, row)
        value = field(row.fields, name)
        if self.types.get(name, "string") == "string":
            return values.text(value)
        return values.number(value)

    # ── expressions and conditions ─────────────────────────────────────────────────────────────

    def over(self, expression: Expression, row: Row) -> Any:
        """An expression over one record."""
        return self.compute(expression, lambda leaf: self._leaf_over(leaf, row))

    def _leaf_over(self, leaf: Expression, row: Row) -> Any:
        if isinstance(leaf, Reference):
            return field(row.fields, leaf.name)
        assert isinstance(leaf, Metric), leaf
        return self.metric(leaf, row)

    def compute(self, expression: Expression, leaf: Leaf) -> Any:
        """The value of an expression whose leaves have the values that `leaf` gives."""
        if isinstance(expression, Number | Text):
            return expression.value
        if isinstance(expression, Negate):
            value = values.number(self.compute(expression.operand, leaf))
            return None if value is None else -value
        if isinstance(expression, Binary):
            left = values.number(self.compute(expression.left, leaf))
            right = values.number(self.compute(expression.right, leaf))
            return values.arithmetic(expression.operator, left, right)
        if isinstance(expression, Call) and not is_aggregate(expression):
            return self._apply(expression, [self.compute(a, leaf) for a in expression.arguments])
        return leaf(expression)

    def _apply(self, call: Call, arguments: Sequence[Any]) -> Any:
        if call.function not in self.functions:
            return values.per_record(call.function, call.parameters, arguments)
        module, _, name = self.functions[call.function].partition(":")
        if None in arguments:
            return None
        return getattr(importlib.import_module(module), name)(*arguments)

    def holds(
        self, condition: Condition, leaf: Leaf, own: Any = None, keys: Iterable[str] = ()
    ) -> bool | None:
        """Whether a condition is true, false or (null) neither; `own` is a missing left side."""
        if isinstance(condition, And | Or):
            join = values.both if isinstance(condition, And) else values.either
            return join(
                self.holds(condition.left, leaf, own, keys),
                self.holds(condition.right, leaf, own, keys),
            )
        if isinstance(condition, Not):
            return values.inverse(self.holds(condition.operand, leaf, own, keys))
        left = own if condition.left is None else self.compute(condition.left, leaf)
        if isinstance(condition, Membership):
            found: bool | None = False
            for value in condition.values:
                same = _compare("==", left, value.value, isinstance(value, Text))
                found = values.either(found, same)
            return found
        if self.is_word(condition, keys):
            assert isinstance(condition.right, Metric)
            return _compare(condition.operator, left, condition.right.name, True)
        right = self.compute(condition.right, leaf)
        return _compare(condition.operator, left, right, self._is_text(condition.right, keys))

    def _is_text(self, expression: Expression, keys: Iterable[str]) -> bool:
        if isinstance(expression, Metric):
            default = "string" if expression.name in keys else "double"
            return self.types.get(expression.name, default) == "string"
        return isinstance(expression, Text)


def _compare(operator: str, left: Any, right: Any, as_text: bool) -> bool | None:
    """As strings where the right side is one, else as numbers."""
    read = values.text if as_text else values.number
    return values.compare(operator, read(left), read(right))


def key_name(key: KeyExpression) -> str:
    return key.name if isinstance(key, Metric) else key.function.lower()


def is_aggregate(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return False
    known = lookup(expression.function)
    return known is not None and known.kind is not Kind.RECORD
