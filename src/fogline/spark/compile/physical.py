"""Spark's own words for a query."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def physical_plan(frame: DataFrame) -> str:
    """The physical plan as Spark formats it, with nothing executed."""
    execution: Any = frame._jdf.queryExecution()
    return str(execution.executedPlan().toString()).rstrip()
