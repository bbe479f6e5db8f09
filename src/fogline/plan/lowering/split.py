"""Which insights of a plan run in real time and which in micro-batches.

In real time run those without `EVERY` that are made from streams alone: a value on every arrival.
Everything else, and whatever an insight over insights reads, runs in micro-batches.
"""

from __future__ import annotations

from dataclasses import replace

from fogline.plan.operators import Emit, Evaluate, Feed, Plan, walk, walk_plan


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


def _is_live(emit: Emit) -> bool:
    evaluate = emit.input
    assert isinstance(evaluate, Evaluate)
    adapts = emit.sampling is not None and emit.sampling.live
    alone = not any(isinstance(op, Feed) for op in walk(emit))
    return evaluate.trigger is None and alone and not adapts and not emit.hidden
