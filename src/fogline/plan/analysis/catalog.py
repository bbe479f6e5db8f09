"""What a query file declares: streams with their parameters, insights, functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fogline.language import ast
from fogline.language.limits import MAX_WINDOW_MILLIS
from fogline.model.streams import (
    AHEAD_MS,
    FORMATS,
    IDLE_MS,
    INSIGHT,
    LATENESS_MS,
    MQTT,
    NEVER,
    NUMBER,
    RELAYED,
    SHORTEST_IDLE_MS,
    STRING,
    StreamSource,
)
from fogline.plan.analysis.mqtt_checks import check_source
from fogline.plan.analysis.problems import QueryProblems, did_you_mean

_COMMON = frozenset(
    ("format", "time", "entity", "schema", "lateness", "ahead", "idle", "metric", "value", "header")
)
_REQUIRED = {"mqtt": {"topic"}, "file": {"path"}, "memory": {"name"}, "storageFabric": set[str]()}
_OPTIONAL = {"mqtt": {"broker", "nodes"}, "file": set[str](), "memory": set[str]()}
_LATER = {"kafka", "amqp"}
_TYPES = {
    "double": NUMBER,
    "float": NUMBER,
    "int": NUMBER,
    "integer": NUMBER,
    "long": NUMBER,
    "bigint": NUMBER,
    "boolean": NUMBER,
    "bool": NUMBER,
    "string": STRING,
}
_TIMES: dict[str, str | None] = {INSIGHT: "window.end"}
_UNITS = {"ms": 1, "millis": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONG_UNITS = {"second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}

FunctionLoader = Callable[[str, int], str | None]
"""Checks `module:callable` with a number of arguments; gives what is wrong, or None."""


@dataclass(frozen=True, slots=True)
class Catalog:
    streams: dict[str, StreamSource]
    insights: dict[str, ast.Insight]
    functions: dict[str, ast.Function]
    used_names: frozenset[str] = field(default=frozenset())
    """Names used as metric or key anywhere: bare words on the right of == that mean a field."""

    def names(self) -> list[str]:
        return [*self.streams, *self.insights]


def build_catalog(query: ast.QueryFile, problems: QueryProblems, loader: FunctionLoader) -> Catalog:
    streams: dict[str, StreamSource] = {}
    insights: dict[str, ast.Insight] = {}
    functions: dict[str, ast.Function] = {}
    for statement in query.statements:
        name = statement.name
        if name in streams or name in insights or name in functions:
            problems.add("DUPLICATE_NAME", f"the name {name} is declared twice", statement)
        elif isinstance(statement, ast.Stream):
            streams[name] = _stream(statement, problems)
        elif isinstance(statement, ast.Insight):
            insights[name] = statement
        else:
            functions[name] = statement
            _check_function(statement, problems, loader)
    return Catalog(streams, insights, functions, frozenset(_used_names(query)))


def _check_function(
    function: ast.Function, problems: QueryProblems, loader: FunctionLoader
) -> None:
    wrong = loader(function.target, len(function.arguments))
    if wrong:
        problems.add("FUNCTION", f"function {function.name}: {wrong}", function)


def _stream(stream: ast.Stream, problems: QueryProblems) -> StreamSource:
    provider = stream.provider
    values = {p.key: p.value for p in provider.parameters}
    _check_provider(provider, problems)
    schema = _schema(provider, problems)
    fabric = provider.name == "storageFabric"

    def text(key: str, default: str | None = None) -> str | None:
        value = values.get(key, default)
        return None if value is None else str(value)

    return StreamSource(
        name=stream.name,
        provider=provider.name,
        format=text("format", "json") or "json",
        time_field=text("time", _TIMES.get(text("format") or "", "timestamp" if fabric else None)),
        entity_field=text("entity", "entityID" if fabric else None),
        metric_field=text("metric", "metricID" if fabric else None),
        value_field=text("value", "value" if fabric else None),
        schema=schema,
        lateness_ms=_duration(provider, "lateness", LATENESS_MS, problems),
        ahead_ms=_duration(provider, "ahead", AHEAD_MS, problems),
        idle_ms=_idle(provider, problems),
        conditions=tuple(
            (p.key, str(p.value)) for p in provider.parameters if fabric and p.key not in _COMMON
        ),
        parameters=tuple((p.key, p.value) for p in provider.parameters),
    )


def _check_provider(provider: ast.Provider, problems: QueryProblems) -> None:
    if provider.name in _LATER:
        problems.add("PROVIDER", f"provider {provider.name} is not there yet", provider)
        return
    if provider.name not in _REQUIRED:
        hint = did_you_mean(provider.name, _REQUIRED)
        problems.add("PROVIDER", f"there is no provider {provider.name}", provider, hint)
        return
    keys = Counter(p.key for p in provider.parameters)
    for parameter in provider.parameters:
        if keys[parameter.key] > 1:
            problems.add("PARAMETER", f"{parameter.key} is given twice", parameter)
        allowed = _COMMON | _REQUIRED[provider.name] | _OPTIONAL.get(provider.name, set())
        if provider.name != "storageFabric" and parameter.key not in allowed:
            hint = did_you_mean(parameter.key, allowed)
            message = f"{provider.name} has no parameter {parameter.key}"
            problems.add("PARAMETER", message, parameter, hint)
    for key in sorted(_REQUIRED[provider.name] - set(keys)):
        problems.add("PARAMETER", f'{provider.name} needs {key}="…"', provider)
    form = _parameter(provider, "format")
    if form and form.value not in FORMATS:
        hint = did_you_mean(str(form.value), FORMATS)
        problems.add("PARAMETER", f"there is no format {form.value}", form, hint)
    if provider.name == MQTT:
        check_source(provider, problems)
    if _parameter(provider, "metric") and not _parameter(provider, "value"):
        problems.add("PARAMETER", 'metric="…" needs value="…" beside it', provider)


def _parameter(provider: ast.Provider, key: str) -> ast.Parameter | None:
    return next((p for p in provider.parameters if p.key == key), None)


def _schema(provider: ast.Provider, problems: QueryProblems) -> tuple[tuple[str, str], ...]:
    parameter = _parameter(provider, "schema")
    if parameter is None:
        return ()
    result: dict[str, str] = {}
    for part in str(parameter.value).split(","):
        words = part.split()
        kind = _TYPES.get(words[-1].lower()) if len(words) > 1 else None
        name = " ".join(words[:-1]).strip("`\"'")
        if kind is None:
            known = ", ".join(sorted(_TYPES))
            message = f'"{part.strip()}" in schema is not a name and a type'
            problems.add("PARAMETER", message, parameter, f"types: {known}")
        elif name in result:
            problems.add("PARAMETER", f"{name} is given twice in the schema", parameter)
        else:
            result[name] = kind
    return tuple(result.items())


def duration_ms(text: str) -> int | None:
    """`2 s`, `500 ms`, `1 minutes` in milliseconds; None when it is not a duration, or one of more
    than ten years."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-z]+)\s*", text)
    if not match:
        return None
    unit = match[2].lower()
    factor = _UNITS.get(unit) or _LONG_UNITS.get(unit.removesuffix("s"))
    millis = round(float(match[1]) * factor) if factor is not None else MAX_WINDOW_MILLIS + 1
    return millis if millis <= MAX_WINDOW_MILLIS else None


def _duration(provider: ast.Provider, key: str, absent: int, problems: QueryProblems) -> int:
    parameter = _parameter(provider, key)
    if parameter is None:
        return absent
    millis = duration_ms(str(parameter.value))
    if millis is None:
        hint = f'write a number and a unit, e.g. {key}="2 s"'
        problems.add("PARAMETER", f'{key} "{parameter.value}" is not a duration', parameter, hint)
        return absent
    return millis


def _idle(provider: ast.Provider, problems: QueryProblems) -> int | None:
    """Results and relayed messages may be held up on their way for long: they are waited for."""
    parameter = _parameter(provider, "idle")
    if parameter is None:
        form, topic = _parameter(provider, "format"), _parameter(provider, "topic")
        results = form is not None and form.value == INSIGHT
        relayed = topic is not None and str(topic.value).startswith(RELAYED)
        return None if provider.name != MQTT or results or relayed else IDLE_MS
    if str(parameter.value).strip().lower() == NEVER:
        return None
    millis = _duration(provider, "idle", IDLE_MS, problems)
    if millis < SHORTEST_IDLE_MS:
        hint = f'write idle="{SHORTEST_IDLE_MS // 1000} s" or more, or idle="{NEVER}"'
        problems.add("PARAMETER", f'idle "{parameter.value}" is too short', parameter, hint)
    return millis


def _used_names(query: ast.QueryFile) -> Iterator[str]:
    """Every name that stands where only a metric or a key can stand."""
    for insight in query.insights:
        yield from _metrics(insight.expression)
        for key in insight.keys:
            yield from _metrics(key)
        if insight.when is not None:
            yield from _condition_metrics(insight.when)


def _metrics(expression: ast.Expression) -> Iterator[str]:
    if isinstance(expression, ast.Metric):
        yield expression.name
    elif isinstance(expression, ast.Negate):
        yield from _metrics(expression.operand)
    elif isinstance(expression, ast.Binary):
        yield from _metrics(expression.left)
        yield from _metrics(expression.right)
    elif isinstance(expression, ast.Call):
        for part in (*expression.arguments, *expression.keys):
            yield from _metrics(part)
        if expression.condition is not None:
            yield from _condition_metrics(expression.condition)


def _condition_metrics(condition: ast.Condition) -> Iterator[str]:
    if isinstance(condition, ast.And | ast.Or):
        yield from _condition_metrics(condition.left)
        yield from _condition_metrics(condition.right)
    elif isinstance(condition, ast.Not):
        yield from _condition_metrics(condition.operand)
    elif condition.left is not None:
        yield from _metrics(condition.left)
