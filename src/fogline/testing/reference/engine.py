"""Evaluates insights by brute force: every key, every moment, every aggregate over a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fogline.language.ast import Call, Expression, Insight, Metric, TimeWindow
from fogline.language.functions import lookup
from fogline.testing.reference import values
from fogline.testing.reference.moments import (
    InsightEvent,
    Moment,
    due,
    event_order,
    samples_in,
    sessions,
    start_of,
    value_of,
)
from fogline.testing.reference.names import Row, ScopeNames
from fogline.testing.reference.shape import Shapes, is_nested

HAIR = 1
"""A result of a window that ends at E is a record at E minus this many milliseconds."""


@dataclass(frozen=True)
class ReferenceResult:
    keys: dict[str, Any]
    start: int
    end: int
    value: Any
    count: int
    on_arrival: bool

    @property
    def time(self) -> int:
        return self.end if self.on_arrival else self.end - HAIR


class ReferenceEngine:
    def __init__(self, names: ScopeNames) -> None:
        self.names = names
        self.shapes = Shapes(names)
        self._results: dict[Insight, list[ReferenceResult]] = {}

    def results(self, insight: Insight) -> list[ReferenceResult]:
        """Everything an insight emits."""
        if insight not in self._results:
            per_record = self.shapes.is_per_record(insight)
            found = self._per_record(insight) if per_record else self._aggregate_insight(insight)
            self._results[insight] = [result for result in found if result.value is not None]
        return self._results[insight]

    # ── one record at a time ───────────────────────────────────────────────────────────────────

    def _per_record(self, insight: Insight) -> Iterator[ReferenceResult]:
        for row in self.names.rows:
            keys = self.names.keys(self.shapes.keys(insight), row)
            value = self._value_over(insight, row)
            yield ReferenceResult(keys, row.time, row.time, value, 1, True)

    def _value_over(self, insight: Insight, row: Row) -> Any:
        """The value of an insight for one record; null where its condition is not true."""

        def raw(leaf: Expression) -> Any:
            other = self.names.insight(leaf)
            return self._value_over(other, row) if other else self.names.over(leaf, row)

        def numeric(leaf: Expression) -> Any:
            return raw(leaf) if self.names.insight(leaf) else values.number(raw(leaf))

        value = self.names.compute(insight.expression, numeric)
        keys = self.shapes.key_names(insight)
        if insight.when is not None and not self.names.holds(insight.when, raw, value, keys):
            return None
        return value

    # ── aggregates ─────────────────────────────────────────────────────────────────────────────

    def _aggregate_insight(self, insight: Insight) -> Iterator[ReferenceResult]:
        calls = self.shapes.aggregates(insight)
        for keys, events in self._groups(insight, calls):
            for moment in self._moments(insight, calls, events):
                yield self._evaluate(insight, calls, keys, moment)

    def _evaluate(
        self, insight: Insight, calls: Sequence[Call], keys: dict[str, Any], moment: Moment
    ) -> ReferenceResult:
        windows = {call: samples_in(call, i, moment) for i, call in enumerate(calls)}
        known = {call: value_of(call, samples, moment) for call, samples in windows.items()}
        value = self._value_of(insight, insight, known, keys)
        every = self.shapes.period(insight)
        starts = [start_of(call, samples, moment, every) for call, samples in windows.items()]
        count = max(len(samples) for samples in windows.values())
        return ReferenceResult(keys, min(starts), moment.end, value, count, moment.on_arrival)

    def _value_of(
        self, insight: Insight, context: Insight, known: Mapping[Call, Any], keys: dict[str, Any]
    ) -> Any:
        """The value of an insight given its aggregates; null where its condition is not true."""

        def leaf_value(leaf: Expression) -> Any:
            other = self.shapes.expands(leaf, context)
            if other is not None:
                return self._value_of(other, self.shapes.context(other, context), known, keys)
            return known[self.shapes.fill_call(leaf, context)]

        def key_or_leaf(leaf: Expression) -> Any:
            if isinstance(leaf, Metric) and leaf.name in keys:
                return keys[leaf.name]
            return leaf_value(leaf)

        value = self.names.compute(insight.expression, leaf_value)
        if insight.when is not None and not self.names.holds(
            insight.when, key_or_leaf, value, keys
        ):
            return None
        return value

    # ── records ────────────────────────────────────────────────────────────────────────────────

    def _groups(
        self, insight: Insight, calls: Sequence[Call]
    ) -> list[tuple[dict[str, Any], list[InsightEvent]]]:
        """The events of each key, in order of time, then of the inputs' values.

        What is only counted as distinct has no order of its own.
        """
        groups: dict[str, tuple[dict[str, Any], list[InsightEvent]]] = {}
        sources = [self._source(call, insight) for call in calls]
        for source in dict.fromkeys(sources):
            for row in self._rows(source):
                inputs = tuple(
                    self._inputs(call, row) if source == own else (None,) * len(call.arguments)
                    for call, own in zip(calls, sources, strict=True)
                )
                if any(value is not None for values_ in inputs for value in values_):
                    keys = self.names.keys(self.shapes.keys(insight), row)
                    group = groups.setdefault(values.as_json(keys), (keys, []))
                    group[1].append(InsightEvent(row.time, inputs, row.label))
        ordering = [call.function != "DISTINCT" for call in calls]
        return [
            (keys, sorted(events, key=lambda event: event_order(event, ordering)))
            for keys, events in groups.values()
        ]

    def _source(self, call: Call, insight: Insight) -> tuple[Insight | None, ...]:
        """The hidden insights behind the arguments; none for plain records."""
        found = tuple(self.shapes.inner(argument, insight) for argument in call.arguments)
        return found if any(found) else ()

    def _rows(self, source: tuple[Insight | None, ...]) -> Iterator[Row]:
        """The records an aggregate reads: those of the streams, or results of insights."""
        if not source:
            yield from self.names.rows
            return
        inner = [insight for insight in source if insight is not None]
        if len(inner) < len(source):
            raise ValueError("one aggregate cannot read records and results together")
        referred = self.names.insight(inner[0].expression)
        for result in self.results(inner[0]):
            others = (self._value_at(insight, result) for insight in inner[1:])
            named = {referred.name: result.value} if referred else {}
            yield Row(
                result.time,
                {"value": result.value, **result.keys, **named},
                arguments=(result.value, *others),
                label=result.keys if is_nested(inner[0].expression) else None,
            )

    def _value_at(self, insight: Insight, expected: ReferenceResult) -> Any:
        """What an insight gives for the keys and the moment of another one's result."""
        found = (
            r for r in self.results(insight) if (r.end, r.keys) == (expected.end, expected.keys)
        )
        return next((result.value for result in found), None)

    def _inputs(self, call: Call, row: Row) -> tuple[Any, ...]:
        """What a record gives for each argument of an aggregate."""
        nothing = (None,) * len(call.arguments)
        if call.condition is not None:
            first = call.arguments[0]
            own = row.arguments[0] if row.arguments is not None else self.names.over(first, row)
            if not self.names.holds(call.condition, lambda leaf: self.names.over(leaf, row), own):
                return nothing
        if row.arguments is not None:
            return tuple(values.number(value) for value in row.arguments)
        return tuple(self._input(call, argument, row) for argument in call.arguments)

    def _input(self, call: Call, argument: Expression, row: Row) -> Any:
        """A number; COUNT and DISTINCT take strings as well."""
        raw = self.names.over(argument, row)
        value = values.number(raw)
        known = lookup(call.function)
        return values.text(raw) if value is None and known and known.any_type else value

    # ── moments ────────────────────────────────────────────────────────────────────────────────

    def _moments(
        self, insight: Insight, calls: Sequence[Call], events: Sequence[InsightEvent]
    ) -> Iterator[Moment]:
        every, session = self.shapes.every(insight), self.shapes.session(insight)
        if session is not None:
            for first, last in sessions(events, session.gap_millis):
                end = last + session.gap_millis
                yield Moment(end, [e for e in events if e.time < end], first)
        elif isinstance(every, TimeWindow):
            for end in due(calls, events, every.millis):
                yield Moment(end, [e for e in events if e.time < end])
        else:
            step = every.events if every else 1
            for i in range(step, len(events) + 1, step):
                yield Moment(events[i - 1].time, events[:i], on_arrival=True)
