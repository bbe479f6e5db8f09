"""Results of a batch brought to Python."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fogline.model.results import Result


def collect(frame: DataFrame) -> list[Result]:
    """The results of one batch, ordered by window, insight and key."""
    value = F.coalesce(F.col("text"), F.col("value").cast("string")).alias("shown")
    table: Any = frame.select("insight", "end", "key", value, "record", "fraction").toArrow()
    table = table.sort_by([("end", "ascending"), ("insight", "ascending"), ("key", "ascending")])
    columns = [column.to_pylist() for column in table.columns]
    return [Result(*row) for row in zip(*columns, strict=True)]
