"""Feeding results: an insight that reads another takes its results instead of computing anew.

This rule runs first and does not look into what it replaces: an insight that reads the same one
in many places would make the others visit it as many times.
"""

from __future__ import annotations

from dataclasses import replace

from fogline.plan.operators import Feed, Operator, Plan, Requery, inputs_of, with_inputs


def feed_insights(plan: Plan) -> Plan:
    return Plan(tuple(replace(emit, input=_feed_operator(emit.input)) for emit in plan.emits))


def _feed_operator(operator: Operator) -> Operator:
    if isinstance(operator, Requery):
        return Feed(operator.insight)
    inputs = inputs_of(operator)
    fed = tuple(_feed_operator(child) for child in inputs)
    return with_inputs(operator, fed) if fed != inputs else operator
