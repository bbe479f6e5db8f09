"""Results on their way out: lines of JSON from the JVM, without a Python object for each.

Spark's tasks sort and the driver merges (`io.fogline.results` in the connector); the lines come
through a named pipe, of which a thread reads blocks of whole lines. Memory does not grow with their
number.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

OnLines = Callable[[bytes], None]
"""Takes one or several whole lines; called from one thread, in order."""

_FORMAT = "fogline-results"
_BLOCK = 1 << 20


class ResultOutput:
    """The output of one run. Use as a context manager: leaving it ends the reading.

    What `on_lines` raises is kept as `failure`; later lines are then dropped, so that queries that
    write do not wait for a reader that has ended.
    """

    def __init__(self, spark: SparkSession, folder: Path, on_lines: OnLines) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._java = jvm.io.fogline.results.ResultOutput
        self._folder = folder
        self._on_lines = on_lines
        self._pipe = folder / "results"
        self._counts: Counter[str] = Counter()
        self.failure: BaseException | None = None
        os.mkfifo(self._pipe)
        # Not waiting for the writer, who would wait for us.
        self._descriptor = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._java.open(str(self._pipe))
        os.set_blocking(self._descriptor, True)
        self._enlarge()
        self._thread = threading.Thread(target=self._read, daemon=True, name="results")
        self._thread.start()

    def _enlarge(self) -> None:
        """Fewer changes between the two processes; a system may allow less."""
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, _BLOCK)
        except OSError:
            return

    def __enter__(self) -> ResultOutput:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def options(self) -> dict[str, str]:
        """Of a writer (batch or stream) whose frame is one of `rows`."""
        return {"output": str(self._pipe), "folder": str(self._folder)}

    def write(self, frame: DataFrame) -> None:
        """Everything that a frame of `output_records` holds, in order."""
        rows(frame).write.format(_FORMAT).options(**self.options()).mode("append").save()

    def counts(self) -> Counter[str]:
        """Results by insight that have been written so far."""
        if self._descriptor >= 0:
            lines = str(self._java.counts(str(self._pipe))).splitlines()
            pairs = (line.split(" ", 1) for line in lines)
            self._counts = Counter({insight: int(number) for number, insight in pairs})
        return self._counts

    def close(self) -> None:
        """Waits until everything written has been read; an engine that has ended writes no more."""
        if self._descriptor < 0:
            return
        with suppress(Py4JError, ConnectionError):
            self.counts()
            self._java.close(str(self._pipe))
        self._thread.join()
        os.close(self._descriptor)
        self._descriptor = -1

    def _read(self) -> None:
        rest = b""
        while block := os.read(self._descriptor, _BLOCK):
            whole, newline, end = (rest + block).rpartition(b"\n")
            rest = end
            if newline and self.failure is None:
                try:
                    self._on_lines(whole + newline)
                except BaseException as error:
                    self.failure = error


def rows(frame: DataFrame) -> DataFrame:
    """The columns that the sink takes."""
    return frame.select("end", "insight", "key", "record")


def stream_writer(frame: DataFrame, output: ResultOutput) -> Any:
    """A writer of a stream to the output, to be started."""
    return rows(frame).writeStream.format(_FORMAT).options(**output.options())
