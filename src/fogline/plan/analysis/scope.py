"""The scope of one insight: how its value and its condition are resolved."""

from __future__ import annotations

from dataclasses import replace

from fogline.language import ast
from fogline.language.functions import Kind, ResultType, lookup
from fogline.model.streams import NUMBER, STRING
from fogline.plan.analysis.call_checks import CallChecks
from fogline.plan.analysis.context import Context
from fogline.plan.analysis.grouping import InsightGrouping
from fogline.plan.analysis.records import AS_DECLARED
from fogline.plan.analysis.tree import calls_in, is_aggregate, strip_keys
from fogline.plan.expressions import (
    LIST,
    Aggregate,
    Arithmetic,
    Compare,
    Constant,
    Every,
    Expr,
    Field,
    Inverse,
    KeyValue,
    OneOf,
    Running,
    Sampled,
    WindowSpec,
    aggregates,
    conjoin,
    conjuncts,
    disjoin,
)
from fogline.plan.operators import Sampling

SCALED = frozenset({"COUNT", "SUM", "RUNNING_COUNT"})
"""Of a sample, these are divided by its fraction."""


class Scope(InsightGrouping):
    def __init__(self, analysis: Context, insight: ast.Insight, sampling: Sampling | None) -> None:
        super().__init__(analysis, insight)
        self.sampling = sampling
        self._nested = 0
        self._checks = CallChecks(analysis, insight, self.trigger, self.records)

    # ── values ─────────────────────────────────────────────────────────────────────────────────

    def value(self, node: ast.Expression) -> Expr:
        if self.per_record:
            return self.records.expression(node, self.records.origins(node), AS_DECLARED)
        expr = self._value(node)
        if not aggregates(expr):
            self.analysis.refuse("CONSTANT", f"{self.insight.name} reads no stream", node)
        return expr

    def _value(self, node: ast.Expression) -> Expr:
        if isinstance(node, ast.Number | ast.Text):
            return Constant(node.value)
        if isinstance(node, ast.Metric | ast.Reference):
            return self._bare(node)
        if isinstance(node, ast.Negate):
            return Arithmetic("-", Constant(0.0), self._number(node.operand))
        if isinstance(node, ast.Binary):
            return Arithmetic(node.operator, self._number(node.left), self._number(node.right))
        if is_aggregate(node) and node.function not in self.analysis.catalog.functions:
            return self._aggregate(node)
        result = self.records.apply_function(node, tuple(self._number(a) for a in node.arguments))
        if result.type != NUMBER:
            message = f"{node.function} works on records, not on results"
            hint = f"use it as a key: BY {node.function}[…](…), or in an insight without EVERY"
            self.analysis.refuse("UNSUPPORTED", message, node, hint)
        return result

    def _number(self, node: ast.Expression) -> Expr:
        expr = self._value(node)
        if expr.type != NUMBER:
            message = f"arithmetic needs numbers, not a {expr.type}"
            self.analysis.problems.add("TYPE", message, node)
        return expr

    def _bare(self, node: ast.Metric | ast.Reference) -> Expr:
        """A name beside aggregates: another insight in place, or the metric's latest value."""
        catalog = self.analysis.catalog
        named = isinstance(node, ast.Reference) or not node.streams
        if named and (isinstance(node, ast.Reference) or node.name in catalog.insights):
            self.records.origins(node)
            insight = self.analysis.insight(node.name, node)
            if self.insight.every is None and not insight.per_record:
                if insight.sampling and insight.sampling.live:
                    message = f"{node.name} has MAX_ERROR; aggregate its results instead"
                    self.analysis.refuse("UNSUPPORTED", message, node)
                return self.analysis.in_place(insight, node)
        origins = self.records.origins(node)
        argument = self.records.metric(node, origins)
        if argument.type != NUMBER:
            message = f"{node.name} is a {argument.type}, and a number is needed"
            hint = "drop EVERY and the aggregates, or use it as a key: BY " + node.name
            self.analysis.refuse("TYPE", message, node, hint)
        return self._make("LAST", (argument,), (), self._bare_window(), 0, None, origins)

    def _bare_window(self) -> WindowSpec:
        if isinstance(self.trigger, ast.TimeWindow):
            windows = [c.window or self.trigger for c in self._calls if _is_windowed(c)]
            lengths = [w for w in windows if isinstance(w, ast.TimeWindow)]
            return max(lengths or [self.trigger], key=lambda w: w.millis)
        if isinstance(self.trigger, ast.SessionWindow):
            return self.trigger
        return Running()

    def _make(
        self,
        function: str,
        arguments: tuple[Expr, ...],
        parameters: tuple[float, ...],
        window: WindowSpec,
        offset: int,
        condition: Expr | None,
        origins: tuple[str, ...],
        kind: str = NUMBER,
        labelled: bool = False,
    ) -> Expr:
        raw = bool(origins) and origins[0] in self.analysis.catalog.streams
        if self.sampling and raw:
            condition = conjoin(condition, Sampled(self.sampling.fraction))
        result = Aggregate(
            function,
            arguments,
            parameters,
            window,
            offset,
            condition,
            origins,
            kind,
            labelled,
            fed=not raw,
        )
        if self.sampling and raw and self.sampling.fraction and function in SCALED:
            return Arithmetic("/", result, Constant(self.sampling.fraction))
        return result

    # ── aggregates ─────────────────────────────────────────────────────────────────────────────

    def _aggregate(self, call: ast.Call) -> Expr:
        signature = lookup(call.function)
        assert signature
        if len(call.arguments) != signature.arguments:
            message = (
                f"{call.function} takes {signature.arguments} metric(s), "
                f"{len(call.arguments)} given"
            )
            self.analysis.refuse("ARGUMENTS", message, call)
        parameters = self._checks.parameters(call, signature.name)
        window = self._checks.window(call, signature.kind)
        offset = self._checks.offset(call, window)
        inner = [a for a in call.arguments if any(is_aggregate(c) for c in calls_in(a, None))]
        if inner:
            return self._over_inner(call, signature.name, parameters, window, offset)
        if call.keys and tuple(_key_names(call.keys)) != tuple(k.name for k in self.keys):
            message = f"the keys of {call.function} are not those of the insight"
            self.analysis.refuse("KEYS", message, call, "write BY once, at the end")
        origins = self._shared_origins(call)
        if not origins:
            self.analysis.refuse("CONSTANT", f"{call.function} reads no metric", call)
        arguments = tuple(self._argument(a, origins, signature.any_type) for a in call.arguments)
        condition = self._call_condition(call, origins)
        kind = LIST if signature.result is ResultType.LIST else NUMBER
        return self._make(
            signature.name, arguments, parameters, window, offset, condition, origins, kind
        )

    def _shared_origins(self, call: ast.Call) -> tuple[str, ...]:
        """Where all arguments come from: two values of one record have one origin."""
        found = {o for a in call.arguments if (o := self.records.origins(a))}
        if len(found) > 1:
            names = " and ".join(sorted(", ".join(origins) for origins in found))
            message = f"one function cannot read both {names}"
            hint = "compute one of them as an insight of its own"
            self.analysis.refuse("UNSUPPORTED", message, call, hint)
        return next(iter(found), ())

    def _call_condition(self, call: ast.Call, origins: tuple[str, ...]) -> Expr | None:
        if call.condition is None:
            return None
        own = call.arguments[0] if len(call.arguments) == 1 else None
        return self.records.condition(call.condition, origins, own)

    def _argument(self, node: ast.Expression, origins: tuple[str, ...], any_type: bool) -> Expr:
        stream = self.analysis.catalog.streams.get(getattr(node, "name", ""))
        if any_type and stream and stream.value_field is None:
            return Constant(1.0)
        expr = self.records.expression(node, origins, None if any_type else NUMBER)
        if expr.type != NUMBER and not any_type:
            self.analysis.problems.add("TYPE", f"a number is needed, not a {expr.type}", node)
        return expr

    def _over_inner(
        self,
        call: ast.Call,
        function: str,
        parameters: tuple[float, ...],
        window: WindowSpec,
        offset: int,
    ) -> Expr:
        """An aggregate of an aggregate: the inner one becomes a hidden insight."""
        if not isinstance(self.insight.every, ast.TimeWindow):
            message = "an aggregate of an aggregate needs EVERY with a time"
            self.analysis.refuse("UNSUPPORTED", message, call, "add EVERY 10 SECONDS")
        if len(call.arguments) != 1:
            message = f"{call.function} over an aggregate takes one argument"
            self.analysis.refuse("UNSUPPORTED", message, call)
        self._nested += 1
        argument = call.arguments[0]
        given = {c.keys for c in calls_in(argument, None) if c.keys}
        if len(given) > 1:
            message = f"the aggregates that {call.function} takes have different keys"
            self.analysis.refuse("KEYS", message, call, "make insights of their own of them")
        own = next(iter(given), ())
        names = set(_key_names(own))
        extra = tuple(k for k in self.insight.keys if _key_name(k) not in names)
        hidden = ast.Insight(
            name=f"{self.insight.name}/inner{self._nested}",
            expression=strip_keys(argument),
            keys=(*own, *extra),
            every=self.insight.every,
            options=replace(ast.Options(), sample=self.insight.options.sample),
            at=self.insight.at,
        )
        inner = self.analysis.analyse_nested(hidden)
        if inner.value.type == LIST:
            self.analysis.refuse("TYPE", f"{call.function} needs numbers, not lists", call)
        condition = None
        if call.condition is not None:
            value = ast.Metric("value", (inner.name,), at=argument.at)
            condition = self.records.condition(call.condition, (inner.name,), value)
        kind = LIST if function in ("TOP_K", "HISTOGRAM", "OUTLIER_DETECTION") else NUMBER
        labelled = function == "TOP_K"
        return self._make(
            function,
            (Field("value"),),
            parameters,
            window,
            offset,
            condition,
            (inner.name,),
            kind,
            labelled,
        )

    # ── conditions ─────────────────────────────────────────────────────────────────────────────

    def condition(self, node: ast.Condition, value: Expr) -> Expr:
        """The insight's WHEN; a missing left side is the insight's value."""
        if isinstance(node, ast.And):
            left, right = self.condition(node.left, value), self.condition(node.right, value)
            return Every((*conjuncts(left), *conjuncts(right)))
        if isinstance(node, ast.Or):
            return disjoin(self.condition(node.left, value), self.condition(node.right, value))
        if isinstance(node, ast.Not):
            return Inverse(self.condition(node.operand, value))
        if isinstance(node, ast.Membership):
            kind = self.records.membership_type(node)
            left = self._side(node.left, value, kind)
            values = tuple(v.value for v in node.values)
            self.records.check_same(left, kind, node)
            return OneOf(left, values)
        word = self.records.bare_word(node, self._origins_for_words())
        if word is not None and word not in {k.name for k in self.keys}:
            text = Compare(node.operator, self._side(node.left, value, STRING), Constant(word))
            self.records.check_comparable(text, node)
            return text
        right = self._side(node.right, value, NUMBER)
        result = Compare(node.operator, self._side(node.left, value, right.type), right)
        if LIST in (result.left.type, result.right.type):
            self.analysis.refuse("TYPE", "a list cannot be compared", node, "drop WHEN")
        self.records.check_comparable(result, node)
        return result

    def _origins_for_words(self) -> tuple[str, ...]:
        return tuple(self.analysis.catalog.streams)

    def _side(self, node: ast.Expression | None, value: Expr, expected: str) -> Expr:
        if node is None:
            return value
        if self.per_record:
            origins = self.records.origins(self.insight.expression)
            return self.records.expression(node, origins, expected)
        if isinstance(node, ast.Metric) and not node.streams:
            for key in self.keys:
                if key.name == node.name:
                    return KeyValue(key.name, key.expression.type)
            if expected == STRING:
                message = f"{node.name} is not a key of the insight"
                hint = f"add BY {node.name}, or filter the records: metric WHEN {node.name} == …"
                self.analysis.refuse("CONDITION", message, node, hint)
        return self._value(node)


def _is_windowed(call: ast.Call) -> bool:
    signature = lookup(call.function)
    return signature is not None and signature.kind is Kind.WINDOWED


def _key_name(key: ast.KeyExpression) -> str:
    return key.name if isinstance(key, ast.Metric) else key.function.lower()


def _key_names(keys: tuple[ast.KeyExpression, ...]) -> list[str]:
    return [_key_name(key) for key in keys]
