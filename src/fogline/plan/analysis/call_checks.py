"""The numbers of an aggregate call: its parameters, its window and its offset, all checked."""

from __future__ import annotations

from fogline.language import ast
from fogline.language.functions import Kind, lookup
from fogline.plan.analysis.context import Context
from fogline.plan.analysis.records import Records
from fogline.plan.expressions import (
    Running,
    WindowSpec,
)
from fogline.plan.operators import Trigger


class CallChecks:
    """For the calls of one insight, whose trigger is known."""

    def __init__(
        self, analysis: Context, insight: ast.Insight, trigger: Trigger, records: Records
    ) -> None:
        self.analysis = analysis
        self.insight = insight
        self.trigger = trigger
        self.records = records

    def parameters(self, call: ast.Call, name: str) -> tuple[float, ...]:
        parameters = self.records.parameters(call)
        if name == "FORECAST":
            if not isinstance(self.trigger, ast.TimeWindow):
                message = "FORECAST steps at the period of EVERY, and there is none"
                self.analysis.refuse("UNSUPPORTED", message, call, "add EVERY 10 SECONDS")
            return (*parameters, float(self.trigger.millis))
        if name == "OUTLIER_DETECTION":
            return self._outlier_parameters(call)
        return (*parameters, 1.0) if name == "PEWMA" else parameters

    def _outlier_parameters(self, call: ast.Call) -> tuple[float, ...]:
        options = self.insight.options
        if options.neighbours is None or options.radius is None:
            message = "OUTLIER_DETECTION needs K and R"
            hint = "add: WITH ALGORITHM pmcod AND K=50 AND R=0.5"
            self.analysis.refuse("OPTION", message, call, hint)
        if (options.algorithm or "pmcod").lower() != "pmcod":
            message = f"there is no outlier algorithm {options.algorithm}"
            self.analysis.refuse("OPTION", message, options, "known: pmcod")
        return (float(options.neighbours or 0), float(options.radius or 0))

    def window(self, call: ast.Call, kind: Kind) -> WindowSpec:
        if kind is Kind.RUNNING:
            if call.window is not None:
                message = f"{call.function} runs over everything and takes no window"
                self.analysis.refuse("ARGUMENTS", message, call)
            return Running()
        window = call.window or self.trigger
        if window is None:
            message = f"{call.function} needs a window or the insight needs EVERY"
            hint = f"write: {call.function}(metric, 10 SECONDS)"
            self.analysis.refuse("WINDOW", message, call, hint)
        if lookup(call.function) is lookup("FORECAST") and not isinstance(window, ast.TimeWindow):
            self.analysis.refuse("WINDOW", "FORECAST needs a window of time", call)
        if isinstance(window, ast.SessionWindow):
            self._check_retention(window.gap_millis, call)
        return window

    def offset(self, call: ast.Call, window: WindowSpec) -> int:
        offset = call.offset.millis if call.offset else 0
        if offset and not isinstance(window, ast.TimeWindow):
            self.analysis.refuse("WINDOW", "only windows of time can have an offset", call)
        if isinstance(window, ast.TimeWindow):
            self._check_retention(window.millis + offset, call)
        if isinstance(self.trigger, ast.TimeWindow):
            self._check_retention(self.trigger.millis, self.insight.every or call)
        return offset

    def _check_retention(self, millis: int, node: ast.SyntaxNode) -> None:
        if millis > self.analysis.retention_ms:
            hours = self.analysis.retention_ms / 3_600_000
            message = f"this reaches back further than records are kept ({hours:g} h)"
            self.analysis.refuse("RETENTION", message, node)
