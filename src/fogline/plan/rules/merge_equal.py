"""Merging equal sub-plans: insights over the same panes at the same period share the second stage.

An aggregate that several insights ask for is computed once.
"""

from __future__ import annotations

from dataclasses import replace

from fogline.language.ast import EventWindow, TimeWindow
from fogline.plan.expressions import Aggregate
from fogline.plan.operators import (
    Combine,
    Evaluate,
    Operator,
    Plan,
    Trigger,
    rewrite_plan,
    walk_plan,
)


def merge_equal(plan: Plan) -> Plan:
    merged: dict[tuple[Operator, Trigger, object], dict[Aggregate, None]] = {}
    for operator in walk_plan(plan):
        if isinstance(operator, Evaluate) and not operator.per_record:
            group = _group(operator)
            for combine in operator.inputs:
                assert isinstance(combine, Combine)
                merged.setdefault(group, {}).update(dict.fromkeys(combine.aggregates))

    def visit(operator: Operator) -> Operator:
        if not isinstance(operator, Evaluate) or operator.per_record:
            return operator
        first = operator.inputs[0]
        assert isinstance(first, Combine)
        return replace(
            operator, inputs=(replace(first, aggregates=tuple(merged[_group(operator)])),)
        )

    return rewrite_plan(plan, visit)


def _group(operator: Evaluate) -> tuple[Operator, Trigger, object]:
    """Insights on a time grid share freely; others only with the very same aggregates.

    Insights without any window of time are evaluated only where a record arrived, those on arrival
    at each of their own records, and a count window starts at its own first record, so all those
    keep a second stage of their own.
    """
    first = operator.inputs[0]
    assert isinstance(first, Combine)
    own = tuple(a for c in operator.inputs if isinstance(c, Combine) for a in c.aggregates)
    timed = any(isinstance(a.window, TimeWindow) for a in own)
    counted = any(isinstance(a.window, EventWindow) for a in own)
    on_grid = isinstance(operator.trigger, TimeWindow) and timed and not counted
    return first.input, operator.trigger, "grid" if on_grid else frozenset(own)
