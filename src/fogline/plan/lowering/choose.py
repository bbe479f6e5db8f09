"""Some insights of a plan, with whatever they read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from fogline.plan.operators import Emit, Feed, Plan, Requery, walk


def chosen(plan: Plan, insights: Collection[str]) -> Plan:
    """The named insights; what they read of others is computed too, but hidden. None named: all."""
    if not insights:
        return plan
    needed = _needed(plan, insights)
    emits = (emit for emit in plan.emits if emit.name in needed)
    return Plan(tuple(e if e.name in insights else replace(e, hidden=True) for e in emits))


def _needed(plan: Plan, insights: Collection[str]) -> set[str]:
    found: set[str] = set()
    waiting = [emit for emit in plan.emits if emit.name in insights]
    while waiting:
        emit = waiting.pop()
        if emit.name not in found:
            found.add(emit.name)
            waiting += [plan.emit(name) for name in _fed(emit)]
    return found


def _fed(emit: Emit) -> list[str]:
    return [op.insight for op in walk(emit) if isinstance(op, Feed | Requery)]
