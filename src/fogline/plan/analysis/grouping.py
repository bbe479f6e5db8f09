"""When an insight is evaluated, by which keys, and over what: all but its value."""

from __future__ import annotations

from fogline.language import ast
from fogline.language.functions import Kind, known_names, lookup
from fogline.plan.analysis.analysed import Analysed
from fogline.plan.analysis.context import Context
from fogline.plan.analysis.problems import did_you_mean
from fogline.plan.analysis.records import Records, metrics_of
from fogline.plan.analysis.tree import calls_in, is_aggregate, names_outside_aggregates
from fogline.plan.expressions import (
    Field,
)
from fogline.plan.operators import Key, Trigger


class InsightGrouping:
    """The trigger, the keys and the origins of one insight."""

    def __init__(self, analysis: Context, insight: ast.Insight) -> None:
        self.analysis = analysis
        self.insight = insight
        self.records = Records(analysis)
        self._calls = [c for c in calls_in(insight.expression, insight.when) if self._signature(c)]
        self._inlined = self._inlined_insights()
        self.trigger = self._find_trigger()
        self.per_record = not self._calls and not self._inlined and insight.every is None
        self.keys = self._find_keys()

    def _signature(self, call: ast.Call) -> bool:
        """Whether a call is an aggregate; unknown functions are refused here."""
        if call.function in self.analysis.catalog.functions:
            return False
        signature = lookup(call.function)
        if signature is None:
            names = [*known_names(), *self.analysis.catalog.functions]
            message = f"there is no function {call.function}"
            hint = did_you_mean(call.function, names)
            self.analysis.refuse("UNKNOWN_FUNCTION", message, call, hint)
        return signature.kind is not Kind.RECORD

    # ── trigger ────────────────────────────────────────────────────────────────────────────────

    def _inlined_insights(self) -> list[Analysed]:
        """Insights named outside aggregates: computed in place unless EVERY says otherwise."""
        catalog = self.analysis.catalog
        found: dict[str, Analysed] = {}
        for node in names_outside_aggregates(self.insight.expression, self.insight.when):
            plain = isinstance(node, ast.Metric) and bool(node.streams)
            if node.name in catalog.insights and not plain:
                found[node.name] = self.analysis.insight(node.name, node)
        return [i for i in found.values() if not i.per_record]

    def _find_trigger(self) -> Trigger:
        every = self.insight.every
        sessions = {c.window for c in self._calls if isinstance(c.window, ast.SessionWindow)}
        if sessions:
            return self._session_trigger(sessions)
        if every is not None:
            return every
        triggers = {i.trigger for i in self._inlined}
        if len(triggers) > 1:
            self.analysis.refuse(
                "UNSUPPORTED",
                "the insights used here are evaluated at different periods",
                self.insight,
                "add EVERY to say when this one is",
            )
        return next(iter(triggers), None)

    def _session_trigger(self, sessions: set[ast.SessionWindow]) -> Trigger:
        alike = all(isinstance(c.window, ast.SessionWindow) for c in self._calls)
        if len(sessions) > 1 or not alike:
            message = "SESSION windows cannot be mixed with other windows in one insight"
            self.analysis.refuse("UNSUPPORTED", message, self.insight, "split the insight")
        if self.insight.every is not None:
            message = "a SESSION is evaluated when it ends: EVERY has no meaning beside it"
            self.analysis.refuse("UNSUPPORTED", message, self.insight, "drop EVERY")
        return next(iter(sessions))

    # ── keys ───────────────────────────────────────────────────────────────────────────────────

    def _find_keys(self) -> tuple[Key, ...]:
        nodes = self.insight.keys or self._call_keys()
        if not nodes:
            return self._inherited_keys()
        origins = self._all_origins()
        keys: dict[str, Key] = {}
        for node in nodes:
            name, expr = self.records.key(node, origins)
            if name in keys:
                self.analysis.problems.add("KEYS", f"BY names {name} twice", node)
            keys[name] = Key(name, expr)
        result = tuple(keys.values())
        for insight in self._inlined if self.insight.every is None else ():
            if {k.name for k in insight.keys} != set(keys):
                self._refuse_keys(insight)
        return result

    def _call_keys(self) -> tuple[ast.KeyExpression, ...]:
        given = {c.keys for c in self._calls if c.keys}
        if len(given) > 1:
            self.analysis.refuse(
                "KEYS",
                "the aggregates of one insight must have the same keys",
                self.insight,
                "write BY once, at the end",
            )
        return next(iter(given), ())

    def _inherited_keys(self) -> tuple[Key, ...]:
        catalog = self.analysis.catalog
        sources = list(self._inlined)
        for call in self._calls:
            sources += self._insights_read(call)
        for node in names_outside_aggregates(self.insight.expression, None):
            if node.name in catalog.insights:
                sources.append(self.analysis.insight(node.name, node))
        kinds = {tuple((k.name, k.expression.type) for k in s.keys) for s in sources}
        if len(kinds) > 1:
            self._refuse_keys(sources[0])
        if sources and (sources[0].level or not sources[0].per_record) and not self._inlines():
            return tuple(Key(k.name, Field(k.name, k.expression.type)) for k in sources[0].keys)
        return sources[0].keys if sources else ()

    def _inlines(self) -> bool:
        return bool(self._inlined) and self.insight.every is None

    def _refuse_keys(self, insight: Analysed) -> None:
        names = ", ".join(k.name for k in insight.keys) or "none"
        message = f"the insights used here have different keys (those of {insight.name}: {names})"
        self.analysis.refuse("KEYS", message, self.insight, "say BY, or aggregate them first")

    def _insights_read(self, call: ast.Call) -> list[Analysed]:
        """The insights whose results, or whose values of single records, an aggregate takes."""
        origins = self._call_origins(call)
        if not origins:
            return []
        named = [m for a in call.arguments for m in metrics_of(a)]
        plain = [m.name for m in named if isinstance(m, ast.Reference) or not m.streams]
        known = self.analysis.catalog.insights
        names = [name for name in dict.fromkeys([*origins, *plain]) if name in known]
        return [self.analysis.insight(name, call) for name in names]

    def _call_origins(self, call: ast.Call) -> tuple[str, ...]:
        if any(is_aggregate(c) for a in call.arguments for c in calls_in(a, None)):
            return ()
        return tuple(o for a in call.arguments for o in self.records.origins(a))

    def _all_origins(self) -> tuple[str, ...]:
        """Every stream or insight this insight reads, to check the keys against."""
        found: dict[str, None] = {}
        for call in self._leaf_calls():
            found.update(dict.fromkeys(self._call_origins(call)))
        for insight in self._inlined:
            found[insight.name] = None
        for node in names_outside_aggregates(self.insight.expression, None):
            found.update(dict.fromkeys(self.records.origins(node)))
        return tuple(found)

    def _leaf_calls(self) -> list[ast.Call]:
        return list(self._calls) + [
            inner
            for call in self._calls
            for argument in call.arguments
            for inner in calls_in(argument, None)
            if is_aggregate(inner)
        ]

    def origins(self) -> tuple[str, ...]:
        """The streams of a per-record insight; empty for others."""
        if not self.per_record:
            return ()
        found = self.records.origins(self.insight.expression)
        if not found:
            message = f"{self.insight.name} reads no stream"
            self.analysis.refuse("CONSTANT", message, self.insight.expression)
        return found
