"""The query text of some insights of a file, reading others of them as streams of results."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from fogline.language.ast import (
    Call,
    Insight,
    Metric,
    Parameter,
    Provider,
    QueryFile,
    Reference,
    Statement,
    Stream,
)
from fogline.language.printer import print_query
from fogline.model.sites import insight_log
from fogline.model.streams import INSIGHT, NUMBER
from fogline.plan.analysis.query_file import LoadedQuery
from fogline.plan.operators import Evaluate

_LATENESS = "1 ms"
"""Results come in the order of their windows."""


def group_text(loaded: LoadedQuery, insights: Collection[str], foreign: Mapping[str, str]) -> str:
    """`foreign`: insights that run elsewhere, and the jobs under whose names they are published."""
    needed = reachable_insights(loaded.query, insights, foreign)
    streams = [_results(name, outlet, loaded) for name, outlet in foreign.items()]
    kept: list[Statement] = [
        _redirect_insight(statement, foreign, loaded)
        if isinstance(statement, Insight)
        else statement
        for statement in loaded.query.statements
        if statement.name in needed
    ]
    return print_query(QueryFile((*streams, *kept)))


def reachable_insights(
    query: QueryFile, insights: Collection[str], foreign: Collection[str] = ()
) -> set[str]:
    """The insights, and all that they name but do not read as results."""
    by_name = {statement.name: statement for statement in query.statements}
    found: set[str] = set()
    waiting = list(insights)
    while waiting:
        name = waiting.pop()
        if name in found or name not in by_name or name in foreign:
            continue
        found.add(name)
        waiting += _names(by_name[name])
    # With one stream in the file FROM may be omitted, and so it is named nowhere.
    streams = {stream.name for stream in query.streams}
    return found | (streams if len(streams) == 1 else set())


def _names(node: Any) -> list[str]:
    """Every name that stands in a tree: of fields, streams, insights, functions."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Metric | Reference):
            found.append(item.name)
        if isinstance(item, Metric):
            found += item.streams
        if isinstance(item, Call):
            found.append(item.function)
        if isinstance(item, tuple):
            waiting += item
        elif is_dataclass(item):
            waiting += [getattr(item, f.name) for f in fields(item)]
    return found


def _results(name: str, outlet: str, loaded: LoadedQuery) -> Stream:
    keys = _keys(name, loaded)
    schema = ", ".join([*(f"{key} {kind}" for key, kind in keys), "value double"])
    parameters = {
        "topic": insight_log(outlet, name),
        "format": INSIGHT,
        "schema": schema,
        "lateness": _LATENESS,
    }
    return Stream(name, Provider("mqtt", tuple(Parameter(k, v) for k, v in parameters.items())))


def _keys(name: str, loaded: LoadedQuery) -> list[tuple[str, str]]:
    evaluate = loaded.plan.emit(name).input
    assert isinstance(evaluate, Evaluate)
    number = {True: "double", False: "string"}
    return [(key.name, number[key.expression.type == NUMBER]) for key in evaluate.keys]


def _redirect_insight(insight: Insight, foreign: Mapping[str, str], loaded: LoadedQuery) -> Insight:
    """Where it named an insight that runs elsewhere it reads that one's results; keys that it took
    over from there are written out."""
    if not set(_names(insight)) & set(foreign):
        return insight
    changed: Insight = _replace_foreign(insight, foreign)
    if not changed.keys:
        keys = tuple(Metric(name) for name, _ in _keys(insight.name, loaded))
        changed = replace(changed, keys=keys)
    return changed


def _replace_foreign(node: Any, foreign: Mapping[str, str]) -> Any:
    if isinstance(node, Metric | Reference) and node.name in foreign:
        return Metric("value", (node.name,))
    if isinstance(node, tuple):
        return tuple(_replace_foreign(item, foreign) for item in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes = {f.name: _replace_foreign(getattr(node, f.name), foreign) for f in fields(node)}
    return replace(node, **changes)
