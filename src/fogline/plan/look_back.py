"""How far back records matter for results of a moment."""

from __future__ import annotations

from fogline.language.ast import TimeWindow
from fogline.plan.expressions import Aggregate
from fogline.plan.program import Level, Program


def look_back_ms(program: Program) -> int:
    """The longest way from a result's end back to a record in one of its windows of time.

    Results that are records of others add their own way. Functions over everything so far, over a
    number of records and over sessions have no such limit and do not count.
    """
    return sum(_longest(level) for level in program.levels)


def _longest(level: Level) -> int:
    return max((_reach(a) for node in level.nodes for a in node.aggregates), default=0)


def _reach(aggregate: Aggregate) -> int:
    window = aggregate.window
    return window.millis + aggregate.offset_ms if isinstance(window, TimeWindow) else 0
