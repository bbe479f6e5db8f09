"""What queries in real time have found while their batch runs: Spark tells only at its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession


def live_counts(spark: SparkSession, names: Iterable[str]) -> dict[str, int]:
    """Fields of a query's status, over all of its streams; none where tasks run elsewhere."""
    jvm: Any = spark.sparkContext._jvm
    told = [jvm.io.fogline.source.LiveCounts.read(name) for name in names]
    found = [[int(number) for number in text.split()] for text in told if text]
    if not any(records or bad for records, bad, *_ in found):
        return {}
    records, bad, size, latency = zip(*found, strict=True)
    return {
        "records": sum(records),
        "bad": sum(bad),
        "bytes": sum(size),
        "latency_ms": max(latency),
    }
