"""Small rewrites that several rules need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fogline.plan.expressions import Aggregate, Expr, transform
from fogline.plan.operators import (
    Combine,
    Evaluate,
    Filter,
    Operator,
    Plan,
    Sample,
    Scan,
    Window,
    inputs_of,
    rewrite_plan,
    walk_plan,
)


def map_expressions(plan: Plan, change: Callable[[Expr], Expr]) -> Plan:
    """Changes every expression of a plan, those inside aggregates too."""

    def deep(expr: Expr) -> Expr:
        if isinstance(expr, Aggregate):
            expr = replace(
                expr,
                arguments=tuple(transform(a, change) for a in expr.arguments),
                condition=None if expr.condition is None else transform(expr.condition, change),
            )
        return change(expr)

    def visit(operator: Operator) -> Operator:
        return _map_operator(operator, lambda e: transform(e, deep))

    return rewrite_plan(plan, visit)


def map_aggregates(plan: Plan, change: Callable[[Aggregate], Aggregate]) -> Plan:
    """Changes every aggregate, wherever it is named."""

    def one(expr: Expr) -> Expr:
        return change(expr) if isinstance(expr, Aggregate) else expr

    def visit(operator: Operator) -> Operator:
        return _map_operator(operator, lambda e: transform(e, one))

    return rewrite_plan(plan, visit)


def _map_operator(operator: Operator, change: Callable[[Expr], Expr]) -> Operator:
    if isinstance(operator, Filter):
        return replace(operator, condition=change(operator.condition))
    if isinstance(operator, Scan) and operator.condition is not None:
        return replace(operator, condition=change(operator.condition))
    if isinstance(operator, Window):
        changed = change(operator.aggregate)
        return replace(operator, aggregate=changed) if isinstance(changed, Aggregate) else operator
    if isinstance(operator, Combine):
        found = tuple(change(a) for a in operator.aggregates)
        return replace(operator, aggregates=tuple(a for a in found if isinstance(a, Aggregate)))
    if isinstance(operator, Evaluate):
        return replace(
            operator,
            value=change(operator.value),
            condition=None if operator.condition is None else change(operator.condition),
            extras=tuple((name, change(expr)) for name, expr in operator.extras),
        )
    return operator


def readers(plan: Plan, per_record: bool) -> dict[str, list[Operator]]:
    """For each stream the operators that read it: windows, or per-record insights."""
    found: dict[str, dict[Operator, None]] = {}
    for operator in walk_plan(plan):
        reads = (
            isinstance(operator, Evaluate) and operator.per_record
            if per_record
            else isinstance(operator, Window)
        )
        if reads:
            for child in inputs_of(operator):
                scan = scan_below(child)
                if scan is not None:
                    found.setdefault(scan.stream.name, {})[operator] = None
    return {name: list(operators) for name, operators in found.items()}


def scan_below(operator: Operator) -> Scan | None:
    """The scan under filters and samples, if that is all there is."""
    while isinstance(operator, Filter | Sample):
        operator = operator.input
    return operator if isinstance(operator, Scan) else None


def change_scans(plan: Plan, per_record: bool, change: Callable[[Operator], Operator]) -> Plan:
    """Changes what stands directly under the windows, or under the per-record insights."""

    def visit(operator: Operator) -> Operator:
        right = (
            isinstance(operator, Evaluate) and operator.per_record
            if per_record
            else isinstance(operator, Window)
        )
        if not right or not isinstance(operator, Window | Evaluate):
            return operator
        return replace(operator, inputs=tuple(change(child) for child in operator.inputs))

    return rewrite_plan(plan, visit)
