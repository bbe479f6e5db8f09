"""Scans: a stream of the plan as a DataFrame of the columns somebody asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from fogline.common.errors import PlanError
from fogline.model.streams import NUMBER
from fogline.model.times import iso_micros
from fogline.plan.expressions import FRACTION, HASH, Field
from fogline.plan.lowering.pushdown import split_condition
from fogline.plan.lowering.source_spec import physical_columns, stream_options
from fogline.plan.operators import Scan
from fogline.spark.compile.columns import Functions, Leaves, no_functions, to_column

END_OF_TIME = "9999-12-31 00:00:00"
"""The time of the row that closes all windows at the end of a finite stream."""
_SMALLEST_SPLIT, _LARGEST_SPLIT = 1 << 20, 64 << 20
_TIME = "_time"
_STREAM = "_stream"
_CLOCK = "_clock"
"""Not null in rows that carry a time and nothing else."""
CLOCK = ("clock", "idle", "horizon", "clockStep")
"""The options of a source whose event time also moves without records."""


@dataclass(frozen=True)
class Input:
    """Where the records of a stream are, and how they are to be read."""

    path: Path
    format: str | None = None
    tail: bool = False
    max_bytes: int | None = 2 << 30
    """At most this many bytes a batch, in whole messages."""
    rejects: Path | None = None
    flush: bool = True
    control: str = ""
    """The name under which the live sampling fraction is set; empty: everything is taken."""
    log: bool = False
    """`path` is the folder of a topic's log."""
    since: int | None = None
    """Records before this event time, in microseconds since 1970, are left out."""
    until: int | None = None
    """So are those at this time and after it."""
    sampled: bool = False
    """Records come from the storage fabric, which sent the stream's sample fraction of them
    only."""
    options: Mapping[str, str] = field(default_factory=dict)

    def add_bounds(self, options: Mapping[str, str]) -> dict[str, str]:
        """These options of a source, with its filter made narrower by the times."""
        bounds = ((">=", self.since), ("<", self.until))
        terms: list[dict[str, Any]] = [
            {"op": op, "column": _TIME, "value": iso_micros(time)}
            for op, time in bounds
            if time is not None
        ]
        if not terms:
            return dict(options)
        terms += [json.loads(options["filter"])] if "filter" in options else []
        return {**options, "filter": json.dumps({"op": "and", "args": terms})}


@dataclass(frozen=True)
class Table:
    """Records of all scans as one DataFrame, with the way to read its columns."""

    frame: DataFrame
    leaves: Leaves


def read_scans(
    spark: SparkSession,
    scans: tuple[Scan, ...],
    inputs: Mapping[str, Input],
    streaming: bool,
    functions: Functions = no_functions,
    ordered: bool = True,
) -> Table:
    """The union of all scans; each stream keeps its own watermark.

    With `ordered` off nothing depends on time: there are no windows to close and nothing is late.
    """
    columns = physical_columns(scans)
    frames = [_read(spark, s, columns, inputs, streaming, functions, ordered) for s in scans]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other)
    return Table(frame, _leaves(columns, tuple(s.stream.name for s in scans), functions))


def _read(
    spark: SparkSession,
    scan: Scan,
    columns: Mapping[Field, str],
    inputs: Mapping[str, Input],
    streaming: bool,
    functions: Functions,
    ordered: bool,
) -> DataFrame:
    stream = scan.stream
    if stream.name not in inputs:
        raise PlanError(f"stream {stream.name} has no input")
    pushed, rest = split_condition(scan.condition, columns)
    options = source_options(spark, scan, inputs[stream.name], columns, pushed, streaming)
    if not ordered:
        for name in ("lateness", *CLOCK):
            options.pop(name, None)
    if "clock" in options:
        fields = [*json.loads(options["fields"]), {"name": _CLOCK}]
        options["fields"] = json.dumps(fields)
    reader: Any = (spark.readStream if streaming else spark.read).format("fogline")
    frame: DataFrame = reader.options(**options).load()
    if streaming and ordered:
        frame = frame.withWatermark(_TIME, f"{stream.lateness_ms} milliseconds")
    if "clock" in options:
        frame = frame.where(before_end(F.col(_CLOCK).isNull()))
    own = _leaves(columns, (stream.name,), functions)
    for condition in rest:
        frame = frame.where(before_end(to_column(condition, own)))
    asked = set(scan.columns or ())
    selected = [
        F.col(name) if f in asked else F.lit(None).cast(_spark_type(f)).alias(name)
        for f, name in columns.items()
    ]
    return frame.select(*selected, F.col(_TIME), F.lit(stream.name).alias(_STREAM))


def source_options(
    spark: SparkSession,
    scan: Scan,
    given: Input,
    columns: Mapping[Field, str],
    pushed: dict[str, Any] | None,
    streaming: bool,
) -> dict[str, str]:
    """The options of the connector's source for one scan."""
    options = given.add_bounds(stream_options(scan, columns, pushed, given.format))
    if given.sampled:
        options.pop("sample", None)
    return options | input_options(spark, scan, given, streaming)


def input_options(spark: SparkSession, scan: Scan, given: Input, streaming: bool) -> dict[str, str]:
    """Those that say where the records are and how they are to be taken from there."""
    options = {"path": str(given.path), "splitBytes": str(_split_bytes(spark, given))}
    if streaming and given.control and FRACTION in (scan.columns or ()):
        options["control"] = given.control
        options["controlMode"] = "drop" if scan.sampling and scan.sampling.live else "report"
    if given.log:
        options["log"] = "true"
    if given.rejects:
        options["rejects"] = str(given.rejects)
    if streaming:
        options["lateness"] = str(scan.stream.lateness_ms)
        options["flush"] = str(given.flush).lower()
        options["tail"] = str(given.tail).lower()
        if given.max_bytes:
            options["maxBytesPerTrigger"] = str(given.max_bytes)
    return options | dict(given.options)


def _split_bytes(spark: SparkSession, given: Input) -> int:
    """Large tasks cost less to start; a few for every core keep all of them busy to the end."""
    part_bytes = (given.max_bytes or _LARGEST_SPLIT) // (4 * spark.sparkContext.defaultParallelism)
    return min(max(part_bytes, _SMALLEST_SPLIT), _LARGEST_SPLIT)


def _spark_type(source: Field) -> str:
    if source == HASH:
        return "long"
    return "double" if source.type == NUMBER else "string"


# ── reading columns ──────────────────────────────────────────────────────────────────────────────


def _leaves(columns: Mapping[Field, str], streams: tuple[str, ...], functions: Functions) -> Leaves:
    def column(source: Field) -> Column:
        return F.col(columns[source])

    def origin(origins: tuple[str, ...]) -> Column | None:
        return None if set(origins) >= set(streams) else F.col(_STREAM).isin(list(origins))

    def sampled(fraction: float | None) -> Column:
        limit = F.col("_fraction") if fraction is None else F.lit(fraction)
        unit = F.shiftrightunsigned(F.col("_hash"), 11) * (2.0**-53)
        return unit < limit

    def no_result(leaf: object) -> Column:
        raise PlanError("a record has no results in it")

    return Leaves(column, no_result, no_result, origin, sampled, functions)


def before_end(condition: Column) -> Column:
    """A condition on records, never true for the end row.

    It names the event time, so Spark leaves it above the watermark: the end row must be seen there.
    """
    end = F.lit(END_OF_TIME).cast("timestamp")
    return F.when(F.col(_TIME) < end, condition).otherwise(F.lit(False))


def time_millis() -> Column:
    return F.unix_micros(F.col(_TIME)) / 1000.0
