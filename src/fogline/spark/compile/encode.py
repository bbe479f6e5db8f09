"""Columns made by the connector's own functions, where Spark's cost more than they need to."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql.classic.column import Column as JavaColumn
from pyspark.sql.utils import get_active_spark_context


def quote_json(text: Column) -> Column:
    """A text as a JSON string, as `to_json` writes it; a missing one is null."""
    return _call("JsonQuote", text.cast("string"))


def iso_time(millis: Column) -> Column:
    """Milliseconds since 1970 as 2026-11-17T14:26:00.250Z."""
    return _call("IsoTime", millis.cast("bigint"))


def _call(name: str, column: Any) -> Column:
    jvm: Any = get_active_spark_context()._jvm
    return JavaColumn(getattr(jvm.io.fogline.encode, name).column(column._jc))
