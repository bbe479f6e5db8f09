"""What an insight asks for, once everything it leaves out is filled in.

Every aggregate becomes one plain call: alias resolved, window given (none: everything so far),
parameters complete. A bare metric beside aggregates becomes LAST of it. A bare reference in an
insight without EVERY of its own stands for the other insight's expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fogline.language.ast import (
    And,
    Binary,
    Call,
    Condition,
    Expression,
    Insight,
    Interval,
    KeyExpression,
    Membership,
    Metric,
    Negate,
    Not,
    Or,
    Reference,
    SessionWindow,
    TimeWindow,
    WindowClause,
)
from fogline.language.functions import Kind, lookup
from fogline.testing.reference.names import ScopeNames, is_aggregate, key_name

ExpressionPlace = tuple[Expression, Insight]
"""A leaf of an expression, and the insight whose EVERY and windows it goes by."""


class Shapes:
    """Answers questions about the insights of one query file."""

    def __init__(self, names: ScopeNames) -> None:
        self.names = names

    # ── leaves: metrics, references and aggregates ─────────────────────────────────────────────

    def leaves(self, insight: Insight, context: Insight | None = None) -> Iterator[ExpressionPlace]:
        """The leaves of value and condition in order, references resolved where they expand."""
        context = context or insight
        for leaf in self._own_leaves(insight):
            other = self.expands(leaf, context)
            if other is None:
                yield leaf, context
            else:
                yield from self.leaves(other, self.context(other, context))

    def expands(self, leaf: Expression, context: Insight) -> Insight | None:
        """The insight whose expression stands in place of this leaf, if any."""
        return self.names.insight(leaf) if context.every is None else None

    def context(self, insight: Insight, outer: Insight) -> Insight:
        """An insight that looks at single records goes by the windows of the one it is in."""
        return outer if self.is_per_record(insight) else insight

    def _own_leaves(self, insight: Insight) -> Iterator[Expression]:
        yield from _expression_leaves(insight.expression)
        if insight.when is not None:
            yield from self._condition_leaves(insight.when, insight)

    def _condition_leaves(self, condition: Condition, insight: Insight) -> Iterator[Expression]:
        if isinstance(condition, And | Or):
            yield from self._condition_leaves(condition.left, insight)
            yield from self._condition_leaves(condition.right, insight)
            return
        if isinstance(condition, Not):
            yield from self._condition_leaves(condition.operand, insight)
            return
        keys = self.key_names(insight)
        sides = [condition.left] if condition.left is not None else []
        if not isinstance(condition, Membership) and not self.names.is_word(condition, keys):
            sides.append(condition.right)
        for side in sides:
            for leaf in _expression_leaves(side):
                if not (isinstance(leaf, Metric) and leaf.name in keys):
                    yield leaf

    # ── when and by what an insight is evaluated ───────────────────────────────────────────────

    def is_per_record(self, insight: Insight) -> bool:
        """No EVERY and no aggregate, nor in what it refers to."""
        return insight.every is None and all(
            self.is_per_record(other) if other else not is_aggregate(leaf)
            for leaf in self._own_leaves(insight)
            for other in [self.names.insight(leaf)]
        )

    def every(self, insight: Insight) -> Interval | None:
        """Its own EVERY, or that of the insights it expands."""
        if insight.every is not None:
            return insight.every
        others = [self.names.insight(leaf) for leaf in self._own_leaves(insight)]
        found = [self.every(other) for other in others if other]
        return next((every for every in found if every), None)

    def period(self, insight: Insight) -> TimeWindow | None:
        every = self.every(insight)
        return every if isinstance(every, TimeWindow) else None

    def session(self, insight: Insight) -> SessionWindow | None:
        windows = [leaf.window for leaf, _ in self.leaves(insight) if isinstance(leaf, Call)]
        return next((w for w in windows if isinstance(w, SessionWindow)), None)

    def keys(self, insight: Insight) -> tuple[KeyExpression, ...]:
        """Its own BY, or that of its aggregates, or that of the insights it reads."""
        if insight.keys:
            return insight.keys
        own = list(_expression_leaves(insight.expression))
        for leaf in own:
            if isinstance(leaf, Call) and leaf.keys:
                return leaf.keys
        for leaf in own:
            for name in _names_in(leaf):
                other = self.names.insight(name)
                if other:
                    return self.keys(other)
        return ()

    def key_names(self, insight: Insight) -> list[str]:
        return [key_name(key) for key in self.keys(insight)]

    # ── aggregates ─────────────────────────────────────────────────────────────────────────────

    def aggregates(self, insight: Insight) -> list[Call]:
        """All aggregates of an insight, each once, in order of appearance."""
        return list(dict.fromkeys(self.fill_call(*place) for place in self.leaves(insight)))

    def fill_call(self, leaf: Expression, context: Insight) -> Call:
        """A leaf as a complete aggregate."""
        if not isinstance(leaf, Call):
            bare = self._bare_window(leaf, context)
            return Call("LAST", (leaf,), window=bare)
        known = lookup(leaf.function)
        assert known is not None, leaf.function
        running = known.kind is Kind.RUNNING
        window = None if running else leaf.window or self._default_window(context)
        left_out = known.parameters[len(leaf.parameters) :]
        defaults = tuple(p.default for p in left_out if p.default is not None)
        parameters = (*leaf.parameters, *defaults)
        if known.name == "OUTLIER_DETECTION":
            options = context.options
            if options.neighbours is None or options.radius is None:
                raise ValueError("OUTLIER_DETECTION needs K and R")
            parameters = (float(options.neighbours), options.radius)
        if known.name == "FORECAST":
            every = self.every(context)
            if not isinstance(every, TimeWindow):
                raise ValueError("FORECAST needs EVERY with a length of time")
            parameters = (*parameters, float(every.millis))
        return replace(leaf, function=known.name, parameters=parameters, window=window, keys=())

    def _default_window(self, context: Insight) -> WindowClause:
        window = self.every(context) or self.session(context)
        if window is None:
            raise ValueError(f"{context.name} has an aggregate without a window and no EVERY")
        return window

    def _bare_window(self, leaf: Expression, context: Insight) -> WindowClause | None:
        """The longest window of the insight, EVERY, or (on arrival) everything so far."""
        every, session = self.every(context), self.session(context)
        if session is not None:
            return session
        if self.names.insight(leaf) is not None:
            return every
        if not isinstance(every, TimeWindow):
            return None
        calls = [self.fill_call(c, context) for c in self._own_leaves(context) if is_aggregate(c)]
        lengths = [c.window.millis for c in calls if isinstance(c.window, TimeWindow)]
        return TimeWindow(max(lengths, default=every.millis))

    # ── aggregates over results ────────────────────────────────────────────────────────────────

    def inner(self, argument: Expression, outer: Insight) -> Insight | None:
        """The hidden insight behind an argument that is not about plain records."""
        leaves = list(_expression_leaves(argument))
        nested = [leaf for leaf in leaves if isinstance(leaf, Call) and is_aggregate(leaf)]
        if nested:
            own = next((call.keys for call in nested if call.keys), ())
            known = {key_name(key) for key in own}
            more = tuple(k for k in self.keys(outer) if key_name(k) not in known)
            return Insight("", argument, keys=(*own, *more), every=self.every(outer))
        if any(self.names.insight(leaf) for leaf in leaves):
            return Insight("", argument)
        return None


def is_nested(argument: Expression) -> bool:
    """Whether there is an aggregate in it."""
    return any(is_aggregate(leaf) for leaf in _expression_leaves(argument))


def _expression_leaves(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Metric | Reference) or is_aggregate(expression):
        yield expression
    elif isinstance(expression, Negate):
        yield from _expression_leaves(expression.operand)
    elif isinstance(expression, Binary):
        yield from _expression_leaves(expression.left)
        yield from _expression_leaves(expression.right)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _expression_leaves(argument)


def _names_in(leaf: Expression) -> Iterator[Expression]:
    """Metrics and references in a leaf; what an inner aggregate with keys reads is its own."""
    if not isinstance(leaf, Call):
        yield leaf
        return
    for argument in leaf.arguments:
        for inner in _expression_leaves(argument):
            if not (isinstance(inner, Call) and inner.keys):
                yield from _names_in(inner)
