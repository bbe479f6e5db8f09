"""Panes as records between nodes: the first stage writes them, the second reads them.

A record is `{"channel", "key", "pane", "nums", "lists", "t"}`, `t` being the newest event time
in it in microseconds; a missing number is null. Gateways write the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

_NAN = float("nan")
_FIELDS = (
    "channel int, key string, pane bigint, nums array<double>, lists array<array<double>>, t bigint"
)


def pane_payloads(panes: DataFrame) -> DataFrame:
    """Rows of (t, payload) from the rows of the first stage."""
    t = F.unix_micros("_time").alias("t")
    lists = F.transform("lists", lambda values: F.transform(values, _without_nan))
    nums = F.transform("nums", _without_nan)
    record = F.struct("channel", "key", "pane", nums.alias("nums"), lists.alias("lists"), t)
    return panes.select(t, F.to_json(record).cast("binary").alias("payload"))


def read_pane_logs(
    spark: SparkSession, folders: Mapping[Path, int], lateness_ms: int, options: dict[str, str]
) -> DataFrame:
    """The input of the second stage from logs of such records, each with its own watermark: what
    one origin has not sent yet is waited for. `folders`: the logs and where to begin in them."""
    frames = [
        _read(spark, folder, lateness_ms, options | {"start": str(start)})
        for folder, start in folders.items()
    ]
    table = frames[0]
    for other in frames[1:]:
        table = table.unionByName(other)
    return table


def _read(
    spark: SparkSession, folder: Path, lateness_ms: int, options: dict[str, str]
) -> DataFrame:
    own = {"path": str(folder), "log": "true", "format": "raw", "tail": "true", "flush": "false"}
    fields = '[{"name": "_payload", "type": "binary"}]'
    reader: Any = spark.readStream.format("fogline").options(**own, fields=fields, **options)
    raw: DataFrame = reader.load()
    record = F.from_json(F.col("_payload").cast("string"), _FIELDS)
    rows = raw.select(record.alias("r")).select("r.*").where(F.col("t").isNotNull())
    lists = F.transform("lists", lambda values: F.transform(values, _with_nan))
    table = rows.select(
        "channel",
        "key",
        "pane",
        F.transform("nums", _with_nan).alias("nums"),
        F.coalesce(lists, F.array().cast("array<array<double>>")).alias("lists"),
        F.array().cast("array<binary>").alias("blobs"),
        F.lit(None).cast("string").alias("pass"),
        F.timestamp_micros("t").alias("_time"),
    )
    return table.withWatermark("_time", f"{lateness_ms} milliseconds")


def _without_nan(value: Column) -> Column:
    return F.when(~F.isnan(value), value)


def _with_nan(value: Column) -> Column:
    return F.coalesce(value, F.lit(_NAN))
