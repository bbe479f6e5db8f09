"""Feeding results: an insight that reads another takes its results instead of computing anew."""

from __future__ import annotations

from fogline.plan.operators import Feed, Operator, Plan, Requery, rewrite_plan


def feed_insights(plan: Plan) -> Plan:
    def visit(operator: Operator) -> Operator:
        return Feed(operator.insight) if isinstance(operator, Requery) else operator

    return rewrite_plan(plan, visit)
