"""Filters into the scan: records that no reader of a stream needs are never decoded in full.

The scan keeps what at least one reader needs. Where all readers need the same, they need not ask
again.
"""

from __future__ import annotations

from dataclasses import replace

from fogline.plan.expressions import (
    Aggregate,
    AnyOf,
    Expr,
    Guarded,
    Sampled,
    conjoin,
    conjuncts,
    walk,
)
from fogline.plan.operators import Evaluate, Filter, Operator, Plan, Sample, Scan, Window
from fogline.plan.rules.shared import change_scans, map_aggregates, readers


def push_filters(plan: Plan) -> Plan:
    for per_record in (False, True):
        for stream, operators in readers(plan, per_record).items():
            plan = _push(plan, stream, operators, per_record)
    return plan


def _push(plan: Plan, stream: str, operators: list[Operator], per_record: bool) -> Plan:
    by_reader = [_record_condition(operator) for operator in operators]
    distinct = tuple(dict.fromkeys(by_reader))
    conditions = tuple(c for c in distinct if c is not None)
    pushed: Expr | None = None
    if len(conditions) == len(distinct):
        pushed = conditions[0] if len(conditions) == 1 else AnyOf(conditions)
    plan = change_scans(plan, per_record, lambda op: _place(op, stream, pushed))
    if pushed is None or len(conditions) != 1 or per_record:
        return plan
    return map_aggregates(plan, lambda a: _drop(a, stream, conditions[0]))


def _record_condition(operator: Operator) -> Expr | None:
    """What a reader asks of a record, or None when it may need every record."""
    if isinstance(operator, Window):
        condition = operator.aggregate.condition
    else:
        assert isinstance(operator, Evaluate)
        condition = operator.condition
    terms = [t for t in conjuncts(condition) if _plain(t)] if condition else []
    result: Expr | None = None
    for term in terms:
        result = conjoin(result, term)
    return result


def _plain(expr: Expr) -> bool:
    return not any(isinstance(e, Sampled | Aggregate | Guarded) for e in walk(expr))


def _place(operator: Operator, stream: str, pushed: Expr | None) -> Operator:
    """Drops the filters above this stream's scan and puts the condition inside it."""
    if isinstance(operator, Filter):
        return _place(operator.input, stream, pushed)
    if isinstance(operator, Sample):
        return replace(operator, input=_place(operator.input, stream, pushed))
    if isinstance(operator, Scan) and operator.stream.name == stream:
        return replace(operator, condition=conjoin(operator.condition, pushed))
    return operator


def _drop(aggregate: Aggregate, stream: str, condition: Expr) -> Aggregate:
    if aggregate.origins != (stream,) or aggregate.condition is None:
        return aggregate
    dropped = set(conjuncts(condition))
    left: Expr | None = None
    for term in conjuncts(aggregate.condition):
        if term not in dropped:
            left = conjoin(left, term)
    return replace(aggregate, condition=left)
