"""The same workloads written by hand in PySpark, as well as they can be written.

Only the fields that are needed are parsed, the session is tuned to the machine (as many shuffle
partitions as cores, RocksDB with changelog checkpoints, throw-away checkpoints in memory, the same
garbage collector) and the batches are as large as Fogline's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from protocol import Checked, Given, serve
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark_kalman import kalman
from streaming import count_results, run_to_end
from workloads import DUST_LIMIT

from fogline.common.settings import load

_BYTES_PER_TRIGGER = 2 << 30
_FIELDS = {"filter": "sensor STRING, dust DOUBLE"}
_EVENT = "sensor STRING, time BIGINT, temperature DOUBLE"
_WINDOWS = {
    "tumbling": ("10 seconds", "10 seconds"),
    "sliding": ("60 seconds", "1 second"),
    "long": ("10 minutes", "5 seconds"),
}


class PySparkEngine:
    def __init__(self, workload: str, variant: str) -> None:
        self._workload = workload
        self._variant = variant
        self._scratch = load().scratch
        self._spark = _session(load().memory)

    def time(self, given: Given) -> float:
        return run_to_end(lambda: self._frame(given), self._scratch)

    def check(self, given: Given) -> Checked:
        return count_results(self._frame(given), self._scratch)

    def _frame(self, given: Given) -> DataFrame:
        events = self._read(given)
        if self._workload == "filter":
            return events.where(F.col("dust") > DUST_LIMIT).select(
                "sensor", F.col("dust").alias("value")
            )
        timed = events.withColumn("time", F.timestamp_millis("time"))
        if self._workload == "kalman":
            return kalman(timed.where("temperature IS NOT NULL"), self._variant)
        return _windowed(timed, *_WINDOWS[self._workload])

    def _read(self, given: Given) -> DataFrame:
        schema = _FIELDS.get(self._workload, _EVENT)
        path = f"{given.events.parent}/{{{given.events.name},{given.closing.name}}}/*.json"
        stream = self._spark.readStream.option("maxBytesPerTrigger", _BYTES_PER_TRIGGER)
        if self._variant != "text":
            return stream.schema(schema).json(path)
        lines = stream.text(path)
        return lines.select(F.from_json("value", schema).alias("event")).select("event.*")


def _windowed(events: DataFrame, length: str, every: str) -> DataFrame:
    grouped = events.withWatermark("time", "1 second").groupBy(
        F.window("time", length, every), "sensor"
    )
    mean = grouped.agg(F.avg("temperature").alias("value"), F.count("temperature").alias("count"))
    return mean.select("sensor", "window.start", "window.end", "value", "count")


def _session(memory: str) -> SparkSession:
    cores = min(os.cpu_count() or 1, 4)
    state = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.defaultJavaOptions": "-XX:+UseParallelGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.files.maxPartitionBytes": str(8 << 20),
        "spark.sql.streaming.stateStore.providerClass": state,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.pyspark.python": sys.executable,
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # Python workers import this folder
    builder = SparkSession.builder.master("local[*]").appName("pyspark-bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


if __name__ == "__main__":
    serve(PySparkEngine(sys.argv[1], sys.argv[2]))
