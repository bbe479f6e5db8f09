"""The optimiser: one rule a file, pure functions from plan to plan, in the order they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fogline.plan.operators import Plan
from fogline.plan.rules.feed_insights import feed_insights
from fogline.plan.rules.fold_constants import fold_constants
from fogline.plan.rules.fuse_aggregates import fuse_aggregates
from fogline.plan.rules.merge_equal import merge_equal
from fogline.plan.rules.prune_columns import prune_columns
from fogline.plan.rules.push_filters import push_filters
from fogline.plan.rules.push_samples import push_samples
from fogline.plan.rules.windows_to_panes import windows_to_panes

Rule = Callable[[Plan], Plan]

RULES: tuple[Rule, ...] = (
    feed_insights,
    fold_constants,
    push_filters,
    push_samples,
    windows_to_panes,
    fuse_aggregates,
    merge_equal,
    prune_columns,
)


@dataclass(frozen=True, slots=True)
class Step:
    """What one rule made of the plan."""

    rule: str
    before: Plan
    after: Plan

    @property
    def changed(self) -> bool:
        return self.before != self.after


def optimise(plan: Plan) -> tuple[Plan, tuple[Step, ...]]:
    """Runs every rule once, in order, and returns what each did."""
    steps = []
    for rule in RULES:
        after = rule(plan)
        steps.append(Step(rule.__name__, plan, after))
        plan = after
    return plan, tuple(steps)
