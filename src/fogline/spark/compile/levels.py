"""Insights over insights: results of lower levels become records of the next.

Results that somebody reads, or that a later level reads, are handed through the stateful
step untouched, so one query gives them all.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fogline.common.errors import PlanError
from fogline.model.streams import NUMBER
from fogline.plan.expressions import Field, KeyValue
from fogline.plan.lowering.layout import Layout
from fogline.plan.lowering.program import Channel, Level
from fogline.spark.compile.columns import Functions, Leaves, no_functions, to_column
from fogline.spark.compile.first_stage import pack_columns, single_record
from fogline.spark.compile.keys import key_object, key_value
from fogline.spark.compile.results import HANDED_THROUGH

_PLAIN = ["output", "key", "start", "end", "value", "text", "count", "error", "fraction", "t"]


def to_next_level(
    results: DataFrame,
    level: Level,
    layout: Layout,
    numbers: dict[str, int],
    pane_ms: int,
    functions: Functions = no_functions,
) -> DataFrame:
    """Rows of (channel, key, pane, nums, lists, blobs, pass, _time) for the second stage."""
    through = _row(
        F.lit(HANDED_THROUGH),
        F.col("key"),
        [
            F.array().cast(kind).alias(name)
            for name, kind in (
                ("nums", "array<double>"),
                ("lists", "array<array<double>>"),
                ("blobs", "array<binary>"),
            )
        ],
        F.to_json(F.struct(*_PLAIN)),
        pane_ms,
    )
    copies = [_copy(c, layout, numbers, pane_ms, functions) for c in level.channels]
    rows = results.select("_time", F.explode(F.array(through, *copies)).alias("row"))
    return rows.where(F.col("row").isNotNull()).select("row.*", "_time")


def _row(
    channel: Column, key: Column, arrays: list[Column], passed: Column, pane_ms: int
) -> Column:
    pane = F.floor(F.col("t") / pane_ms).cast("bigint") * pane_ms
    return F.struct(
        channel.alias("channel"),
        key.alias("key"),
        pane.alias("pane"),
        *arrays,
        passed.alias("pass"),
    )


def _copy(
    channel: Channel,
    layout: Layout,
    numbers: dict[str, int],
    pane_ms: int,
    functions: Functions,
) -> Column:
    leaves = _result_leaves(numbers, functions)
    places = layout.places(channel)
    cells: dict[str, Column] = {"t": F.col("t")}
    for index in range(layout.inputs):
        expr = places.input_at(index)
        none = F.lit(None).cast("double")
        cells[f"v{index}"] = none if expr is None else to_column(expr, leaves).cast("double")
    singles = [single_record(slot, cells) for slot in layout.slots]
    column: Callable[[int, int], Column] = lambda i, j: singles[i][j]  # noqa: E731
    keys = [to_column(key.expression, leaves) for key in channel.keys]
    row = _row(
        F.lit(channel.number),
        key_object(channel.keys, keys),
        pack_columns(layout, column),
        F.col("key"),
        pane_ms,
    )
    sources = [numbers[name] for name in channel.feeds]
    present = [cells[f"v{i}"] for i in range(len(places.inputs))]
    return F.when(F.col("output").isin(sources) & F.coalesce(*present).isNotNull(), row)


def _result_leaves(numbers: dict[str, int], functions: Functions) -> Leaves:
    def field(source: Field) -> Column:
        if source.name == "value" and source.type == NUMBER:
            return F.col("value")
        return key_value(KeyValue(source.name, source.type), F.col("key"))

    def origin(origins: tuple[str, ...]) -> Column:
        return F.col("output").isin([numbers[name] for name in origins])

    def unreadable(leaf: object) -> Column:
        raise PlanError("insights over insights cannot be sampled")

    return Leaves(field, unreadable, unreadable, origin, unreadable, functions)
