"""From analysed insights to the plan as the query says it, before any rule has run.

Every aggregate stands over its own filter, sample and scan, and an insight that reads another
computes it anew. The rules make one efficient plan of it; the meaning is already all here.
"""

from __future__ import annotations

from fogline.language.ast import QueryFile
from fogline.language.parser import parse
from fogline.model.streams import STRING, StreamSource
from fogline.plan.analysis.analyse import DEFAULT_RETENTION_MS, analyse, refuse_functions
from fogline.plan.analysis.analysed import Analysed
from fogline.plan.analysis.catalog import Catalog, FunctionLoader
from fogline.plan.expressions import (
    Aggregate,
    Compare,
    Constant,
    Every,
    Expr,
    Field,
    Sampled,
    StartsWith,
    conjoin,
    conjuncts,
)
from fogline.plan.operators import (
    Emit,
    Evaluate,
    Filter,
    Operator,
    Plan,
    Requery,
    Sample,
    Sampling,
    Scan,
    Window,
)
from fogline.plan.rules.push_samples import with_sample_fractions


def plan_text(text: str, loader: FunctionLoader = refuse_functions) -> Plan:
    """Parses, checks and plans a query text; raises QueryError with everything wrong in it."""
    return plan_query(parse(text), text, loader)


def plan_query(
    query: QueryFile,
    text: str = "",
    loader: FunctionLoader = refuse_functions,
    retention_ms: int = DEFAULT_RETENTION_MS,
) -> Plan:
    catalog, insights = analyse(query, text, loader, retention_ms)
    emits: dict[str, Emit] = {}
    for insight in insights:
        emits[insight.name] = _emit(insight, catalog, emits)
    return with_sample_fractions(Plan(tuple(emits.values())))


def _emit(insight: Analysed, catalog: Catalog, done: dict[str, Emit]) -> Emit:
    if insight.per_record:
        inputs = _inputs(insight.origins, insight.condition, insight.sampling, catalog, done)
    else:
        inputs = tuple(_window(a, insight, catalog, done) for a in insight.all_aggregates)
    evaluate = Evaluate(
        inputs,
        insight.keys,
        insight.value,
        insight.condition,
        insight.trigger,
        insight.per_record,
        insight.extras,
    )
    return Emit(
        insight.name, evaluate, insight.options, insight.sampling, insight.to, insight.hidden
    )


def _window(
    aggregate: Aggregate, insight: Analysed, catalog: Catalog, done: dict[str, Emit]
) -> Window:
    inputs = _inputs(aggregate.origins, aggregate.condition, insight.sampling, catalog, done)
    return Window(inputs, aggregate, insight.keys, insight.trigger)


def _inputs(
    origins: tuple[str, ...],
    condition: Expr | None,
    sampling: Sampling | None,
    catalog: Catalog,
    done: dict[str, Emit],
) -> tuple[Operator, ...]:
    terms = conjuncts(condition) if condition else ()
    plain = [t for t in terms if not isinstance(t, Sampled)]
    inputs: list[Operator] = []
    for origin in origins:
        if origin not in catalog.streams:
            inputs.append(Requery(origin, done[origin].input))
            continue
        stream = catalog.streams[origin]
        step: Operator = Scan(stream, condition=declared_condition(stream))
        if plain:
            step = Filter(step, plain[0] if len(plain) == 1 else Every(tuple(plain)))
        if sampling and len(plain) < len(terms):
            step = Sample(step, sampling)
        inputs.append(step)
    return tuple(inputs)


def declared_condition(stream: StreamSource) -> Expr | None:
    """What the stream's declaration asks of every record (`metricID="cpu_%"`)."""
    condition: Expr | None = None
    for name, value in stream.conditions:
        field = Field(name, STRING)
        term: Expr = (
            StartsWith(field, value[:-1])
            if value.endswith("%")
            else Compare("==", field, Constant(value))
        )
        condition = conjoin(condition, term)
    return condition
