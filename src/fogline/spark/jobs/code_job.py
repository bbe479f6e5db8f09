"""A job of the user's own PySpark at a site: topics in, their function, a log out.

The function gets a streaming DataFrame. Without `input` its columns are `topic`, `payload` (binary)
and `time` (when the message came); with `input: {format, schema, …}` they are the fields of the
schema and `time`. What it returns is written as it stands if it has a column `payload`, and else as
one JSON object a row. Exactly once: a batch is written to the log with its number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from fogline.common.errors import UsageError
from fogline.model.sites import JobStatus, out_log
from fogline.plan.analysis.catalog import duration_ms
from fogline.spark.jobs.checkpoints import note_logs
from fogline.spark.jobs.site_query import SiteQuery
from fogline.spark.jobs.user_code import UserFunction, call
from fogline.spark.session.site_session import pool_name

_QUERY = "code"
_RAW = [{"name": "_topic", "type": "string"}, {"name": "_payload", "type": "binary"}]
_TYPES = {"number": "double", "bigint": "long", "int": "long", "integer": "long", "text": "string"}
_OPTIONS = {"time": "time", "entity": "entity", "metric": "metricField", "value": "valueField"}
INPUT_KEYS = ("format", "schema", "lateness", "header", *_OPTIONS)


@dataclass(frozen=True)
class CodeSpec:
    """What a job runs and where it works."""

    name: str
    function: Callable[[], UserFunction]
    """Loads the function; called at every start."""
    parameters: Mapping[str, Any]
    input: Mapping[str, str]
    reads: tuple[str, ...]
    """The logs it reads."""
    folder: Path
    life: str
    """The name of its checkpoints."""
    logs: Path
    log_folder: Callable[[str], Path]
    starts: Mapping[str, int] = field(default_factory=dict)
    """Where in a log it begins; elsewhere at the oldest message that is kept."""
    trigger_ms: int = 1000
    max_bytes: int = 64 << 20

    @property
    def rejects(self) -> Path:
        return self.folder / "rejects"


class CodeJob:
    """One Spark query. `keep_running` is called again and again; `stop` ends it."""

    def __init__(self, spark: SparkSession, spec: CodeSpec) -> None:
        self._spark = spark
        self._spec = spec
        self._checkpoint = spec.folder / "checkpoints" / spec.life / _QUERY
        self._query = SiteQuery(_QUERY, self._start, spec.trigger_ms, checkpoint=self._checkpoint)
        self._frame: DataFrame | None = None
        """What it reads, once that is made: every start may use it."""

    def with_parameters(self, parameters: Mapping[str, Any]) -> CodeJob:
        """The same with other parameters, to be run when this one is stopped. What it reads need
        not be made again."""
        made = CodeJob(self._spark, replace(self._spec, parameters=parameters))
        made._frame = self._frame
        return made

    @property
    def name(self) -> str:
        return self._spec.name

    def keep_running(self) -> None:
        self._query.keep_running()

    def status(self) -> JobStatus:
        return JobStatus(self.name, (self._query.status(),))

    def needed_positions(self) -> dict[str, int]:
        positions = self._query.needed_positions() or [None] * len(self._spec.reads)
        pairs = zip(self._spec.reads, positions, strict=False)
        return {log: position or 0 for log, position in pairs}

    def stop(self) -> None:
        self._query.stop()

    def _start(self) -> StreamingQuery:
        spec = self._spec
        function = spec.function()
        if self._frame is None:
            self._frame = self._records()
        records = call(function, self._frame, spec.parameters)
        if not records.isStreaming:
            raise UsageError("the code returned a DataFrame that is not made from its records")
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool_name(1))
        writer = _outgoing(records, spec.name).writeStream.format("fogline-log")
        writer = writer.option("path", str(spec.logs)).outputMode("append")
        folder = self._checkpoint
        note_logs(folder, spec.reads)
        writer = writer.option("checkpointLocation", str(folder))
        writer = writer.trigger(processingTime=f"{spec.trigger_ms} milliseconds")
        query: StreamingQuery = writer.queryName(spec.name).start()
        return query

    def _records(self) -> DataFrame:
        frames = [self._read(log) for log in self._spec.reads]
        frame = frames[0]
        for other in frames[1:]:
            frame = frame.unionByName(other)
        return frame

    def _read(self, log: str) -> DataFrame:
        options = source_options(self._spec.input)
        options |= {
            "path": str(self._spec.log_folder(log)),
            "log": "true",
            "tail": "true",
            "flush": "false",
            "stream": log,
            "start": str(self._spec.starts.get(log, 0)),
            "rejects": str(self._spec.rejects),
            "maxBytesPerTrigger": str(self._spec.max_bytes),
        }
        reader: Any = self._spark.readStream.format("fogline").options(**options)
        frame: DataFrame = reader.load()
        names = {"_time": "time", "_topic": "topic", "_payload": "payload"}
        frame = frame.withColumnsRenamed(names)
        if lateness := self._spec.input.get("lateness"):
            frame = frame.withWatermark("time", f"{_millis(lateness)} milliseconds")
        return frame


def _millis(lateness: str) -> int:
    found = duration_ms(lateness)
    if found is None:
        raise UsageError(f"input: invalid lateness {lateness!r}", 'for example "2 s"')
    return found


def source_options(given: Mapping[str, str]) -> dict[str, str]:
    """The connector's options for a job's `input`; raises UsageError for what it does not know."""
    unknown = [key for key in given if key not in INPUT_KEYS]
    if unknown:
        raise UsageError(f"input: unknown {', '.join(unknown)}", f"known: {', '.join(INPUT_KEYS)}")
    if not given.get("format"):
        return {"format": "raw", "fields": json.dumps(_RAW)}
    options = {"format": given["format"], "fields": json.dumps(schema_fields(given))}
    options |= {option: given[key] for key, option in _OPTIONS.items() if key in given}
    if "header" in given:
        options["header"] = json.dumps([name.strip() for name in given["header"].split(",")])
    return options


def schema_fields(given: Mapping[str, str]) -> list[dict[str, Any]]:
    """The columns of `schema: "speed double, road string"`."""
    if not given.get("schema"):
        raise UsageError("input: a format needs a schema", 'for example schema: "speed double"')
    fields = []
    for part in given["schema"].split(","):
        name, _, kind = part.strip().partition(" ")
        kind = kind.strip().lower() or "string"
        kind = _TYPES.get(kind, kind)
        if not name or kind not in ("double", "long", "string", "boolean"):
            raise UsageError(f"input: {part.strip()!r} in the schema must be a name and a type")
        metric = {"metric": True} if "metric" in given else {}
        fields.append({"name": name, "type": kind} | metric)
    return fields


def _outgoing(records: DataFrame, job: str) -> DataFrame:
    """Rows of (log, topic, payload)."""
    if "payload" in records.columns:
        payload = F.col("payload").cast("binary")
    else:
        payload = F.to_json(F.struct(*[F.col(f"`{name}`") for name in records.columns]))
        payload = payload.cast("binary")
    log = F.lit(out_log(job))
    rows = records.select(log.alias("log"), log.alias("topic"), payload.alias("payload"))
    return rows.where(F.col("payload").isNotNull())
