"""The operators of a plan: frozen nodes, checked by the analysis that makes them.

A plan is a tuple of `Emit` roots. Sub-plans are shared by being equal. Before the rules run, each
aggregate stands over its own `Filter`, `Sample` and `Scan`; afterwards `Combine` over `Panes`
over `Scan` is all that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fogline.language.ast import (
    NO_OPTIONS,
    EventWindow,
    Options,
    Provider,
    SessionWindow,
    TimeWindow,
)
from fogline.model.streams import StreamSource
from fogline.plan.expressions import Aggregate, Expr, Field


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a result: its name and how a record gives it."""

    name: str
    expression: Expr


@dataclass(frozen=True, slots=True)
class Sampling:
    """SAMPLE p, or MAX_ERROR/CONFIDENCE where the fraction follows the data."""

    fraction: float | None = None
    max_error: float | None = None
    confidence: float | None = None
    awareness: str = "ACCURACY"

    @property
    def live(self) -> bool:
        return self.max_error is not None


Trigger = TimeWindow | EventWindow | SessionWindow | None
"""When an insight is evaluated: EVERY time, EVERY n events, at the end of a session, on arrival."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Records of one stream. `columns` None: whole records."""

    stream: StreamSource
    columns: tuple[Field, ...] | None = None
    condition: Expr | None = None
    sampling: Sampling | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """Results of another insight, as it emits them."""

    insight: str


@dataclass(frozen=True, slots=True)
class Requery:
    """Another insight computed anew inside this one."""

    insight: str
    input: Operator


@dataclass(frozen=True, slots=True)
class Filter:
    input: Operator
    condition: Expr


@dataclass(frozen=True, slots=True)
class Sample:
    input: Operator
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Window:
    """One aggregate as the query says it."""

    inputs: tuple[Operator, ...]
    aggregate: Aggregate
    keys: tuple[Key, ...]
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Partial:
    """What the first stage keeps of a pane for one input (two for `comoments`)."""

    kind: str
    inputs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Panes:
    """First stage: records of one set of keys, aggregated once into tumbling panes."""

    inputs: tuple[Operator, ...]
    keys: tuple[Key, ...]
    pane_ms: int
    partials: tuple[Partial, ...]
    events: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Combine:
    """Second stage: panes of one key into the windows of some aggregates."""

    input: Operator
    aggregates: tuple[Aggregate, ...]
    trigger: Trigger
    level: int = 0


@dataclass(frozen=True, slots=True)
class Evaluate:
    """The value of an insight and the condition under which it is emitted.

    Over aggregates `inputs` are windows (one `Combine` after the rules); with no aggregate they
    are the records themselves.
    """

    inputs: tuple[Operator, ...]
    keys: tuple[Key, ...]
    value: Expr
    condition: Expr | None
    trigger: Trigger
    per_record: bool = False
    extras: tuple[tuple[str, Expr], ...] = ()
    """Further values of the result, such as the error bound that was reached."""


@dataclass(frozen=True, slots=True)
class Emit:
    """A named result. Hidden ones only feed others."""

    name: str
    input: Operator
    options: Options = NO_OPTIONS
    sampling: Sampling | None = None
    to: Provider | None = None
    hidden: bool = False


Operator = Scan | Feed | Requery | Filter | Sample | Window | Panes | Combine | Evaluate | Emit


@dataclass(frozen=True, slots=True)
class Plan:
    emits: tuple[Emit, ...]

    def emit(self, name: str) -> Emit:
        return next(e for e in self.emits if e.name == name)


def inputs_of(operator: Operator) -> tuple[Operator, ...]:
    if isinstance(operator, Scan | Feed):
        return ()
    if isinstance(operator, Window | Panes | Evaluate):
        return operator.inputs
    return (operator.input,)


def with_inputs(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
    if isinstance(operator, Scan | Feed):
        return operator
    if isinstance(operator, Window | Panes | Evaluate):
        return replace(operator, inputs=inputs)
    return replace(operator, input=inputs[0])


def walk(operator: Operator) -> Iterator[Operator]:
    yield operator
    for child in inputs_of(operator):
        yield from walk(child)


def walk_plan(plan: Plan) -> Iterator[Operator]:
    for emit in plan.emits:
        yield from walk(emit)


def rewrite(operator: Operator, change: Callable[[Operator], Operator]) -> Operator:
    """Rebuilds a tree bottom up; `change` sees every operator once."""
    inputs = inputs_of(operator)
    changed = tuple(rewrite(child, change) for child in inputs)
    return change(with_inputs(operator, changed) if changed != inputs else operator)


def rewrite_plan(plan: Plan, change: Callable[[Operator], Operator]) -> Plan:
    emits = tuple(rewrite(emit, change) for emit in plan.emits)
    return Plan(tuple(e for e in emits if isinstance(e, Emit)))
