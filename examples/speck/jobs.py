"""The jobs of SpecK's pipeline: readings of roads, cleaned at two sites, filtered at a third and
summed up at a fourth.

Every function gets a streaming DataFrame with the fields of its job's `input`, and `time`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def clean(records: DataFrame) -> DataFrame:
    """Jobs A and B: drops impossible readings."""
    return records.where(F.col("speed").between(0, 250) & F.col("road").isNotNull())


def faster(records: DataFrame, *, least: float = 0.0) -> DataFrame:
    """Job C: keeps speeds of at least `least` km/h."""
    return records.where(F.col("speed") >= least)


def in_metres(records: DataFrame) -> DataFrame:
    """Job C2, which the second listing adds: converts km/h to m/s."""
    return records.withColumn("speed", F.round(F.col("speed") / 3.6, 3))


def total(records: DataFrame) -> DataFrame:
    """Job D: number and mean speed of vehicles, by road and ten seconds."""
    windows = records.groupBy(F.window("time", "10 seconds"), "road")
    sums = windows.agg(F.count("speed").alias("vehicles"), F.avg("speed").alias("speed"))
    return sums.select(F.col("window.end").alias("time"), "road", "vehicles", "speed")
