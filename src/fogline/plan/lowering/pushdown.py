"""Conditions that the source itself can decide, in the form of its option `filter`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.plan.expressions import (
    AnyOf,
    Compare,
    Constant,
    Every,
    Expr,
    Field,
    FromOrigin,
    Inverse,
    KeyValue,
    OneOf,
    StartsWith,
    conjuncts,
)


def split_condition(
    condition: Expr | None, columns: Mapping[Field, str]
) -> tuple[dict[str, Any] | None, list[Expr]]:
    """What the source itself can decide, and what is left for Spark."""
    pushed: list[dict[str, Any]] = []
    rest: list[Expr] = []
    for term in conjuncts(condition) if condition is not None else ():
        form = pushable(term, columns)
        if form is None:
            rest.append(term)
        else:
            pushed.append(form)
    if not pushed:
        return None, rest
    return (pushed[0] if len(pushed) == 1 else {"op": "and", "args": pushed}), rest


def pushable(expr: Expr, columns: Mapping[Field, str]) -> dict[str, Any] | None:
    """The condition as the source reads it; None where it cannot decide it."""
    match expr:
        case Compare(operator, Field() as left, Constant(value)) if value is not None:
            return {"op": operator, "column": columns[left], "value": value}
        case OneOf(Field() as left, values):
            return {"op": "in", "column": columns[left], "values": list(values)}
        case StartsWith(Field() as left, prefix):
            return {"op": "prefix", "column": columns[left], "value": prefix}
        case Every(terms) | AnyOf(terms):
            parts = [pushable(t, columns) for t in terms]
            if any(p is None for p in parts):
                return None
            return {"op": "and" if isinstance(expr, Every) else "or", "args": parts}
        case Inverse(operand):
            inner = pushable(operand, columns)
            return None if inner is None else {"op": "not", "arg": inner}
        case FromOrigin() | KeyValue():
            return None
    return None
