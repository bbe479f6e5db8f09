"""What queries in real time have found while their batch runs: Spark tells only at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession


def live_counts(spark: SparkSession, sources: Sequence[tuple[str, bool]]) -> dict[str, int]:
    """Fields of a query's status, over all of its streams; none where tasks run elsewhere.

    `sources` are names, and whether what is found under them counts: the latency always does."""
    jvm: Any = spark.sparkContext._jvm
    told = [(jvm.io.fogline.source.LiveCounts.read(name), counts) for name, counts in sources]
    found = [([int(number) for number in text.split()], counts) for text, counts in told if text]
    if not any(records or bad for (records, bad, *_), _ in found):
        return {}
    counted = [numbers for numbers, counts in found if counts]
    return {
        "records": sum(records for records, *_ in counted),
        "bad": sum(bad for _, bad, *_ in counted),
        "bytes": sum(size for _, _, size, _ in counted),
        "latency_ms": max(latency for (*_, latency), _ in found),
    }
