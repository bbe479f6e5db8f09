"""How far back records matter for results of a moment, and how long for later ones."""

from __future__ import annotations

from fogline.language.ast import SessionWindow, TimeWindow
from fogline.plan.expressions import Aggregate
from fogline.plan.lowering.program import Level, Program, ProgramNode


def look_back_ms(program: Program) -> int:
    """The longest way from a result's end back to a record in one of its windows of time.

    Results that are records of others add their own way. Functions over everything so far, over a
    number of records and over sessions have no such limit and do not count.
    """
    return sum(_longest(level) for level in program.levels)


def open_ms(program: Program) -> int:
    """How long after a record its last window is over, those of results made from it included."""
    longest = (max(map(_open, level.nodes), default=0) for level in program.levels)
    return sum(one + program.pane_ms for one in longest)


def _open(node: ProgramNode) -> int:
    every = node.trigger.millis if isinstance(node.trigger, TimeWindow) else 0
    gaps = [a.window.gap_millis for a in node.aggregates if isinstance(a.window, SessionWindow)]
    return every + max([*gaps, *map(_reach, node.aggregates)], default=0)


def _longest(level: Level) -> int:
    return max((_reach(a) for node in level.nodes for a in node.aggregates), default=0)


def _reach(aggregate: Aggregate) -> int:
    window = aggregate.window
    return window.millis + aggregate.offset_ms if isinstance(window, TimeWindow) else 0
