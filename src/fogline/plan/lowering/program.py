"""The optimised plan as a program of levels: what an engine runs, with nothing left to decide."""

from __future__ import annotations

from dataclasses import dataclass

from fogline.language.ast import NO_OPTIONS, Options, Provider, TimeWindow
from fogline.plan.expressions import Aggregate, Expr, aggregates
from fogline.plan.operators import (
    Combine,
    Emit,
    Evaluate,
    Feed,
    Key,
    Panes,
    Partial,
    Plan,
    Sampling,
    Scan,
    Trigger,
)


@dataclass(frozen=True, slots=True)
class Channel:
    """One set of keys at one level: a first stage."""

    number: int
    keys: tuple[Key, ...]
    partials: tuple[Partial, ...]
    events: tuple[Expr, ...]
    feeds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProgramNode:
    """One evaluation point of the second stage: some aggregates of a channel at a trigger."""

    number: int
    channel: int
    trigger: Trigger
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A named result computed from a node's aggregates, or from records (`node` -1)."""

    name: str
    node: int
    keys: tuple[Key, ...]
    value: Expr
    condition: Expr | None
    trigger: Trigger
    extras: tuple[tuple[str, Expr], ...] = ()
    options: Options = NO_OPTIONS
    sampling: Sampling | None = None
    to: Provider | None = None
    hidden: bool = False
    origins: tuple[str, ...] = ()
    """The streams of a result made from records."""

    @property
    def own(self) -> tuple[Aggregate, ...]:
        """The aggregates the result is made of, in order."""
        extras = tuple(expr for _, expr in self.extras)
        found = [a for e in (self.value, self.condition, *extras) for a in aggregates(e)]
        return tuple(dict.fromkeys(found))

    @property
    def deciding(self) -> tuple[Aggregate, ...]:
        """Those that decide whether there is anything to emit: windows of time, if there are."""
        timed = tuple(a for a in self.own if isinstance(a.window, TimeWindow))
        return timed if timed and isinstance(self.trigger, TimeWindow) else self.own


@dataclass(frozen=True, slots=True)
class Level:
    channels: tuple[Channel, ...]
    nodes: tuple[ProgramNode, ...]
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Program:
    pane_ms: int
    scans: tuple[Scan, ...]
    levels: tuple[Level, ...]
    record_scans: tuple[Scan, ...]
    record_outputs: tuple[Output, ...]

    @property
    def outputs(self) -> tuple[Output, ...]:
        stateful = tuple(o for level in self.levels for o in level.outputs)
        return (*stateful, *self.record_outputs)


def lower(plan: Plan) -> Program:
    """Turns an optimised plan into a program."""
    depth = 1 + max((c.level for e in plan.emits if (c := _combine(e))), default=-1)
    levels = tuple(_level(plan, number) for number in range(depth))
    per_record = [e for e in plan.emits if _evaluate(e).per_record]
    return Program(
        pane_ms=next((_panes(c).pane_ms for e in plan.emits if (c := _combine(e))), 1000),
        scans=_scans(op for e in plan.emits if (c := _combine(e)) for op in _panes(c).inputs),
        levels=levels,
        record_scans=_scans(op for e in per_record for op in _evaluate(e).inputs),
        record_outputs=tuple(_output(e, -1) for e in per_record),
    )


def _level(plan: Plan, number: int) -> Level:
    emits = [e for e in plan.emits if (c := _combine(e)) and c.level == number]
    panes = list(dict.fromkeys(_panes(c) for e in emits if (c := _combine(e))))
    combines = list(dict.fromkeys(c for e in emits if (c := _combine(e))))
    channels = tuple(_channel(index, p) for index, p in enumerate(panes))
    nodes = tuple(
        ProgramNode(index, panes.index(_panes(c)), c.trigger, c.aggregates)
        for index, c in enumerate(combines)
    )
    outputs = tuple(_output(e, combines.index(c)) for e in emits if (c := _combine(e)))
    return Level(channels, nodes, outputs)


def _channel(number: int, panes: Panes) -> Channel:
    feeds = tuple(op.insight for op in panes.inputs if isinstance(op, Feed))
    return Channel(number, panes.keys, panes.partials, panes.events, feeds)


def _output(emit: Emit, node: int) -> Output:
    evaluate = _evaluate(emit)
    return Output(
        emit.name,
        node,
        evaluate.keys,
        evaluate.value,
        evaluate.condition,
        evaluate.trigger,
        evaluate.extras,
        emit.options,
        emit.sampling,
        emit.to,
        emit.hidden,
        tuple(op.stream.name for op in evaluate.inputs if isinstance(op, Scan)),
    )


def _evaluate(emit: Emit) -> Evaluate:
    assert isinstance(emit.input, Evaluate)
    return emit.input


def _combine(emit: Emit) -> Combine | None:
    evaluate = _evaluate(emit)
    if evaluate.per_record:
        return None
    combine = evaluate.inputs[0]
    assert isinstance(combine, Combine)
    return combine


def _panes(combine: Combine) -> Panes:
    assert isinstance(combine.input, Panes)
    return combine.input


def _scans(operators: object) -> tuple[Scan, ...]:
    found = [op for op in operators if isinstance(op, Scan)]  # type: ignore[attr-defined]
    return tuple(dict.fromkeys(found))
