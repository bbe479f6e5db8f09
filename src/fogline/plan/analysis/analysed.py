"""An insight after analysis: names resolved, types known, every choice made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fogline.language.ast import NO_OPTIONS, Options, Provider, TimeWindow
from fogline.plan.expressions import Aggregate, Expr, Field, aggregates, transform
from fogline.plan.operators import Key, Sampling, Trigger


@dataclass(frozen=True, slots=True)
class Analysed:
    """`level` 0 reads streams; a higher level reads insights of lower levels.

    `origins` are the streams of an insight that looks at one record at a time.
    """

    name: str
    keys: tuple[Key, ...]
    trigger: Trigger
    value: Expr
    condition: Expr | None
    per_record: bool = False
    origins: tuple[str, ...] = ()
    extras: tuple[tuple[str, Expr], ...] = ()
    options: Options = NO_OPTIONS
    sampling: Sampling | None = None
    to: Provider | None = None
    hidden: bool = False
    level: int = 0

    @property
    def all_aggregates(self) -> tuple[Aggregate, ...]:
        extras = (expr for _, expr in self.extras)
        found = [a for e in (self.value, self.condition, *extras) for a in aggregates(e)]
        return tuple(dict.fromkeys(found))


def lift_lower(insight: Analysed, is_insight: dict[str, int]) -> tuple[Analysed, list[Analysed]]:
    """Puts aggregates over streams into hidden insights where others read insights.

    All aggregates of an insight must be computed at one level. Where some read insights, each
    one that reads streams becomes a hidden insight of its own, and its latest result takes its
    place.
    """
    found = insight.all_aggregates
    over_insights = [a for a in found if a.origins[0] in is_insight]
    if not over_insights or len(over_insights) == len(found):
        level = 1 + max((is_insight[o] for a in over_insights for o in a.origins), default=-1)
        keys = _keys_of_results(insight.keys) if level else insight.keys
        return replace(insight, level=level, keys=keys), []
    assert isinstance(insight.trigger, TimeWindow)
    hidden: dict[Aggregate, Analysed] = {}
    for number, aggregate in enumerate(a for a in found if a not in over_insights):
        name = f"{insight.name}/lifted{number + 1}"
        hidden[aggregate] = Analysed(
            name, insight.keys, insight.trigger, aggregate, None, hidden=True
        )
    period = insight.trigger

    def swap(expr: Expr) -> Expr:
        if not isinstance(expr, Aggregate) or expr not in hidden:
            return expr
        source = hidden[expr].name
        value = (Field("value"),)
        return Aggregate("LAST", value, (), period, 0, None, (source,), expr.type, fed=True)

    top = replace(
        insight,
        keys=_keys_of_results(insight.keys),
        value=transform(insight.value, swap),
        condition=None if insight.condition is None else transform(insight.condition, swap),
        extras=tuple((name, transform(expr, swap)) for name, expr in insight.extras),
        level=1 + max([0, *(is_insight[o] for a in over_insights for o in a.origins)]),
    )
    return top, list(hidden.values())


def _keys_of_results(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """Keys read from results instead of records: they are plain fields there."""
    return tuple(Key(key.name, Field(key.name, key.expression.type)) for key in keys)
