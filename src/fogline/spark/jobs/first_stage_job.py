"""The first stage of a query as a job of its own: messages in, pane records out.

Within a batch panes are written in the order of their time, so whoever reads them sees nothing
later than the streams' lateness allows. Exactly once: a batch is appended with its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from fogline.common.errors import PlanError
from fogline.model.sites import JobStatus, out_log, stream_log
from fogline.plan.lowering.layout import Layout
from fogline.plan.lowering.program import lower
from fogline.spark.compile.pane_records import pane_payloads
from fogline.spark.compile.source_panes import read_panes
from fogline.spark.jobs.checkpoints import note_logs
from fogline.spark.jobs.log_append import writer_of
from fogline.spark.jobs.site_job import JobSpec, stream_input
from fogline.spark.jobs.site_query import SiteQuery

_QUERY = "panes"


class FirstStageJob:
    """One Spark query over the streams that are here."""

    def __init__(self, spark: SparkSession, spec: JobSpec) -> None:
        self._spark = spark
        self._spec = spec
        self._program = lower(spec.plan)
        here = [s for s in self._program.scans if stream_log(s.stream) in spec.reads]
        self._scans = tuple(here or self._program.scans)
        self._query = SiteQuery(_QUERY, self._start, spec.trigger_ms, checkpoint=self._checkpoint)

    def keep_running(self) -> None:
        self._query.keep_running()

    def status(self) -> JobStatus:
        return JobStatus(self._spec.name, (self._query.status(),))

    def needed_positions(self) -> dict[str, int]:
        logs = [stream_log(scan.stream) for scan in self._scans]
        positions = self._query.needed_positions() or [None] * len(logs)
        return {log: position or 0 for log, position in zip(logs, positions, strict=False)}

    def with_parameters(self, parameters: Mapping[str, Any]) -> None:
        """A query has none: it is made anew."""

    def stop(self) -> None:
        self._query.stop()

    def _start(self) -> StreamingQuery:
        first = self._program.levels[0]
        inputs = {s.stream.name: stream_input(self._spec, s.stream) for s in self._scans}
        panes = read_panes(
            self._spark,
            self._scans,
            first.channels,
            Layout(first.channels),
            self._program.pane_ms,
            inputs,
            streaming=True,
            all_scans=self._program.scans,
        )
        if panes is None:
            raise PlanError("this query has no first stage of its own")
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._spec.pool)
        writer = pane_payloads(panes).writeStream.foreachBatch(self._writer())
        note_logs(self._checkpoint, [stream_log(scan.stream) for scan in self._scans])
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        writer = writer.trigger(processingTime=f"{self._spec.trigger_ms} milliseconds")
        query: StreamingQuery = writer.queryName(f"{self._spec.name}/{_QUERY}").start()
        return query

    @property
    def _checkpoint(self) -> Path:
        return self._spec.checkpoints / _QUERY

    def _writer(self) -> Callable[[DataFrame, int], None]:
        log, append = out_log(self._spec.name), self._spec.append

        def write(batch: DataFrame, epoch: int) -> None:
            rows = batch.orderBy("t").collect()
            records = [(log, bytes(row["payload"])) for row in rows]
            append(log, writer_of(self._checkpoint), epoch, records)

        return write
