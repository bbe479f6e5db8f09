"""Runs a program on Spark: as a stream in micro-batches, or as a batch over what is there.

A run owns its queries and its checkpoint; `stop` ends them and removes what they left behind.
Results are handed over as lines of JSON, within a batch in the order of their windows.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from fogline.common.errors import SetupError
from fogline.model.results import Account, ResultRange, StreamCount
from fogline.plan.lowering.program import Program
from fogline.spark.compile.columns import Functions, no_functions
from fogline.spark.compile.program import Compiled, compile_program
from fogline.spark.compile.scan import Input
from fogline.spark.jobs.sampling import LiveSampling
from fogline.spark.run.result_output import OnLines, ResultOutput, stream_writer
from fogline.spark.session.failures import summarise_failure
from fogline.spark.session.session import engine_alive

_POLL_SECONDS = 0.1
_END_OF_STREAM = "999"
"""Watermarks in the years 9990 to 9999 mean that the last record has been seen."""


def run_batch(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    on_lines: OnLines,
    functions: Functions = no_functions,
    within: ResultRange | None = None,
) -> Counter[str]:
    """Computes everything over what the inputs hold now; gives the number of results by insight."""
    compiled = _compile_program(spark, program, inputs, False, functions)
    with results_folder(spark) as folder, ResultOutput(spark, folder, on_lines) as output:
        for frame in compiled.frames.values():
            try:
                with engine_alive():
                    output.write(frame if within is None else _those(frame, within))
            except PySparkException as error:
                raise summarise_failure(error) from error
    if output.failure is not None:
        raise output.failure
    return output.counts()


def _those(frame: DataFrame, within: ResultRange) -> DataFrame:
    end, at_record = F.col("end"), F.col("insight").isin(list(within.at_records))
    begun = (at_record & (end >= within.first_ms)) | (~at_record & (end > within.first_ms))
    return frame.where(begun & (end <= within.last_ms))


@contextmanager
def results_folder(spark: SparkSession) -> Iterator[Path]:
    """Where sorted results wait to be merged: on disk, or where all workers of a cluster see it."""
    local = str(spark.sparkContext.master).startswith("local")
    below = None if local else spark.sparkContext.getConf().get("spark.local.dir")
    folder = Path(tempfile.mkdtemp(prefix="fogline-results-", dir=below))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compile_program(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    streaming: bool,
    functions: Functions,
) -> Compiled:
    """What Spark does not take is reported in one line, too."""
    try:
        with engine_alive():
            return compile_program(spark, program, inputs, streaming, functions=functions)
    except PySparkException as error:
        raise summarise_failure(error) from error


class StreamRun:
    """A program running as a stream. Use as a context manager: leaving it stops everything."""

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        inputs: Mapping[str, Input],
        on_lines: OnLines,
        scratch: Path,
        functions: Functions = no_functions,
        available_now: bool = False,
    ) -> None:
        self._counts: dict[str, StreamCount] = {}
        self._final: Account | None = None
        self._streams = {
            "windows": [s.stream.name for s in program.scans],
            "records": [s.stream.name for s in program.record_scans],
        }
        self._available_now = available_now
        self._stack = ExitStack()
        with self._stack:
            self._folder = Path(tempfile.mkdtemp(prefix="fogline-run-", dir=scratch))
            self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            controls = {name: f"{self._folder.name}/{name}" for name in inputs}
            self._sampling = LiveSampling(spark, program, controls)
            own = {name: replace(given, control=controls[name]) for name, given in inputs.items()}
            compiled = _compile_program(spark, program, own, True, functions)
            folder = self._stack.enter_context(results_folder(spark))
            self._output = self._stack.enter_context(ResultOutput(spark, folder, on_lines))
            self._queries = {
                name: self._start(name, frame) for name, frame in compiled.frames.items()
            }
            self._stack = self._stack.pop_all()

    def __enter__(self) -> StreamRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, name: str, frame: DataFrame) -> StreamingQuery:
        adapts = self._sampling.is_needed
        writer: Any = (
            frame.writeStream.foreachBatch(self._adapt)
            if adapts
            else stream_writer(frame, self._output)
        )
        writer = writer.queryName(f"fogline-{name}")
        writer = writer.option("checkpointLocation", str(self._folder / name))
        now = {"availableNow": True} if self._available_now else {"processingTime": "0 seconds"}
        query: StreamingQuery = writer.trigger(**now).start()
        return query

    def _adapt(self, frame: DataFrame, number: int) -> None:
        """A batch of insights with MAX_ERROR: it also decides the sample of the next one."""
        kept = frame.persist()
        try:
            self._sampling.learn(kept)
            self._output.write(kept)
        finally:
            kept.unpersist()

    # ── watching ───────────────────────────────────────────────────────────────────────────────

    def account(self) -> Account:
        """Counts so far, or those of the end."""
        if self._final is not None:
            return self._final
        for name, query in self._queries.items():
            progress = query.lastProgress
            if progress is not None:
                self._note(name, progress)
        insights = self._output.counts()
        return Account(dict(self._counts), insights.total(), insights)

    def _note(self, name: str, progress: Any) -> None:
        for stream, source in zip(self._streams[name], progress.sources, strict=False):
            metrics = source.metrics or {}
            if name == "records" and stream in self._streams["windows"]:
                continue
            self._counts[stream] = StreamCount(
                *(int(metrics.get(k, 0)) for k in ("records", "bad", "late", "bytes"))
            )

    def is_finished(self) -> bool:
        """Whether every query has seen the end of its streams; raises what made one fail."""
        if self._output.failure is not None:
            raise self._output.failure
        return all(self._is_over(query) for query in self._queries.values())

    def _is_over(self, query: StreamingQuery) -> bool:
        if not query.isActive:
            self._raise_failure(query)
            return True
        progress = query.lastProgress
        if progress is None:
            return False
        offsets = [str(source.endOffset) for source in progress.sources]
        ended = all('"ended":true' in offset.replace(" ", "") for offset in offsets)
        watermark = str((progress.eventTime or {}).get("watermark", ""))
        return ended and (not progress.stateOperators or watermark.startswith(_END_OF_STREAM))

    def _raise_failure(self, query: StreamingQuery) -> None:
        error = query.exception()
        if error is not None:
            raise summarise_failure(error) from error

    def wait(self, seconds: float | None = None, on_tick: Callable[[], None] | None = None) -> bool:
        """Waits for the end of all streams, or for so many seconds; True at the end."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with engine_alive():
            while not self.is_finished():
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                if on_tick:
                    on_tick()
                time.sleep(_POLL_SECONDS)
        return True

    def stop(self) -> None:
        """Ends the queries and hands over what they have written; an engine that has ended already
        has none left to end."""
        with self._stack, suppress(SetupError), engine_alive():
            for query in self._queries.values():
                query.stop()
            self._final = self.account()


def count_rejects(folder: Path | None) -> dict[str, StreamCount]:
    """Bad and late records per stream, counted from what was kept: a folder of JSON lines."""
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.glob("*.ndjson")) if folder and folder.is_dir() else ():
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                counts[(entry["stream"], entry["kind"])] += 1
    streams = {stream for stream, _ in counts}
    return {s: StreamCount(bad=counts[(s, "bad")], late=counts[(s, "late")]) for s in streams}
