"""Parts of a plan: some of its insights, those that run in real time, those in micro-batches.

In real time run those without `EVERY` that are made from streams alone: a value on every arrival.
Everything else, and whatever an insight over insights reads, runs in micro-batches.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from fogline.plan.operators import Emit, Evaluate, Feed, Plan, Requery, walk, walk_plan


def split_live(plan: Plan) -> tuple[Plan, Plan]:
    """An optimised plan as two: real time, micro-batch. What is in both is hidden in the second."""
    fed = {op.insight for op in walk_plan(plan) if isinstance(op, Feed)}
    live = tuple(e for e in plan.emits if _is_live(e))
    steady = tuple(
        replace(e, hidden=True) if e in live else e
        for e in plan.emits
        if e not in live or e.name in fed
    )
    return Plan(live), Plan(steady)


def choose_insights(plan: Plan, insights: Collection[str]) -> Plan:
    """The named insights; what they read of others is computed too, but hidden. None named: all."""
    if not insights:
        return plan
    needed = _needed_insights(plan, insights)
    emits = (emit for emit in plan.emits if emit.name in needed)
    return Plan(tuple(e if e.name in insights else replace(e, hidden=True) for e in emits))


def _needed_insights(plan: Plan, insights: Collection[str]) -> set[str]:
    found: set[str] = set()
    waiting = [emit for emit in plan.emits if emit.name in insights]
    while waiting:
        emit = waiting.pop()
        if emit.name not in found:
            found.add(emit.name)
            waiting += [plan.emit(name) for name in _read_insights(emit)]
    return found


def _read_insights(emit: Emit) -> list[str]:
    return [op.insight for op in walk(emit) if isinstance(op, Feed | Requery)]


def _is_live(emit: Emit) -> bool:
    evaluate = emit.input
    assert isinstance(evaluate, Evaluate)
    adapts = emit.sampling is not None and emit.sampling.live
    alone = not any(isinstance(op, Feed) for op in walk(emit))
    return evaluate.trigger is None and alone and not adapts and not emit.hidden
