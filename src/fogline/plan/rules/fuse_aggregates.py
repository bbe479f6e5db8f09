"""Fusing: aggregates that share keys and pane share one first stage."""

from __future__ import annotations

from dataclasses import replace

from fogline.plan.operators import Combine, Key, Operator, Panes, Plan, rewrite_plan, walk_plan


def fuse_aggregates(plan: Plan) -> Plan:
    fused: dict[tuple[int, tuple[Key, ...]], Panes] = {}
    for operator in walk_plan(plan):
        if isinstance(operator, Combine) and isinstance(operator.input, Panes):
            panes = operator.input
            group = (operator.level, panes.keys)
            fused[group] = _join(fused[group], panes) if group in fused else panes

    def visit(operator: Operator) -> Operator:
        if isinstance(operator, Combine) and isinstance(operator.input, Panes):
            return replace(operator, input=fused[(operator.level, operator.input.keys)])
        return operator

    return rewrite_plan(plan, visit)


def _join(left: Panes, right: Panes) -> Panes:
    return Panes(
        tuple(dict.fromkeys((*left.inputs, *right.inputs))),
        left.keys,
        left.pane_ms,
        tuple(dict.fromkeys((*left.partials, *right.partials))),
        tuple(dict.fromkeys((*left.events, *right.events))),
    )
