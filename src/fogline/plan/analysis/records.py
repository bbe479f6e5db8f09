"""Record-level names: which streams a metric comes from, which field it is, of what type."""

from __future__ import annotations

from dataclasses import replace

from fogline.language import ast
from fogline.language.functions import Kind, ResultType, lookup
from fogline.model.streams import NUMBER, STRING, StreamSource
from fogline.plan.analysis.analysed import Analysed
from fogline.plan.analysis.context import Context
from fogline.plan.analysis.problems import did_you_mean
from fogline.plan.expressions import (
    LIST,
    OWN_COLUMNS,
    Apply,
    Arithmetic,
    Compare,
    Constant,
    Every,
    Expr,
    Field,
    Inverse,
    OneOf,
    conjuncts,
    disjoin,
)

ORDERINGS = {">", ">=", "<", "<="}
ANY = "any"
"""Expected of a key: a field as it is declared, else a string."""
AS_DECLARED = "as declared"
"""Expected of a value: a field as it is declared, else a number."""


class Records:
    """Resolves expressions over single records, for one insight."""

    def __init__(self, analysis: Context) -> None:
        self.analysis = analysis
        self.catalog = analysis.catalog

    # ── origins ────────────────────────────────────────────────────────────────────────────────

    def origins(self, expression: ast.Expression) -> tuple[str, ...]:
        """The streams (or the insight) an expression's metrics come from."""
        found: dict[tuple[str, ...], ast.Expression] = {}
        for metric in metrics_of(expression):
            found.setdefault(self._origin(metric), metric)
        if len(found) > 1:
            names = " and ".join(", ".join(o) for o in found)
            self.analysis.refuse(
                "UNSUPPORTED",
                f"one function cannot read both {names}",
                list(found.values())[1],
                "compute one of them as an insight of its own",
            )
        return next(iter(found), ())

    def _origin(self, metric: ast.Metric | ast.Reference) -> tuple[str, ...]:
        if isinstance(metric, ast.Reference):
            return self._insight_origin(self._reference(metric))
        if metric.streams:
            return tuple(self._stream_or_insight(name, metric) for name in metric.streams)
        if metric.name in self.catalog.insights:
            return self._insight_origin(self.analysis.insight(metric.name, metric))
        if metric.name in self.catalog.streams:
            return (metric.name,)
        return (self._owner(metric),)

    def _insight_origin(self, insight: Analysed) -> tuple[str, ...]:
        return insight.origins if insight.per_record else (insight.name,)

    def _reference(self, reference: ast.Reference) -> Analysed:
        if reference.name not in self.catalog.insights:
            hint = did_you_mean(reference.name, self.catalog.insights)
            message = f"there is no insight {reference.name}"
            self.analysis.refuse("UNKNOWN_INSIGHT", message, reference, hint)
        return self.analysis.insight(reference.name, reference)

    def _stream_or_insight(self, name: str, node: ast.SyntaxNode) -> str:
        if name in self.catalog.streams:
            return name
        if name in self.catalog.insights:
            insight = self.analysis.insight(name, node)
            if not insight.per_record:
                return name
        hint = did_you_mean(name, self.catalog.names())
        return self.analysis.refuse("UNKNOWN_STREAM", f"there is no stream {name}", node, hint)

    def _owner(self, metric: ast.Metric) -> str:
        streams = self.catalog.streams
        if not streams:
            self.analysis.refuse(
                "UNKNOWN_STREAM",
                f"{metric.name} comes from no stream",
                metric,
                'declare one: s = STREAM FROM mqtt(topic="…");',
            )
        owners = [s.name for s in streams.values() if _may_hold(s, metric.name)]
        if len(streams) == 1:
            return next(iter(streams))
        if len(owners) != 1:
            several = f"{metric.name} could come from " + ", ".join(owners or streams)
            hint = f"write: {metric.name} FROM ({(owners or list(streams))[0]})"
            self.analysis.refuse("AMBIGUOUS_METRIC", several, metric, hint)
        return owners[0]

    # ── expressions ────────────────────────────────────────────────────────────────────────────

    def expression(
        self, node: ast.Expression, origins: tuple[str, ...], expected: str | None = NUMBER
    ) -> Expr:
        """A typed expression over the records of these origins."""
        if isinstance(node, ast.Number):
            return Constant(node.value)
        if isinstance(node, ast.Text):
            return Constant(node.value)
        if isinstance(node, ast.Metric | ast.Reference):
            return self.metric(node, origins, expected)
        if isinstance(node, ast.Negate):
            return Arithmetic("-", Constant(0.0), self._number(node.operand, origins))
        if isinstance(node, ast.Binary):
            left = self._number(node.left, origins)
            return Arithmetic(node.operator, left, self._number(node.right, origins))
        return self._apply(node, origins)

    def _number(self, node: ast.Expression, origins: tuple[str, ...]) -> Expr:
        expr = self.expression(node, origins)
        if expr.type != NUMBER:
            self.analysis.problems.add("TYPE", f"arithmetic needs numbers, not {expr.type}s", node)
        return expr

    def _apply(self, call: ast.Call, origins: tuple[str, ...]) -> Expr:
        arguments = tuple(self.expression(a, origins) for a in call.arguments)
        return self.apply_function(call, arguments)

    def apply_function(self, call: ast.Call, arguments: tuple[Expr, ...]) -> Expr:
        """A per-record or declared function over arguments already resolved."""
        declared = self.catalog.functions.get(call.function)
        if declared is not None:
            expected = len(declared.arguments)
            self._count_arguments(call, len(arguments), expected)
            self._no_clauses(call)
            return Apply(call.function, (), arguments, NUMBER, declared.target)
        signature = lookup(call.function)
        if signature is None or signature.kind is not Kind.RECORD:
            self.analysis.refuse(
                "UNSUPPORTED", f"{call.function} cannot stand here", call, "use it as an insight"
            )
        self._count_arguments(call, len(arguments), signature.arguments)
        self._no_clauses(call)
        for argument, node in zip(arguments, call.arguments, strict=False):
            if argument.type != NUMBER:
                self.analysis.problems.add("TYPE", f"{call.function} needs numbers", node)
        parameters = self.parameters(call)
        kind = STRING if signature.result is ResultType.STRING else NUMBER
        return Apply(signature.name, parameters, arguments, kind)

    def _no_clauses(self, call: ast.Call) -> None:
        if call.window or call.offset or call.keys or call.condition:
            message = f"{call.function} works on one record and takes no window, WHEN or BY"
            self.analysis.problems.add("ARGUMENTS", message, call)

    def _count_arguments(self, call: ast.Call, given: int, expected: int) -> None:
        if given != expected:
            message = f"{call.function} takes {expected} argument(s), {given} given"
            self.analysis.refuse("ARGUMENTS", message, call)

    def parameters(self, call: ast.Call) -> tuple[float, ...]:
        """The numbers in square brackets, checked, defaults filled in."""
        signature = lookup(call.function)
        assert signature
        expected = signature.parameters
        needed = [p for p in expected if p.default is None]
        if not len(needed) <= len(call.parameters) <= len(expected):
            shape = (
                f"{call.function}[{', '.join(p.name for p in expected)}]" if expected else "none"
            )
            message = f"{call.function} has {len(call.parameters)} number(s) in brackets"
            self.analysis.refuse("PARAMETERS", message, call, f"expected {shape}")
        for parameter, value in zip(expected, call.parameters, strict=False):
            if not parameter.accepts(value):
                message = f"{value:g} is out of range for {call.function}"
                self.analysis.refuse("PARAMETERS", message, call, str(parameter))
        defaults = [p.default or 0.0 for p in expected[len(call.parameters) :]]
        return (*call.parameters, *defaults)

    # ── metrics ────────────────────────────────────────────────────────────────────────────────

    def metric(
        self,
        node: ast.Metric | ast.Reference,
        origins: tuple[str, ...],
        expected: str | None = NUMBER,
    ) -> Expr:
        name = node.name
        plain = isinstance(node, ast.Metric) and bool(node.streams)
        if not plain and name in self.catalog.insights:
            insight = self.analysis.insight(name, node)
            if insight.per_record:
                return self.analysis.in_place(insight, node)
            return self._result(insight, node)
        fields = [self._field(name, origin, node, expected) for origin in origins]
        return fields[0] if fields else Field(name, _default_type(expected))

    def _field(self, name: str, origin: str, node: ast.SyntaxNode, expected: str | None) -> Field:
        if origin in self.catalog.streams:
            return self._stream_field(self.catalog.streams[origin], name, node, expected)
        insight = (
            self.analysis.insight(origin, node)
            if origin in self.catalog.insights
            else (self.analysis.done[origin])
        )
        if name in (origin, "value"):
            return self._result(insight, node)
        for key in insight.keys:
            if key.name == name:
                return Field(name, key.expression.type)
        known = [*(k.name for k in insight.keys), "value"]
        hint = did_you_mean(name, known)
        return self.analysis.refuse("UNKNOWN_METRIC", f"{origin} has no {name}", node, hint)

    def _result(self, insight: Analysed, node: ast.SyntaxNode) -> Field:
        """The value of another insight's results."""
        if insight.value.type == LIST:
            message = f"{insight.name} gives lists, and a number is needed"
            self.analysis.refuse("TYPE", message, node)
        return Field("value")

    def _stream_field(
        self, stream: StreamSource, name: str, node: ast.SyntaxNode, expected: str | None
    ) -> Field:
        if name == stream.name and stream.declared_type(name) is None:
            return self._stream_value(stream, node)
        declared = stream.declared_type(name)
        if stream.schema and declared is None and not _is_reserved(stream, name):
            hint = did_you_mean(name, dict(stream.schema))
            message = f"{name} is not in the schema of {stream.name}"
            self.analysis.refuse("UNKNOWN_METRIC", message, node, hint)
        if declared and expected in (NUMBER, STRING) and declared != expected:
            message = f"{name} is a {declared} in {stream.name}, a {expected} is needed"
            hint = "true and false are the numbers 1 and 0" if declared == NUMBER else ""
            self.analysis.refuse("TYPE", message, node, hint)
        if name in OWN_COLUMNS:
            self.analysis.refuse("UNKNOWN_METRIC", f"{name} is a name of Fogline's own", node)
        narrow = stream.metric_field is not None and not _is_reserved(stream, name)
        kind = declared or _default_type(expected)
        if narrow and declared is None and (kind == NUMBER or expected is None):
            return Field(name, NUMBER, metric=True)
        return Field(name, kind)

    def _stream_value(self, stream: StreamSource, node: ast.SyntaxNode) -> Field:
        if stream.value_field is None:
            self.analysis.refuse(
                "UNKNOWN_METRIC",
                f"{stream.name} is a stream of whole records: name a field of it",
                node,
                f'write: field FROM ({stream.name}), or declare value="field" in the stream',
            )
        metric = dict(stream.conditions).get("metricID")
        if metric is not None and not metric.endswith("%"):
            return Field(metric, NUMBER, metric=True)
        return Field(stream.value_field)

    # ── conditions ─────────────────────────────────────────────────────────────────────────────

    def condition(
        self, node: ast.Condition, origins: tuple[str, ...], own: ast.Expression | None
    ) -> Expr:
        """A condition over the fields of a record; a missing left side is `own`, if given."""
        if isinstance(node, ast.And | ast.Or):
            left = self.condition(node.left, origins, own)
            right = self.condition(node.right, origins, own)
            if isinstance(node, ast.Or):
                return disjoin(left, right)
            return Every((*conjuncts(left), *conjuncts(right)))
        if isinstance(node, ast.Not):
            return Inverse(self.condition(node.operand, origins, own))
        side = node.left if own is None or node.left else replace(own, at=node.at)
        if side is None:
            message = "the condition does not say which metric is meant"
            self.analysis.refuse("CONDITION", message, node, "write: WHEN metric > 1")
        if isinstance(node, ast.Membership):
            kind = self.membership_type(node)
            value = self.expression(side, origins, kind)
            self.check_same(value, kind, node)
            return OneOf(value, tuple(v.value for v in node.values))
        return self._comparison(node, side, origins)

    def _comparison(
        self, node: ast.Comparison, left: ast.Expression, origins: tuple[str, ...]
    ) -> Expr:
        word = self.bare_word(node, origins)
        right = self.expression(node.right, origins) if word is None else Constant(word)
        result = Compare(node.operator, self.expression(left, origins, right.type), right)
        self.check_comparable(result, node)
        return result

    def bare_word(self, node: ast.Comparison, origins: tuple[str, ...]) -> str | None:
        """The string on the right of == or !=, quoted or a word that names no field."""
        right = node.right
        if isinstance(right, ast.Text):
            return right.value
        if not isinstance(right, ast.Metric) or node.operator in ORDERINGS or right.streams:
            return None
        declared = any(
            self.catalog.streams[o].declared_type(right.name)
            for o in origins
            if o in self.catalog.streams
        )
        names = (*self.catalog.used_names, *self.catalog.names())
        return None if declared or right.name in names else right.name

    def membership_type(self, node: ast.Membership) -> str:
        kinds = {NUMBER if isinstance(v, ast.Number) else STRING for v in node.values}
        if len(kinds) > 1:
            self.analysis.refuse("TYPE", "IN (…) mixes numbers and strings", node)
        return next(iter(kinds))

    def check_same(self, left: Expr, kind: str, node: ast.Comparison | ast.Membership) -> None:
        """That `left` is of the type of what it is compared with."""
        if left.type == kind:
            return
        hint = ""
        right = node.right if isinstance(node, ast.Comparison) else None
        if kind == STRING and isinstance(right, ast.Metric) and not right.streams:
            word = right.name
            hint = f"{word} is a text here; for a field of that name write: {word} FROM (stream)"
        message = f"a {left.type} cannot be compared with a {kind}"
        self.analysis.problems.add("TYPE", message, node, hint)

    def check_comparable(self, compare: Compare, node: ast.Comparison) -> None:
        left, right = compare.left.type, compare.right.type
        if left != right:
            self.check_same(compare.left, right, node)
        elif left == STRING and compare.operator in ORDERINGS:
            message = f"{compare.operator} needs numbers"
            self.analysis.problems.add("TYPE", message, node, "strings know == and !=")

    def key(self, node: ast.KeyExpression, origins: tuple[str, ...]) -> tuple[str, Expr]:
        if isinstance(node, ast.Call):
            expr = self.expression(node, origins)
            return node.function.lower(), expr
        expr = self.metric(replace(node, streams=origins or ("",)), origins, ANY)
        return node.name, expr


def _default_type(expected: str | None) -> str:
    """The type of a field that no schema declares."""
    if expected == AS_DECLARED:
        return NUMBER
    return STRING if expected in (None, ANY) else expected


def metrics_of(expression: ast.Expression) -> list[ast.Metric | ast.Reference]:
    """The names in an expression, not those inside aggregates."""
    if isinstance(expression, ast.Metric | ast.Reference):
        return [expression]
    if isinstance(expression, ast.Negate):
        return metrics_of(expression.operand)
    if isinstance(expression, ast.Binary):
        return metrics_of(expression.left) + metrics_of(expression.right)
    if isinstance(expression, ast.Call):
        return [m for a in expression.arguments for m in metrics_of(a)]
    return []


def _may_hold(stream: StreamSource, name: str) -> bool:
    if stream.declared_type(name):
        return True
    metric = dict(stream.conditions).get("metricID")
    if metric is None:
        return not stream.schema and stream.metric_field is None
    return name == metric or (metric.endswith("%") and name.startswith(metric[:-1]))


def _is_reserved(stream: StreamSource, name: str) -> bool:
    """Fields that a stream's own declaration names."""
    own = {stream.time_field, stream.entity_field, stream.metric_field, stream.value_field}
    return name in own or name in dict(stream.conditions)
