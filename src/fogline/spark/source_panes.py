"""The first stage inside the source: panes without a row per record, where a program allows it.

That is when keys and inputs are plain fields and every condition is one the source can decide. The
rows are those of `first_stage.to_panes`, except that a pane may come in several of them, from
several partitions and batches: the second stage joins them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fogline.plan.expressions import Every, Expr, Field, FromOrigin, Guarded
from fogline.plan.operators import Scan
from fogline.plan.program import Channel
from fogline.spark.layout import Layout
from fogline.spark.pushdown import pushable, split_condition
from fogline.spark.scan import Input, before_end, physical_columns, source_options


class _NeedsSparkError(Exception):
    """Something only Spark's expressions can compute."""


@dataclass(frozen=True)
class _Wanted:
    """What is to be made of the records of all scans."""

    channels: tuple[Channel, ...]
    layout: Layout
    pane_ms: int
    columns: Mapping[Field, str]


def read_panes(
    spark: SparkSession,
    scans: tuple[Scan, ...],
    channels: tuple[Channel, ...],
    layout: Layout,
    pane_ms: int,
    inputs: Mapping[str, Input],
    streaming: bool,
) -> DataFrame | None:
    """The input of the second stage, or None where the records must be seen by Spark."""
    wanted = _Wanted(channels, layout, pane_ms, physical_columns(scans))
    try:
        options = [_options(spark, scan, wanted, inputs, streaming) for scan in scans]
    except _NeedsSparkError:
        return None
    frames = [
        _read(spark, scan, given, streaming) for scan, given in zip(scans, options, strict=True)
    ]
    table = frames[0]
    for other in frames[1:]:
        table = table.unionByName(other)
    return table.where(before_end(F.lit(True)))


def _read(spark: SparkSession, scan: Scan, options: dict[str, str], streaming: bool) -> DataFrame:
    reader: Any = (spark.readStream if streaming else spark.read).format("fogline")
    frame: DataFrame = reader.options(**options).load()
    if streaming:
        return frame.withWatermark("_time", f"{scan.stream.lateness_ms} milliseconds")
    return frame


def _options(
    spark: SparkSession,
    scan: Scan,
    wanted: _Wanted,
    inputs: Mapping[str, Input],
    streaming: bool,
) -> dict[str, str]:
    pushed, rest = split_condition(scan.condition, wanted.columns)
    sketched = any(slot.kind == "hll" for slot in wanted.layout.slots)
    if rest or sketched or scan.sampling or scan.stream.name not in inputs:
        raise _NeedsSparkError
    given = inputs[scan.stream.name]
    options = source_options(spark, scan, given, wanted.columns, pushed, streaming)
    return options | {"panes": json.dumps(_spec(scan, wanted))}


def _spec(scan: Scan, wanted: _Wanted) -> dict[str, Any]:
    channels = [_channel(channel, scan, wanted) for channel in wanted.channels]
    return {
        "paneMs": wanted.pane_ms,
        "channels": [channel for channel in channels if channel is not None],
        "slots": [{"kind": s.kind, "inputs": list(s.inputs)} for s in wanted.layout.slots],
    }


def _channel(channel: Channel, scan: Scan, wanted: _Wanted) -> dict[str, Any] | None:
    """A channel as the source fills it; None where this stream lacks its keys."""
    here = set(scan.columns or ())
    keys = []
    for key in channel.keys:
        if not isinstance(key.expression, Field):
            raise _NeedsSparkError
        if key.expression not in here:
            return None
        keys.append({"name": key.name, "column": wanted.columns[key.expression]})
    places = wanted.layout.places(channel)
    inputs = [_input(places.input_at(i), scan, wanted) for i in range(wanted.layout.inputs)]
    return {"number": channel.number, "keys": keys, "inputs": inputs}


def _input(expr: Expr | None, scan: Scan, wanted: _Wanted) -> dict[str, Any] | None:
    """An input as the source reads it; None when it is never there."""
    terms, value = _taken_apart(expr)
    if value is None:
        return None
    if not isinstance(value, Field) or value not in wanted.columns:
        raise _NeedsSparkError
    elsewhere = any(isinstance(t, FromOrigin) and scan.stream.name not in t.origins for t in terms)
    if elsewhere or value not in (scan.columns or ()):
        return None
    found = {"column": wanted.columns[value]}
    tests = [pushable(t, wanted.columns) for t in terms if not isinstance(t, FromOrigin)]
    if None in tests:
        raise _NeedsSparkError
    return found | ({"when": {"op": "and", "args": tests}} if tests else {})


def _taken_apart(expr: Expr | None) -> tuple[tuple[Expr, ...], Expr | None]:
    """Conditions and value of an input."""
    if not isinstance(expr, Guarded):
        return (), expr
    condition = expr.condition
    return (condition.terms if isinstance(condition, Every) else (condition,)), expr.value
