"""Results: windows into values, conditions and output records, all native.

A result row is (output, key, start, end, value, text, count, error, fraction, t, _time): `t` is the
time at which the result is a record for other insights, `_time` carries the watermark.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fogline.common.errors import PlanError
from fogline.language.ast import TimeWindow
from fogline.model.streams import STRING
from fogline.plan.expressions import LIST, Aggregate, Running
from fogline.plan.lowering.program import Level, Output, Program
from fogline.spark.compile.columns import Functions, Leaves, no_functions, to_column
from fogline.spark.compile.encode import iso_time, quote_json
from fogline.spark.compile.keys import key_object, key_value
from fogline.spark.compile.scan import Table, before_end, time_millis

COLUMNS = (
    "output int, key string, start bigint, `end` bigint, value double, text string, "
    "count bigint, error double, fraction double, t double"
)
"""The columns of a result that travel through further levels, as a schema."""

_HAIR_MS = 0.001
"""A result on the time grid belongs to the interval it closes: it stands a hair before its end."""


HANDED_THROUGH = -1
"""The node (and channel) of results that pass through a stateful step untouched."""


def evaluate_windows(
    windows: DataFrame,
    level: Level,
    numbers: dict[str, int],
    functions: Functions = no_functions,
    above: bool = False,
) -> DataFrame:
    """Result rows of a level's own insights and, `above` others, those handed through from below.

    Both leave the stateful step in one frame and are distinguished by expressions, not by two
    branches: a second branch would run the stateful step twice.
    """
    through = F.col("node") == HANDED_THROUGH
    once = F.array(F.lit(0).cast("bigint"))
    exploded = windows.select(
        "node", "key", "starts", "counts", "values", "texts", "pass", "_time",
        F.posexplode(F.when(through, once).otherwise(F.col("ends")) if above else "ends")
        .alias("pos", "end"),
    )  # fmt: skip
    by_node = [
        (node.number, [_result(o, node.aggregates, numbers[o.name], functions)
                       for o in level.outputs if o.node == node.number])
        for node in level.nodes
    ]  # fmt: skip
    if above:
        by_node.append((HANDED_THROUGH, [F.from_json("pass", COLUMNS)]))
    rows = exploded.select("_time", _results_of(by_node).alias("result"))
    return rows.where(F.col("result").isNotNull()).select("result.*", "_time")


def _results_of(by_node: list[tuple[int, list[Column]]]) -> Column:
    """The results of a row: one struct where every node has one insight, else several rows."""
    single = all(len(results) == 1 for _, results in by_node)
    forms = [(number, r[0] if single else F.array(*r)) for number, r in by_node]
    if len(forms) == 1:
        chosen = forms[0][1]
    else:
        number, form = forms[0]
        chosen = F.when(F.col("node") == number, form)
        for number, form in forms[1:]:
            chosen = chosen.when(F.col("node") == number, form)
    return chosen if single else F.explode(chosen)


def _result(
    output: Output, aggregates: tuple[Aggregate, ...], number: int, functions: Functions
) -> Column:
    width = len(aggregates)

    def cell(column: str, aggregate: Aggregate) -> Column:
        index = F.col("pos") * width + aggregates.index(aggregate)
        return F.get(F.col(column), index)

    def aggregate_value(aggregate: Aggregate) -> Column:
        if aggregate.type == LIST:
            return cell("texts", aggregate)
        value = cell("values", aggregate)
        return F.when(~F.isnan(value), value)

    leaves = Leaves(
        field=_unreadable,
        key=lambda key: key_value(key, F.col("key")),
        aggregate=aggregate_value,
        origin=lambda _: None,
        sampled=_unreadable,
        functions=functions,
    )
    value = to_column(output.value, leaves)
    counts = [cell("counts", a) for a in output.own]
    deciding = [cell("counts", a) for a in output.deciding]
    keep = F.greatest(*deciding, F.lit(0)) > 0
    if output.condition is not None:
        keep = keep & to_column(output.condition, leaves)
    is_list = output.value.type == LIST
    keep = keep & (has_text(value) if is_list else is_finite(value))
    extras = dict(output.extras)

    def extra(name: str) -> Column:
        found = extras.get(name)
        none = F.lit(None).cast("double")
        return none if found is None else to_column(found, leaves)

    row = F.struct(
        F.lit(number).alias("output"),
        F.col("key"),
        _start(output).alias("start"),
        F.col("end"),
        (F.lit(None).cast("double") if is_list else value.cast("double")).alias("value"),
        (value if is_list else F.lit(None)).cast("string").alias("text"),
        F.greatest(*counts, F.lit(0)).cast("bigint").alias("count"),
        extra("error").alias("error"),
        extra("fraction").alias("fraction"),
        _record_time(output).alias("t"),
    )
    return F.when(keep, row)


def _start(output: Output) -> Column:
    """On the time grid the start follows from the insight's own windows."""
    if not isinstance(output.trigger, TimeWindow):
        return F.get(F.col("starts"), F.col("pos"))
    reach = [
        a.window.millis + a.offset_ms if isinstance(a.window, TimeWindow) else None
        for a in output.own
    ]
    known = [r for r in reach if r is not None]
    if not all(isinstance(a.window, Running | TimeWindow) for a in output.own):
        return F.get(F.col("starts"), F.col("pos"))
    if any(isinstance(a.window, Running) for a in output.own):
        known.append(output.trigger.millis)
    return F.col("end") - max(known)


def _record_time(output: Output) -> Column:
    end = F.col("end").cast("double")
    return end if output.trigger is None else end - _HAIR_MS


def is_finite(value: Column) -> Column:
    return value.isNotNull() & ~F.isnan(value) & (F.abs(value) != float("inf"))


def has_text(value: Column) -> Column:
    return value.isNotNull() & (value != "") & (value != "[]")


def _unreadable(leaf: object) -> Column:
    raise PlanError("a result cannot read records")


def evaluate_records(
    table: Table, outputs: tuple[Output, ...], numbers: dict[str, int]
) -> DataFrame:
    """Result rows of insights that look at one record at a time."""
    found = [_record_result(table, output, numbers[output.name]) for output in outputs]
    if len(found) == 1:
        keep, columns = found[0]
        return table.frame.where(keep).select(*columns, "_time")
    structs = F.array(*[F.when(keep, F.struct(*columns)) for keep, columns in found])
    picked = table.frame.select("_time", F.explode(structs).alias("result"))
    return picked.where(F.col("result").isNotNull()).select("result.*", "_time")


def _record_result(table: Table, output: Output, number: int) -> tuple[Column, list[Column]]:
    """Whether there is a result, and its columns."""
    value = to_column(output.value, table.leaves)
    textual = output.value.type == STRING
    keep = value.isNotNull() if textual else is_finite(value)
    if output.condition is not None:
        keep = keep & to_column(output.condition, table.leaves)
    origin = table.leaves.origin(output.origins)
    keep = before_end(keep if origin is None else keep & origin)
    millis = F.unix_millis("_time")
    keys = [to_column(key.expression, table.leaves) for key in output.keys]
    none = F.lit(None).cast("double")
    return keep, [
        F.lit(number).alias("output"),
        key_object(output.keys, keys).alias("key"),
        millis.alias("start"),
        millis.alias("end"),
        (none if textual else value.cast("double")).alias("value"),
        (quote_json(value) if textual else F.lit(None).cast("string")).alias("text"),
        F.lit(1).cast("bigint").alias("count"),
        none.alias("error"),
        none.alias("fraction"),
        time_millis().alias("t"),
    ]


# ── output records ───────────────────────────────────────────────────────────────────────────────


_BODY = """concat(
    '"},"keys":', key,
    ',"value":', coalesce(text, cast(value AS string)),
    ',"count":', cast(count AS string),
    if(fraction IS NULL, '', ',"sampled":true'),
    if(error IS NULL, '', concat(',"error":', cast(error AS string))))"""
"""Between window and tail of a record: the same for all, so Spark reads it as one text."""


def output_records(results: DataFrame, program: Program, numbers: dict[str, int]) -> DataFrame:
    """Adds `insight` and `record`, the JSON object a person sees, and drops hidden results."""
    shown = {numbers[o.name]: o for o in program.outputs if not o.hidden}
    named = results.where(F.col("output").isin(list(shown)))

    def by_output(text: Callable[[Output], str]) -> Column:
        texts = {number: text(output) for number, output in shown.items()}
        if len(set(texts.values())) == 1:
            return F.lit(next(iter(texts.values())))
        return F.create_map(*[F.lit(i) for pair in texts.items() for i in pair])[F.col("output")]

    record = F.concat(
        by_output(_head), F.lit('"window":{"start":"'), iso_time(F.col("start")),
        F.lit('","end":"'), iso_time(F.col("end")), F.expr(_BODY), by_output(_tail),
    )  # fmt: skip
    name = by_output(lambda output: output.name)
    return named.select(name.alias("insight"), "*", record.alias("record"))


def _head(output: Output) -> str:
    return f'{{"insight":{json.dumps(output.name)},'


def _tail(output: Output) -> str:
    """What is the same in every record of an insight: the sample, the confidence."""
    sampling = output.sampling
    if sampling is None:
        return "}"
    if sampling.fraction is not None:
        return f',"sampled":{sampling.fraction!r}}}'
    return f',"confidence":{sampling.confidence!r}}}'
