"""Times in records are those that Spark's own `date_format` writes."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fogline.spark.compile.encode import iso_time

pytestmark = pytest.mark.spark

FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
DAY = 86_400_000
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


def test_as_spark_writes_them(spark: SparkSession) -> None:
    random.seed(5)
    edges = [FIRST, LAST, 0, -1, 1, 951_782_400_000, 951_868_799_999, LAST + 1, LAST + 400 * DAY]
    days = [DAY * n for n in range(-800, 22_000)]
    given = [*edges, *days, *(d - 1 for d in days), *random.choices(range(FIRST, LAST), k=20_000)]
    frame = spark.createDataFrame([(n,) for n in given], "ms bigint")
    expected = F.date_format(F.timestamp_millis("ms"), FORMAT)
    differing = frame.select("ms", iso_time(F.col("ms")).alias("a"), expected.alias("b"))
    assert differing.where(~F.col("a").eqNullSafe(F.col("b"))).collect() == []
    assert frame.count() == len(given)


def test_no_time_is_none(spark: SparkSession) -> None:
    [row] = spark.range(1).select(iso_time(F.lit(None)).alias("t")).collect()
    assert row.t is None
