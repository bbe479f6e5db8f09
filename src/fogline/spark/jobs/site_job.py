"""A job at a site: a query file over the site's logs, its results into the site's logs.

Insights with `EVERY` run in micro-batches, exactly once; insights without it in real time, at least
once, the last value counting. Each query has its checkpoint below the job's folder, under the
fingerprint of what it computes: a changed query file begins anew, an unchanged one goes on.

Several queries of a job may read one stream. The first of them counts its records, and keeps those
that are bad or late; the others do neither.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from fogline.common.errors import UsageError
from fogline.model.sites import JobStatus, stream_log
from fogline.model.streams import StreamSource
from fogline.plan.lowering.look_back import open_ms
from fogline.plan.lowering.program import Program, lower
from fogline.plan.lowering.split import split_live
from fogline.plan.operators import Plan
from fogline.spark.compile.columns import Functions, no_functions
from fogline.spark.compile.live import compile_live
from fogline.spark.compile.pane_records import read_pane_logs
from fogline.spark.compile.program import Compiled, compile_program
from fogline.spark.compile.scan import Input
from fogline.spark.jobs.adaptive_sink import AdaptiveSink
from fogline.spark.jobs.checkpoints import note_logs
from fogline.spark.jobs.log_append import Append
from fogline.spark.jobs.outbound import outbound
from fogline.spark.jobs.site_query import SiteQuery
from fogline.spark.session.site_session import pool_name

LogFolder = Callable[[str], Path]
"""Where the log of a topic is."""


@dataclass(frozen=True)
class JobSpec:
    """What a job computes and where it works. `plan` is optimised."""

    name: str
    plan: Plan
    life: str
    """The name of its checkpoints."""
    folder: Path
    logs: Path
    log_folder: LogFolder
    append: Append
    functions: Functions = no_functions
    trigger_ms: int = 1000
    live_ms: int = 300_000
    """A batch in real time, as long as Spark's own default: between two of them results wait."""
    first_live_ms: int = 1000
    """The first batch in real time. The next ones are longer and longer, until `live_ms`."""
    max_bytes: int = 64 << 20
    reads: tuple[str, ...] = ()
    """Of a stage: the logs it reads."""
    starts: Mapping[str, int] = field(default_factory=dict)
    """Where in a log it begins; elsewhere at the oldest message that is kept."""
    second: bool = False
    """It reads the panes of first stages, not messages."""
    outlet: str = ""
    """The job under whose name its results are published, where that is another one."""
    muted: Path | None = None
    """A file with the names of logs, one a line, that nothing is written to; it may change."""

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints" / self.life

    @property
    def rejects(self) -> Path:
        return self.folder / "rejects"

    @property
    def pool(self) -> str:
        """The scheduling pool of its queries: the highest SALIENCE of its insights."""
        return pool_name(self.salience)

    @property
    def salience(self) -> int:
        return max((e.options.salience or 1 for e in self.plan.emits), default=1)


class SiteJob:
    """The queries of one job. `keep_running` is called again and again; `stop` ends them."""

    def __init__(self, spark: SparkSession, spec: JobSpec) -> None:
        self._spark = spark
        self._spec = spec
        live, steady = split_live(spec.plan)
        self._live = lower(live)
        self._steady = lower(steady)
        names = [n for n in ("windows", "records", "live", "live-records") if self._has(n)]
        self._counted = counted_once({name: self._streams(name) for name in names})
        self._queries = [self._query(name) for name in names]

    @property
    def name(self) -> str:
        return self._spec.name

    def _has(self, name: str) -> bool:
        program = self._live if name.startswith("live") else self._steady
        stateless = name.endswith("records")
        return bool(program.record_outputs if stateless else program.levels)

    def _query(self, name: str) -> SiteQuery:
        counted, checkpoint = self._counted[name], self._spec.checkpoints / name
        if not name.startswith("live"):
            start = partial(self._start_steady, name, self._steady)
            return SiteQuery(name, start, self._spec.trigger_ms, counted, checkpoint=checkpoint)
        start = partial(self._start_live, name, self._live)
        names = [self._counts(name, stream) for stream in self._streams(name)]
        found = partial(live_counts, self._spark, list(zip(names, counted, strict=True)))
        return SiteQuery(name, start, None, counted, found, checkpoint)

    def _counts(self, query: str, stream: str) -> str:
        """The name of what is found of a stream in real time."""
        return f"{self._spec.name}/{query}/{stream}"

    def keep_running(self) -> None:
        for query in self._queries:
            query.keep_running()

    def status(self) -> JobStatus:
        return JobStatus(self.name, tuple(query.status() for query in self._queries))

    def needed_positions(self) -> dict[str, int]:
        """For every log it reads, the position it still needs; a log without one is all needed."""
        if self._spec.second:
            found = self._queries[0].needed_positions() or [None] * len(self._spec.reads)
            return {log: p or 0 for log, p in zip(self._spec.reads, found, strict=False)}
        lowest: dict[str, int] = {}
        for query in self._queries:
            streams = [s.stream for s in self._scans(query.name)]
            positions = query.needed_positions() or [None] * len(streams)
            for stream, position in zip(streams, positions, strict=False):
                if stream.in_log:
                    log = stream_log(stream)
                    lowest[log] = min(lowest.get(log, 1 << 62), position or 0)
        return lowest

    def _logs_of(self, name: str) -> list[str]:
        """Of a query's sources, in their order."""
        if self._spec.second:
            return list(self._spec.reads)
        streams = [scan.stream for scan in self._scans(name)]
        return [stream_log(stream) if stream.in_log else "" for stream in streams]

    def _streams(self, name: str) -> list[str]:
        """What a query's sources are, in their order."""
        if self._spec.second:
            return list(self._spec.reads)
        return [scan.stream.name for scan in self._scans(name)]

    def _scans(self, name: str) -> tuple[Any, ...]:
        program = self._live if name.startswith("live") else self._steady
        return program.record_scans if name.endswith("records") else program.scans

    def with_parameters(self, parameters: Mapping[str, Any]) -> None:
        """A query has none: it is made anew."""

    def stop(self) -> None:
        for query in self._queries:
            query.stop()

    # ── starting queries ───────────────────────────────────────────────────────────────────────

    def _start_steady(self, name: str, program: Program) -> StreamingQuery:
        sink = AdaptiveSink.for_program(self._spark, program, self._spec.name, self._spec.outlet)
        inputs = self._inputs(program, sink)
        if name == "windows":
            inputs = self._share_clock(program, inputs)
        compiled = compile_program(
            self._spark,
            program,
            inputs,
            streaming=True,
            functions=self._spec.functions,
            panes=self._panes(program) if self._spec.second else None,
        )
        trigger = {"processingTime": f"{self._spec.trigger_ms} milliseconds"}
        if sink is not None:
            batch = sink.writer(self._spec.append, self._spec.checkpoints / name)
            return self._run(name, compiled.frames[name].writeStream.foreachBatch(batch), trigger)
        writer = self._to_logs(compiled, name, program, live=False).outputMode("append")
        return self._run(name, writer, trigger)

    def _share_clock(self, program: Program, inputs: Mapping[str, Input]) -> dict[str, Input]:
        """Their event times go by one another, so that none is held back by one that is silent."""
        step = max(program.pane_ms, self._spec.trigger_ms)
        common = {
            "clock": f"{self._spec.name}/{uuid.uuid4().hex}",
            "horizon": str(open_ms(program) + step),
            "clockStep": str(step),
        }
        clocked = dict(inputs)
        for stream in (scan.stream for scan in program.scans if scan.stream.in_log):
            given = inputs[stream.name]
            idle = "-1" if stream.idle_ms is None else str(stream.idle_ms)
            options = {**given.options, **common, "idle": idle}
            clocked[stream.name] = replace(given, options=options)
        return clocked

    def _panes(self, program: Program) -> DataFrame:
        lateness = max((scan.stream.lateness_ms for scan in program.scans), default=0)
        starts = self._spec.starts
        folders = {self._spec.log_folder(log): starts.get(log, 0) for log in self._spec.reads}
        options = {"maxBytesPerTrigger": str(self._spec.max_bytes)}
        return read_pane_logs(self._spark, folders, lateness, options)

    def _start_live(self, name: str, program: Program) -> StreamingQuery:
        here = zip(self._streams(name), self._counted[name], strict=True)
        counted = {stream for stream, counts in here if counts}
        inputs = {
            stream: replace(
                given,
                rejects=given.rejects if stream in counted else None,
                options={**given.options, **self._live_options(name, stream)}
                if given.log
                else given.options,
            )
            for stream, given in self._inputs(program, None).items()
        }
        compiled = compile_live(self._spark, program, inputs, self._spec.functions)
        writer = self._to_logs(compiled, name, program, live=True).outputMode("update")
        return self._run(
            name, writer.option("live", "true"), {"realTime": f"{self._spec.live_ms} milliseconds"}
        )

    def _live_options(self, name: str, stream: str) -> dict[str, str]:
        return {
            "counts": self._counts(name, stream),
            "firstBatch": str(self._spec.first_live_ms),
        }

    def _to_logs(self, compiled: Compiled, name: str, program: Program, live: bool) -> Any:
        spec = self._spec
        rows: DataFrame = outbound(compiled.frames[name], program, spec.name, spec.outlet)
        if live and not str(self._spark.sparkContext.master).startswith("local"):
            rows = rows.repartition(1)  # a log has one writer at a time, also on several machines
        writer = rows.writeStream.format("fogline-log").option("path", str(spec.logs))
        return writer.option("muted", str(spec.muted)) if spec.muted else writer

    def _run(self, name: str, writer: Any, trigger: Mapping[str, str]) -> StreamingQuery:
        folder = self._spec.checkpoints / name
        note_logs(folder, self._logs_of(name))
        context = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", self._spec.pool)
        writer = writer.option("checkpointLocation", str(folder)).trigger(**trigger)
        query: StreamingQuery = writer.queryName(f"{self._spec.name}/{name}").start()
        return query

    def _inputs(self, program: Program, sink: AdaptiveSink | None) -> dict[str, Input]:
        streams = {s.stream.name: s.stream for s in (*program.scans, *program.record_scans)}
        controls = {} if sink is None else sink.controls
        return {
            name: replace(stream_input(self._spec, stream), control=controls.get(name, ""))
            for name, stream in streams.items()
        }


def counted_once(streams: Mapping[str, Sequence[str]]) -> dict[str, tuple[bool, ...]]:
    """For the streams of every query, whether it is the first one that reads them."""
    readers = [(name, query) for query, names in streams.items() for name in names]
    first = dict(reversed(readers))
    return {query: tuple(first[n] == query for n in names) for query, names in streams.items()}


def stream_input(spec: JobSpec, stream: StreamSource) -> Input:
    """A stream as it lies at the site."""
    common = Input(
        Path(),
        tail=True,
        flush=False,
        max_bytes=spec.max_bytes,
        rejects=spec.rejects,
    )
    if stream.in_log:
        log = stream_log(stream)
        own = {"start": str(spec.starts.get(log, 0)), "ahead": str(stream.ahead_ms)}
        path, sampled = spec.log_folder(log), stream.share < 1
        return replace(common, path=path, log=True, sampled=sampled, options=own)
    if stream.provider == "file":
        return replace(common, path=Path(str(stream.parameter("path"))).resolve())
    raise UsageError(f"stream {stream.name} comes from {stream.provider}, which a site cannot read")


def live_counts(spark: SparkSession, sources: Sequence[tuple[str, bool]]) -> dict[str, int]:
    """Fields of a query's status, over all of its streams; none where tasks run elsewhere.

    `sources` are names, and whether what is found under them counts: the latency always does."""
    jvm: Any = spark.sparkContext._jvm
    texts = [(jvm.io.fogline.source.LiveCounts.read(name), counts) for name, counts in sources]
    found = [([int(number) for number in text.split()], counts) for text, counts in texts if text]
    if not any(records or bad for (records, bad, *_), _ in found):
        return {}
    counted = [numbers for numbers, counts in found if counts]
    return {
        "records": sum(records for records, *_ in counted),
        "bad": sum(bad for _, bad, *_ in counted),
        "bytes": sum(size for _, _, size, _ in counted),
        "latency_ms": max(latency for (*_, latency), _ in found),
    }
