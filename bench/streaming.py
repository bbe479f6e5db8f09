"""One pass of a streaming DataFrame over everything there is, timed or counted."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from protocol import Checked
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter


def run_to_end(frame: Callable[[], DataFrame], scratch: Path) -> float:
    """Seconds to make the query and run it into the sink that keeps nothing."""
    started = time.perf_counter()
    _run(frame().writeStream.format("noop"), scratch)
    return time.perf_counter() - started


def count_results(frame: DataFrame, scratch: Path) -> Checked:
    """Runs the query and counts its results; `value` is the column that is summed."""
    count, total = 0, 0.0

    def add(batch: DataFrame, _: int) -> None:
        nonlocal count, total
        row = batch.agg(F.count("value"), F.sum("value")).first()
        assert row is not None
        count += row[0]
        total += row[1] or 0.0

    _run(frame.writeStream.foreachBatch(add), scratch)
    return Checked(count, total)


def _run(writer: DataStreamWriter, scratch: Path) -> None:
    folder = tempfile.mkdtemp(prefix="fogline-bench-", dir=scratch)
    try:
        trigger = writer.option("checkpointLocation", folder).trigger(availableNow=True)
        trigger.start().awaitTermination()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
