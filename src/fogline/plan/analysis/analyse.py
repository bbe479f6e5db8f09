"""From syntax tree to analysed insights: the type check of the language.

Guarantees: whatever `analyse` returns can be compiled and run. Every problem of every statement
is found in one go and raised together as one `QueryError`.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import NoReturn

from fogline.language import ast
from fogline.model.streams import MQTT
from fogline.plan.analysis.analysed import Analysed, lift_lower
from fogline.plan.analysis.catalog import Catalog, FunctionLoader, build_catalog
from fogline.plan.analysis.mqtt_checks import check_target
from fogline.plan.analysis.problems import QueryProblems, Refused, did_you_mean
from fogline.plan.analysis.reach import MAX_CHAIN, MAX_LEVELS, MAX_TERMS, Reach
from fogline.plan.analysis.scope import Scope
from fogline.plan.expressions import Aggregate, Expr, Guarded, Sampled, conjoin, transform
from fogline.plan.operators import Sampling

DEFAULT_RETENTION_MS = 168 * 3_600_000
SCHEDULERS = {
    "baseline": "baseline",
    "perf": "perf",
    "quality": "quality",
    "energy": "energy",
    "rainbow_default": "baseline",
    "rainbow_performanceaware": "perf",
    "rainbow_qualityaware": "quality",
    "rainbow_energyaware": "energy",
}
_COMPUTED = (ast.Call, ast.Binary, ast.Negate, ast.Reference)
_BOUNDED = {"AVG", "SUM", "COUNT"}


def refuse_functions(target: str, arguments: int) -> str | None:
    """The loader that knows no functions."""
    return f'"{target}" cannot be loaded here'


def analyse(
    query: ast.QueryFile,
    text: str = "",
    loader: FunctionLoader = refuse_functions,
    retention_ms: int = DEFAULT_RETENTION_MS,
) -> tuple[Catalog, tuple[Analysed, ...]]:
    """Checks a whole file; insights come back with those they read before them."""
    problems = QueryProblems(text)
    catalog = build_catalog(query, problems, loader)
    analysis = Analysis(catalog, problems, retention_ms)
    for name, insight in catalog.insights.items():
        try:
            analysis.insight(name, insight)
        except Refused:
            continue
    if not catalog.insights and not problems.count:
        problems.add("EMPTY", "the file computes no insight", query, "add: name = COMPUTE …;")
    problems.raise_any()
    return catalog, tuple(analysis.done.values())


class Analysis:
    """The state of one analysis: what is done, what is under way (to find cycles)."""

    def __init__(self, catalog: Catalog, problems: QueryProblems, retention_ms: int) -> None:
        self.catalog = catalog
        self.problems = problems
        self.retention_ms = retention_ms
        self.done: dict[str, Analysed] = {}
        self._refused: set[str] = set()
        self._under_way: list[str] = []
        self._reach = Reach()

    def insight(self, name: str, asked_by: ast.SyntaxNode) -> Analysed:
        if name in self._refused:
            raise Refused
        if name in self._under_way:
            path = " → ".join([*self._under_way[self._under_way.index(name) :], name])
            self.refuse(
                "CYCLE",
                f"the insight {name} needs its own result: {path}",
                asked_by,
                "to read a field of that name, write: name FROM (stream)",
            )
        if name not in self.done:
            self._begin(name, asked_by)
        if not self._reach.use(name):
            self._too_deep(asked_by)
        return self.done[name]

    def _begin(self, name: str, asked_by: ast.SyntaxNode) -> None:
        if self._reach.under_way >= MAX_CHAIN:
            self._too_deep(asked_by)
        self._under_way.append(name)
        self._reach.begin()
        try:
            self._analyse(self.catalog.insights[name], hidden=False)
        except Refused:
            self._refused.add(name)
            raise
        finally:
            self._under_way.pop()
            self._reach.end(name)

    def _too_deep(self, node: ast.SyntaxNode) -> NoReturn:
        message = f"more than {MAX_CHAIN} insights build on one another"
        self.refuse("TOO_DEEP", message, node, "compute fewer of them from one another")

    def in_place(self, insight: Analysed, node: ast.SyntaxNode) -> Expr:
        """The value of another insight where its name stands."""
        if not self._reach.expand(insight):
            message = f"this insight has more than {MAX_TERMS} terms with those it names"
            self.refuse("TOO_LARGE", message, node, "add EVERY, to read results instead")
        value = insight.value
        return Guarded(insight.condition, value) if insight.condition else value

    def analyse_nested(self, insight: ast.Insight) -> Analysed:
        """An inner aggregate, analysed as a hidden insight."""
        return self._analyse(insight, hidden=True)

    def refuse(self, code: str, message: str, node: ast.SyntaxNode, hint: str = "") -> NoReturn:
        self.problems.add(code, message, node, hint)
        raise Refused

    def _analyse(self, insight: ast.Insight, hidden: bool) -> Analysed:
        before = self.problems.count
        sampling = self._sampling(insight)
        scope = Scope(self, insight, sampling)
        value = scope.value(insight.expression)
        condition = None if insight.when is None else scope.condition(insight.when, value)
        self._check_options(insight, value)
        self._check_target(insight, scope)
        origins = scope.origins()
        if self.problems.count > before:
            raise Refused
        result = Analysed(
            name=insight.name,
            keys=scope.keys,
            trigger=scope.trigger,
            value=value,
            condition=condition,
            per_record=scope.per_record,
            origins=origins,
            options=insight.options,
            sampling=sampling,
            to=insight.to,
            hidden=hidden,
        )
        return self._finish(insight, result)

    def _finish(self, insight: ast.Insight, result: Analysed) -> Analysed:
        if result.per_record and result.sampling:
            result = replace(
                result, condition=conjoin(result.condition, Sampled(result.sampling.fraction))
            )
        if result.sampling and result.sampling.live:
            result = self._bound_error(insight, result)
        levels = {name: done.level for name, done in self.done.items()}
        mixed = {a.origins[0] in levels for a in result.all_aggregates}
        if len(mixed) == 2 and not isinstance(result.trigger, ast.TimeWindow):
            self.refuse(
                "UNSUPPORTED",
                f"{insight.name} mixes streams and insights without a period",
                insight,
                "add EVERY, e.g. EVERY 10 SECONDS",
            )
        result, hidden = lift_lower(result, levels)
        if result.level > MAX_LEVELS:
            message = f"more than {MAX_LEVELS} aggregates of aggregates stand on one another"
            self.refuse("TOO_DEEP", message, insight, "compute fewer of them from one another")
        for lower in hidden:
            self.done[lower.name] = lower
        self.done[result.name] = result
        return result

    # ── WITH ───────────────────────────────────────────────────────────────────────────────────

    def _sampling(self, insight: ast.Insight) -> Sampling | None:
        options = insight.options
        bounded = options.max_error is not None
        if options.sample is not None and bounded:
            hint = "drop one of them"
            self.refuse("UNSUPPORTED", "SAMPLE and MAX_ERROR exclude each other", options, hint)
        if not bounded and (options.confidence is not None or options.awareness is not None):
            self.refuse("OPTION", "CONFIDENCE and AWARENESS need MAX_ERROR beside them", options)
        if bounded:
            return Sampling(
                max_error=options.max_error,
                confidence=options.confidence or 0.95,
                awareness=options.awareness or "ACCURACY",
            )
        return None if options.sample is None else Sampling(fraction=options.sample)

    def _bound_error(self, insight: ast.Insight, result: Analysed) -> Analysed:
        """MAX_ERROR: the estimate, the bound it reached and the fraction that would do."""
        value = result.value
        if not isinstance(value, Aggregate) or not self._can_bound(value):
            self.refuse(
                "UNSUPPORTED",
                "MAX_ERROR needs a single AVG, SUM or COUNT of a stream over a time window",
                insight,
                "compute it as an insight of its own and refer to that",
            )
        sampling = result.sampling
        assert sampling
        z = NormalDist().inv_cdf(0.5 + (sampling.confidence or 0.95) / 2)
        name = f"HT_{value.function}"
        estimate = replace(value, function=name)
        error = replace(value, function=f"{name}_ERROR", parameters=(z,))
        fraction = replace(
            value, function=f"{name}_FRACTION", parameters=(z, sampling.max_error or 0.0)
        )

        def swap(expr: Expr | None) -> Expr | None:
            if expr is None:
                return None
            return transform(expr, lambda e: estimate if e == value else e)

        return replace(
            result,
            value=estimate,
            condition=swap(result.condition),
            extras=(("error", error), ("fraction", fraction)),
        )

    def _can_bound(self, value: Aggregate) -> bool:
        by_time = isinstance(value.window, ast.TimeWindow)
        raw = value.origins[0] in self.catalog.streams
        return value.function in _BOUNDED and by_time and raw

    def _check_options(self, insight: ast.Insight, value: Expr) -> None:
        options = insight.options
        given = (options.algorithm, options.neighbours, options.radius)
        uses = isinstance(value, Aggregate) and value.function == "OUTLIER_DETECTION"
        if any(g is not None for g in given) and not uses:
            message = "ALGORITHM, K and R belong to OUTLIER_DETECTION"
            self.problems.add("OPTION", message, options, "drop them")
        if options.scheduler is not None and options.scheduler.lower() not in SCHEDULERS:
            hint = did_you_mean(options.scheduler, SCHEDULERS)
            self.problems.add("OPTION", f"no scheduler {options.scheduler}", options, hint)
        if options.allow is not None:
            self._check_allow(options.allow)

    def _check_allow(self, condition: ast.Condition) -> None:
        """ALLOW WHEN compares what a node says of itself with constants; no records are there."""
        if isinstance(condition, ast.And | ast.Or):
            self._check_allow(condition.left)
            self._check_allow(condition.right)
        elif isinstance(condition, ast.Not):
            self._check_allow(condition.operand)
        else:
            sides = [condition.left]
            if isinstance(condition, ast.Comparison):
                sides.append(condition.right)
            named = isinstance(condition.left, ast.Metric) and not condition.left.streams
            if not named or any(isinstance(s, _COMPUTED) for s in sides):
                message = "ALLOW WHEN compares a fact about a node with a constant"
                hint = "write: ALLOW WHEN node_id IN (edge-1, edge-2)"
                self.problems.add("CONDITION", message, condition, hint)

    def _check_target(self, insight: ast.Insight, scope: Scope) -> None:
        to = insight.to
        if to is not None and to.name != MQTT:
            self.problems.add("PROVIDER", f"results cannot go TO {to.name}", to, "mqtt(topic=…)")
        elif to is not None:
            check_target(to, [key.name for key in scope.keys], self.problems)
