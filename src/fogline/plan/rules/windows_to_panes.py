"""Windows to panes: every record is aggregated once, into a pane, whatever windows need it.

The pane is the greatest common divisor of all window lengths, offsets and periods, so every
window boundary is a pane boundary. Insights evaluated per record get panes of at most a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from fogline.language.ast import TimeWindow
from fogline.plan.operators import (
    Combine,
    Emit,
    Evaluate,
    Feed,
    Operator,
    Panes,
    Plan,
    Window,
    inputs_of,
    rewrite,
    walk_plan,
)
from fogline.plan.partials import event_inputs_of, partials_of, uses_events

_ARRIVAL_PANE_MS = 1000


def windows_to_panes(plan: Plan) -> Plan:
    pane = gcd(*_lengths(plan)) or _ARRIVAL_PANE_MS
    levels: dict[str, int] = {}
    emits: list[Emit] = []
    for emit in plan.emits:
        levels[emit.name] = _level(emit, levels)
        level = levels[emit.name]
        changed = rewrite(emit, lambda op, at=level: _change(op, pane, at))  # type: ignore[misc]
        assert isinstance(changed, Emit)
        emits.append(changed)
    return Plan(tuple(emits))


def _lengths(plan: Plan) -> Iterator[int]:
    for operator in walk_plan(plan):
        if isinstance(operator, Window):
            aggregate = operator.aggregate
            if not isinstance(operator.trigger, TimeWindow):
                yield _ARRIVAL_PANE_MS
                continue
            yield operator.trigger.millis
            if isinstance(aggregate.window, TimeWindow):
                yield aggregate.window.millis
                yield aggregate.offset_ms


def _level(emit: Emit, levels: dict[str, int]) -> int:
    """0 over streams; one more than the highest level it is fed from."""
    windows = inputs_of(emit.input)
    fed = [op.insight for w in windows for op in inputs_of(w) if isinstance(op, Feed)]
    return 1 + max((levels[name] for name in fed), default=-1)


def _change(operator: Operator, pane: int, level: int) -> Operator:
    if isinstance(operator, Evaluate) and not operator.per_record:
        combined = tuple(_combine(w, pane, level) for w in operator.inputs)
        return replace(operator, inputs=combined)
    return operator


def _combine(window: Operator, pane: int, level: int) -> Operator:
    assert isinstance(window, Window)
    aggregate = window.aggregate
    in_order = uses_events(aggregate, window.trigger)
    panes = Panes(
        window.inputs,
        window.keys,
        pane,
        () if in_order else partials_of(aggregate),
        event_inputs_of(aggregate) if in_order else (),
    )
    return Combine(panes, (aggregate,), window.trigger, level)
