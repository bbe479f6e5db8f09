"""The four commands in PySpark by hand: `pyspark_command.py WORKLOAD READINGS RESULTS`.

A batch over the file, which is the fastest that Spark itself offers for one: `read.json` of the
fields that are needed, one aggregation for all insights of a window, as many shuffle partitions
as cores, `write.json`. RESULTS is a folder of part files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).parents[1]))

from command_workloads import DUST_LIMIT, Level, filter_step

_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
_FIELDS = "sensor STRING, time BIGINT, temperature DOUBLE"


def main(workload: str, readings: str, results: str) -> None:
    spark = _session()
    _WORKLOADS[workload](spark, readings).write.option("timestampFormat", _TIME).json(results)
    spark.stop()


def _filter(spark: SparkSession, readings: str) -> DataFrame:
    read = spark.read.schema("sensor STRING, time BIGINT, dust DOUBLE").json(readings)
    at = F.timestamp_millis("time")
    return _records(
        read.where(F.col("dust") > DUST_LIMIT), F.lit("dusty"), at, at, F.col("dust"), F.lit(1)
    )


def _tumbling(spark: SparkSession, readings: str) -> DataFrame:
    windows = _windows(spark, readings, "5 seconds", "5 seconds")
    insights = [("mean", F.col("mean")), ("peak", F.col("peak")), ("readings", F.col("count"))]
    rows = F.explode(
        F.array(
            *(
                F.struct(F.lit(name).alias("insight"), value.cast("double").alias("value"))
                for name, value in insights
            )
        )
    )
    found = windows.withColumn("row", rows)
    return _window_records(found, F.col("row.insight"), F.col("row.value"))


def _sliding(spark: SparkSession, readings: str) -> DataFrame:
    windows = _windows(spark, readings, "60 seconds", "1 second")
    return _window_records(windows, F.lit("mean"), F.col("mean"))


def _windows(spark: SparkSession, readings: str, length: str, every: str) -> DataFrame:
    timed = _read(spark, readings).withColumn("time", F.timestamp_millis("time"))
    return timed.groupBy(F.window("time", length, every), "sensor").agg(
        F.avg("temperature").alias("mean"),
        F.max("temperature").alias("peak"),
        F.count("temperature").alias("count"),
    )


def _kalman(spark: SparkSession, readings: str) -> DataFrame:
    """One group holds all readings of a sensor, so no state is kept between calls."""
    levels = (
        _read(spark, readings)
        .groupBy("sensor")
        .applyInPandas(_levels, "sensor STRING, time BIGINT, value DOUBLE, count BIGINT")
    )
    at = F.timestamp_millis("time")
    return _records(levels, F.lit("level"), at, at, F.col("value"), F.col("count"))


def _levels(readings: pd.DataFrame) -> pd.DataFrame:
    ordered = readings.sort_values("time", kind="stable")
    levels: list[float] = []
    state: Level | None = None
    for value in ordered["temperature"].tolist():
        state = filter_step(state, value)
        levels.append(state[0])
    return ordered[["sensor", "time"]].assign(value=levels, count=range(1, len(levels) + 1))


def _read(spark: SparkSession, readings: str) -> DataFrame:
    return spark.read.schema(_FIELDS).json(readings)


def _window_records(frame: DataFrame, insight: F.Column, value: F.Column) -> DataFrame:
    start, end = F.col("window.start"), F.col("window.end")
    return _records(frame, insight, start, end, value, F.col("count"))


def _records(
    frame: DataFrame,
    insight: F.Column,
    start: F.Column,
    end: F.Column,
    value: F.Column,
    count: F.Column,
) -> DataFrame:
    return frame.select(
        insight.alias("insight"),
        F.struct(start.alias("start"), end.alias("end")).alias("window"),
        F.struct("sensor").alias("keys"),
        value.alias("value"),
        count.alias("count"),
    )


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])  # Python workers import from there
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.defaultJavaOptions": "-XX:+UseParallelGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.sql.files.maxPartitionBytes": str(32 << 20),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    }
    builder = SparkSession.builder.master("local[*]").appName("pyspark-command")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


_WORKLOADS = {"filter": _filter, "kalman": _kalman, "tumbling": _tumbling, "sliding": _sliding}

if __name__ == "__main__":
    main(*sys.argv[1:4])
