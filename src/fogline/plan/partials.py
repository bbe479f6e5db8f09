"""What the first stage must keep of a pane for each function, as one table.

Mergeable functions keep a few numbers; functions that need every value keep the values; functions
that must see records in order keep the records themselves (`events`).
"""

from __future__ import annotations

from dataclasses import replace

from fogline.common.errors import PlanError
from fogline.language.ast import EventWindow, TimeWindow
from fogline.model.streams import NUMBER
from fogline.plan.expressions import (
    FRACTION,
    Aggregate,
    Apply,
    Arithmetic,
    Constant,
    Expr,
    FromOrigin,
    Guarded,
    conjoin,
)
from fogline.plan.operators import Partial, Trigger

_MERGEABLE: dict[str, tuple[str, ...]] = {
    "COUNT": ("count",),
    "RUNNING_COUNT": ("count",),
    "SUM": ("sum", "count"),
    "AVG": ("sum", "count"),
    "RUNNING_MEAN": ("sum", "count"),
    "MIN": ("min", "count"),
    "RUNNING_MIN": ("min", "count"),
    "MAX": ("max", "count"),
    "RUNNING_MAX": ("max", "count"),
    "VARIANCE": ("moments",),
    "SDEV": ("moments",),
    "RUNNING_SDEV": ("moments",),
    "GEOMETRIC_MEAN": ("logsum", "count", "min"),
    "FIRST": ("first", "count"),
    "LAST": ("last", "count"),
    "CORRELATION": ("comoments",),
    "SLOPE": ("timed",),
    "MEDIAN": ("values",),
    "PERCENTILE": ("values",),
    "MODE": ("values",),
    "TOP_K": ("values",),
    "HISTOGRAM": ("values",),
    "DISTINCT": ("hll", "count"),
    "FORECAST": ("sum", "count"),
}
ORDERED = {"DIFF", "EWMA", "PEWMA", "KALMAN", "OUTLIER_DETECTION"}
"""Fed with records: the order matters, or each of them."""
_WEIGHED = ("HT_AVG", "HT_SUM", "HT_COUNT")


def uses_events(aggregate: Aggregate, trigger: Trigger) -> bool:
    """Whether an aggregate is computed from the records of a pane in order."""
    by_time = isinstance(trigger, TimeWindow)
    counted = isinstance(aggregate.window, EventWindow)
    exact = aggregate.function == "DISTINCT" and aggregate.fed
    return not by_time or counted or exact or aggregate.function in ORDERED


def partials_of(aggregate: Aggregate) -> tuple[Partial, ...]:
    inputs = inputs_of_aggregate(aggregate)
    if aggregate.function.startswith(_WEIGHED):
        return (*(Partial("sum", (w,)) for w in _weights(inputs[0])), Partial("count", inputs))
    kinds = _MERGEABLE.get(aggregate.function)
    if kinds is None:
        raise PlanError(f"{aggregate.function} cannot be computed over panes")
    return tuple(Partial(kind, inputs) for kind in kinds)


def event_inputs_of(aggregate: Aggregate) -> tuple[Expr, ...]:
    inputs = inputs_of_aggregate(aggregate)
    if aggregate.function.startswith(_WEIGHED):
        assert isinstance(inputs[0], Guarded)
        taken = Arithmetic("*", _one(inputs[0].value), FRACTION)
        return (*inputs, replace(inputs[0], value=taken))
    if aggregate.function == "DISTINCT":
        assert isinstance(inputs[0], Guarded)
        return (replace(inputs[0], value=Apply("HASH", (), aggregate.arguments)),)
    return inputs


def inputs_of_aggregate(aggregate: Aggregate) -> tuple[Expr, ...]:
    """The values the aggregate takes from one record: nothing where its condition fails."""
    condition = conjoin(FromOrigin(aggregate.origins), aggregate.condition)
    assert condition is not None
    return tuple(Guarded(condition, argument) for argument in aggregate.arguments)


def _weights(value: Expr) -> tuple[Expr, ...]:
    """1/p, x/p, (1-p)/p², and that times x and x², for a record taken with probability p."""
    assert isinstance(value, Guarded)
    one = _one(value.value)
    x = value.value if value.value.type == NUMBER else one
    spread = Arithmetic(
        "/",
        Arithmetic("-", one, FRACTION),
        Apply("SQR", (), (FRACTION,)),
    )
    items = (
        Arithmetic("/", one, FRACTION),
        Arithmetic("/", x, FRACTION),
        spread,
        Arithmetic("*", spread, x),
        Arithmetic("*", spread, Apply("SQR", (), (x,))),
    )
    return tuple(Guarded(value.condition, item) for item in items)


def _one(x: Expr) -> Expr:
    """1 where x is there, else nothing."""
    number = x if x.type == NUMBER else Apply("HASH", (), (x,))
    return Arithmetic("+", Constant(1.0), Arithmetic("*", Constant(0.0), number))
