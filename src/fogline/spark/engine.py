"""Runs a program on Spark: as a stream in micro-batches, or as a batch over what is there.

A run owns its queries and its checkpoint; `stop` ends them and removes what they left behind.
Results are handed over once per batch, in the order of their windows.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from fogline.errors import FoglineError, SetupError
from fogline.model.results import Account, Result, StreamCount
from fogline.plan.program import Program
from fogline.spark.collecting import collect
from fogline.spark.columns import Functions, no_functions
from fogline.spark.compile import Compiled, compile_program
from fogline.spark.failures import told
from fogline.spark.sampling import LiveSampling
from fogline.spark.scan import Input
from fogline.spark.session import engine_alive

OnResults = Callable[[Sequence[Result]], None]
_POLL_SECONDS = 0.1
_END_OF_STREAM = "999"
"""Watermarks in the years 9990 to 9999 mean that the last record has been seen."""


def run_batch(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    on_results: OnResults,
    functions: Functions = no_functions,
) -> int:
    """Computes everything over what the inputs hold now; gives the number of results."""
    compiled = _compiled(spark, program, inputs, False, functions)
    total = 0
    for frame in compiled.frames.values():
        try:
            with engine_alive():
                results = collect(frame)
        except PySparkException as error:
            raise told(error) from error
        total += len(results)
        on_results(results)
    return total


def _compiled(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    streaming: bool,
    functions: Functions,
) -> Compiled:
    """What Spark does not take is told in one line, too."""
    try:
        with engine_alive():
            return compile_program(spark, program, inputs, streaming, functions=functions)
    except PySparkException as error:
        raise told(error) from error


class StreamRun:
    """A program running as a stream. Use as a context manager: leaving it stops everything."""

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        inputs: Mapping[str, Input],
        on_results: OnResults,
        scratch: Path,
        functions: Functions = no_functions,
        available_now: bool = False,
    ) -> None:
        self._spark = spark
        self._on_results = on_results
        self._results = 0
        self._batches = 0
        self._failure: BaseException | None = None
        self._counts: dict[str, StreamCount] = {}
        self._streams = {
            "windows": [s.stream.name for s in program.scans],
            "records": [s.stream.name for s in program.record_scans],
        }
        self._folder = Path(tempfile.mkdtemp(prefix="fogline-run-", dir=scratch))
        controls = {name: f"{self._folder.name}/{name}" for name in inputs}
        self._sampling = LiveSampling(spark, program, controls)
        own = {name: replace(given, control=controls[name]) for name, given in inputs.items()}
        compiled = _compiled(spark, program, own, True, functions)
        self._queries = {
            name: self._start(name, frame, available_now) for name, frame in compiled.frames.items()
        }

    def __enter__(self) -> StreamRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, name: str, frame: DataFrame, available_now: bool) -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(self._batch).queryName(f"fogline-{name}")
        writer = writer.option("checkpointLocation", str(self._folder / name))
        trigger: Any = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
        return writer.trigger(**trigger).start()

    def _batch(self, frame: DataFrame, number: int) -> None:
        try:
            results = collect(frame)
            self._sampling.learn(results)
            self._results += len(results)
            self._batches += 1
            if results:
                self._on_results(results)
        except BaseException as error:
            self._failure = error
            raise

    # ── watching ───────────────────────────────────────────────────────────────────────────────

    def account(self) -> Account:
        """Counts so far."""
        for name, query in self._queries.items():
            for progress in query.recentProgress[-1:]:
                self._note(name, progress)
        return Account(dict(self._counts), self._results, self._batches)

    def _note(self, name: str, progress: Any) -> None:
        for stream, source in zip(self._streams[name], progress.sources, strict=False):
            metrics = source.metrics or {}
            if name == "records" and stream in self._streams["windows"]:
                continue
            self._counts[stream] = StreamCount(
                *(int(metrics.get(k, 0)) for k in ("records", "bad", "late", "bytes"))
            )

    def finished(self) -> bool:
        """Whether every query has seen the end of its streams; raises what made one fail."""
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
        if isinstance(self._failure, FoglineError | BrokenPipeError | KeyboardInterrupt):
            raise self._failure
        error = query.exception()
        if error is not None:
            raise told(error) from error

    def wait(self, seconds: float | None = None, on_tick: Callable[[], None] | None = None) -> bool:
        """Waits for the end of all streams, or for so many seconds; True at the end."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with engine_alive():
            while not self.finished():
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                if on_tick:
                    on_tick()
                time.sleep(_POLL_SECONDS)
        return True

    def stop(self) -> None:
        """Ends the queries; an engine that is gone already has none left to end."""
        with suppress(SetupError), engine_alive():
            self.account()
            for query in self._queries.values():
                query.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
