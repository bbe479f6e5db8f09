"""Short ways to read with the connector."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Rows = list[dict[str, Any]]


def columns(spec: str) -> str:
    """`"a double, b string<nested.b"` as the JSON of option `fields`; `!` marks a metric."""
    fields = []
    for item in filter(None, (part.strip() for part in spec.split(","))):
        name, _, kind = item.partition(" ")
        kind, _, source = kind.partition("<")
        field: dict[str, Any] = {"name": name, "type": kind.rstrip("!") or "string"}
        if source:
            field["from"] = source
        if kind.endswith("!"):
            field["metric"] = True
        fields.append(field)
    return json.dumps(fields)


def configured(
    reader: Any, path: Path, kind: str, fields: str, options: dict[str, Any]
) -> DataFrame:
    reader = reader.format("fogline").option("format", kind).option("fields", columns(fields))
    for name, value in options.items():
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, (dict, list)):
            value = json.dumps(value)
        reader = reader.option(name, str(value))
    return reader.load(str(path))


def as_dicts(frame: DataFrame) -> Rows:
    """Rows as dictionaries; the time in microseconds since the epoch."""
    micros = frame.selectExpr("* except (_time)", "unix_micros(_time) as _time")
    return [row.asDict() for row in micros.collect()]


@pytest.fixture
def batch(spark: SparkSession) -> Callable[..., Rows]:
    def read(path: Path, kind: str, fields: str, **options: Any) -> Rows:
        return as_dicts(configured(spark.read, path, kind, fields, options))

    return read


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., StreamingQuery]]:
    """Starts a stream that appends its rows to a list, with the number of their batch."""
    started: list[StreamingQuery] = []

    def run(
        into: Rows, path: Path, kind: str, fields: str, now: bool = True, **options: Any
    ) -> StreamingQuery:
        def keep(frame: DataFrame, number: int) -> None:
            into.extend({**row, "_batch": number} for row in as_dicts(frame))

        checkpoint = options.pop("checkpoint", tmp_path / f"checkpoint-{len(started)}")
        writer = configured(spark.readStream, path, kind, fields, options).writeStream.foreachBatch(
            keep
        )
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer = (
            writer.trigger(availableNow=True)
            if now
            else writer.trigger(processingTime="50 milliseconds")
        )
        query = writer.start()
        started.append(query)
        return query

    yield run
    for query in started:
        query.stop()


@pytest.fixture
def stream(start: Callable[..., StreamingQuery]) -> Callable[..., Rows]:
    """Reads everything there is as a stream, to its end."""

    def read(path: Path, kind: str, fields: str, **options: Any) -> Rows:
        rows: Rows = []
        start(rows, path, kind, fields, **options).awaitTermination(120)
        return rows

    return read
