"""Column pruning: a scan decodes the fields that somebody asks for and no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fogline.plan.expressions import FRACTION, HASH, Field, Sampled, record_fields, walk
from fogline.plan.operators import (
    Evaluate,
    Operator,
    Panes,
    Plan,
    Scan,
    rewrite_plan,
    walk_plan,
)


def prune_columns(plan: Plan) -> Plan:
    aggregated = _stateful_columns(plan)

    def visit(operator: Operator) -> Operator:
        if isinstance(operator, Panes):
            inputs = tuple(_prune_scan(op, aggregated) for op in operator.inputs)
            return replace(operator, inputs=inputs)
        if isinstance(operator, Evaluate) and operator.per_record:
            columns = _per_record_columns(plan)
            return replace(
                operator, inputs=tuple(_prune_scan(op, columns) for op in operator.inputs)
            )
        return operator

    return rewrite_plan(plan, visit)


def _prune_scan(operator: Operator, columns: dict[str, tuple[Field, ...]]) -> Operator:
    if not isinstance(operator, Scan):
        return operator
    return replace(operator, columns=columns[operator.stream.name])


def _stateful_columns(plan: Plan) -> dict[str, tuple[Field, ...]]:
    """The union over all first stages, because they share one scan of each stream."""
    found: dict[str, dict[Field, None]] = {}
    for operator in walk_plan(plan):
        if isinstance(operator, Panes):
            for scan in operator.inputs:
                if isinstance(scan, Scan):
                    needed = found.setdefault(scan.stream.name, {})
                    needed.update(dict.fromkeys(_panes_fields(operator, scan)))
    return {name: tuple(fields) for name, fields in found.items()}


def _panes_fields(panes: Panes, scan: Scan) -> Iterator[Field]:
    inputs = [i for p in panes.partials for i in p.inputs] + list(panes.events)
    for expr in (*(k.expression for k in panes.keys), *inputs):
        yield from _fields(expr)
    yield from record_fields(scan.condition)


def _per_record_columns(plan: Plan) -> dict[str, tuple[Field, ...]]:
    found: dict[str, dict[Field, None]] = {}
    for operator in walk_plan(plan):
        if isinstance(operator, Evaluate) and operator.per_record:
            for scan in operator.inputs:
                if isinstance(scan, Scan):
                    needed = found.setdefault(scan.stream.name, {})
                    needed.update(dict.fromkeys(_evaluate_fields(operator, scan)))
    return {name: tuple(fields) for name, fields in found.items()}


def _evaluate_fields(evaluate: Evaluate, scan: Scan) -> Iterator[Field]:
    parts = (evaluate.value, evaluate.condition, *(k.expression for k in evaluate.keys))
    for expr in parts:
        if expr is not None:
            yield from _fields(expr)
    yield from record_fields(scan.condition)


def _fields(expr: object) -> Iterator[Field]:
    for part in walk(expr):  # type: ignore[arg-type]
        if isinstance(part, Sampled):
            yield HASH
            if part.fraction is None:
                yield FRACTION
        elif isinstance(part, Field):
            yield part
