"""Samples into the scan: where all readers of a stream sample alike, the rest is not decoded."""

from __future__ import annotations

from dataclasses import replace

from fogline.model.streams import FABRIC
from fogline.plan.expressions import Aggregate, Expr, Sampled, conjoin, conjuncts
from fogline.plan.operators import (
    Evaluate,
    Operator,
    Plan,
    Sample,
    Sampling,
    Scan,
    Window,
    rewrite_plan,
    walk_plan,
)
from fogline.plan.rules.shared import change_scans, map_aggregates, readers


def push_samples(plan: Plan) -> Plan:
    for per_record in (False, True):
        for stream, operators in readers(plan, per_record).items():
            plan = _push(plan, stream, operators, per_record)
    return plan


def with_sample_fractions(plan: Plan) -> Plan:
    """The same plan, whose streams from the storage fabric say which sample fraction is asked for:
    where everybody who reads one says `SAMPLE p`, nodes send that fraction and no more.

    It holds for any part of the plan too: who reads less of it samples no less.
    """
    fractions = _find_fractions(plan)

    def visit(operator: Operator) -> Operator:
        if not isinstance(operator, Scan) or operator.stream.name not in fractions:
            return operator
        fraction = fractions[operator.stream.name]
        return replace(operator, stream=replace(operator.stream, share=fraction))

    return rewrite_plan(plan, visit) if fractions else plan


def _find_fractions(plan: Plan) -> dict[str, float]:
    if not any(emit.sampling for emit in plan.emits):
        return {}
    found: dict[str, set[float | None]] = {}
    for scan in walk_plan(push_samples(plan)):
        if isinstance(scan, Scan) and scan.stream.provider == FABRIC:
            fraction = scan.sampling.fraction if scan.sampling else None
            found.setdefault(scan.stream.name, set()).add(fraction)
    single = {name: fractions.pop() for name, fractions in found.items() if len(fractions) == 1}
    return {name: fraction for name, fraction in single.items() if fraction is not None}


def _push(plan: Plan, stream: str, operators: list[Operator], per_record: bool) -> Plan:
    single = all(_streams(operator) == {stream} for operator in operators)
    samplings = {_sampling(operator) for operator in operators}
    common = samplings.pop() if len(samplings) == 1 and single else None
    plan = change_scans(plan, per_record, lambda op: _place(op, stream, common))
    if common is None:
        return plan
    test = Sampled(common.fraction)
    if per_record:
        return _drop_per_record(plan, stream, test)
    return map_aggregates(plan, lambda a: _drop(a, stream, test))


def _streams(operator: Operator) -> set[str]:
    assert isinstance(operator, Window | Evaluate)
    return {scan.stream.name for op in operator.inputs if (scan := _scan(op)) is not None}


def _scan(operator: Operator) -> Scan | None:
    while isinstance(operator, Sample):
        operator = operator.input
    return operator if isinstance(operator, Scan) else None


def _sampling(operator: Operator) -> Sampling | None:
    assert isinstance(operator, Window | Evaluate)
    first = operator.inputs[0]
    return first.sampling if isinstance(first, Sample) else None


def _place(operator: Operator, stream: str, sampling: Sampling | None) -> Operator:
    scan = _scan(operator)
    if scan is None or scan.stream.name != stream:
        return operator
    return replace(scan, sampling=sampling)


def _remove_test(condition: Expr | None, test: Sampled) -> Expr | None:
    left: Expr | None = None
    for term in conjuncts(condition) if condition is not None else ():
        if term != test:
            left = conjoin(left, term)
    return left


def _drop(aggregate: Aggregate, stream: str, test: Sampled) -> Aggregate:
    if aggregate.origins != (stream,):
        return aggregate
    return replace(aggregate, condition=_remove_test(aggregate.condition, test))


def _drop_per_record(plan: Plan, stream: str, test: Sampled) -> Plan:
    def visit(operator: Operator) -> Operator:
        if not isinstance(operator, Evaluate) or not operator.per_record:
            return operator
        if _streams(operator) != {stream}:
            return operator
        return replace(operator, condition=_remove_test(operator.condition, test))

    return rewrite_plan(plan, visit)
