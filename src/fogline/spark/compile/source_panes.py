"""The first stage inside the source: panes without a row per record, where a program allows it.

The rows are those of `first_stage.to_panes`, except that a pane may come in several of them, from
several partitions and batches: the second stage joins them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fogline.plan.lowering.layout import Layout
from fogline.plan.lowering.pane_spec import pane_options
from fogline.plan.lowering.program import Channel
from fogline.plan.operators import Scan
from fogline.spark.compile.scan import Input, before_end, input_options


def read_panes(
    spark: SparkSession,
    scans: tuple[Scan, ...],
    channels: tuple[Channel, ...],
    layout: Layout,
    pane_ms: int,
    inputs: Mapping[str, Input],
    streaming: bool,
    all_scans: tuple[Scan, ...] = (),
) -> DataFrame | None:
    """The input of the second stage, or None where the records must be seen by Spark.

    `all_scans` are those of the whole program where `scans` are only some of them.
    """
    frames = []
    for scan in scans:
        given = inputs.get(scan.stream.name)
        if given is None:
            return None
        options = pane_options(scan, all_scans or scans, channels, layout, pane_ms, given.format)
        if options is None:
            return None
        options = given.add_bounds(options) | input_options(spark, scan, given, streaming)
        frames.append(_read(spark, scan, options, streaming))
    table = frames[0]
    for other in frames[1:]:
        table = table.unionByName(other)
    return table.where(before_end(F.col("channel").isNotNull()))


def _read(spark: SparkSession, scan: Scan, options: dict[str, str], streaming: bool) -> DataFrame:
    reader: Any = (spark.readStream if streaming else spark.read).format("fogline")
    frame: DataFrame = reader.options(**options).load()
    if streaming:
        return frame.withWatermark("_time", f"{scan.stream.lateness_ms} milliseconds")
    return frame
