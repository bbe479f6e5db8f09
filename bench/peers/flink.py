"""Flink as a measured engine: its SQL for windows, a keyed process function for the Kalman filter.

Runs in the environment of the peers. What is timed is Flink's own account of a job, from its start
to its end, without planning and without starting the cluster. Two tasks read files at once, so
their records are up to a part apart: the watermark waits for them, and no record is late. Flink
makes no checkpoints here, which is its default.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import StreamTableEnvironment

sys.path.insert(0, str(Path(__file__).parents[1]))

from data import whole_file
from protocol import Checked, Given, serve
from workloads import DUST_LIMIT, KALMAN_Q, KALMAN_R

_EVENTS = """
CREATE TEMPORARY TABLE events (
  sensor STRING, `time` BIGINT, temperature DOUBLE, dust DOUBLE,
  ts AS TO_TIMESTAMP_LTZ(`time`, 3), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR
) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'json')"""
_SINK = "CREATE TEMPORARY TABLE results ({columns}) WITH ({options})"
_WINDOW_COLUMNS = "sensor STRING, s TIMESTAMP(3), e TIMESTAMP(3), `value` DOUBLE, n BIGINT"
_KALMAN_COLUMNS = "sensor STRING, `time` BIGINT, `value` DOUBLE"
_MEAN = """
INSERT INTO results
SELECT sensor, window_start, window_end, AVG(temperature), COUNT(temperature)
FROM TABLE({window}) GROUP BY sensor, window_start, window_end"""
_QUERIES = {
    "filter": (
        "sensor STRING, `value` DOUBLE",
        f"INSERT INTO results SELECT sensor, dust FROM events WHERE dust > {DUST_LIMIT}",
    ),
    "tumbling": (
        _WINDOW_COLUMNS,
        _MEAN.format(window="TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND)"),
    ),
    "sliding": (
        _WINDOW_COLUMNS,
        _MEAN.format(
            window="HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '60' SECOND)"
        ),
    ),
    "long": (
        _WINDOW_COLUMNS,
        _MEAN.format(
            window="HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' MINUTE)"
        ),
    ),
}


class Kalman(KeyedProcessFunction):
    def open(self, context: RuntimeContext) -> None:
        kept = Types.TUPLE([Types.DOUBLE(), Types.DOUBLE()])
        self._state = context.get_state(ValueStateDescriptor("state", kept))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        state = self._state.value()
        if state is None:
            level, variance = value[2], KALMAN_R
        else:
            level, variance = state
            variance += KALMAN_Q
            gain = variance / (variance + KALMAN_R)
            level += gain * (value[2] - level)
            variance *= 1 - gain
        self._state.update((level, variance))
        yield Row(value[0], value[1], level)


class FlinkEngine:
    def __init__(self, workload: str, variant: str) -> None:
        self._workload = workload
        self._variant = variant
        self._cores = min(os.cpu_count() or 1, 4)
        # The interpreter of thread mode lives inside Java and does not know its environment.
        os.environ["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)

    def time(self, given: Given) -> float:
        return self._run(given, "'connector' = 'blackhole'")

    def check(self, given: Given) -> Checked:
        folder = Path(tempfile.mkdtemp(prefix="fogline-bench-"))
        try:
            options = f"'connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv'"
            self._run(given, options)
            return _counted(folder, 1 if self._workload == "filter" else _place(self._workload))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, given: Given, sink: str) -> float:
        # A filter in order of time needs one task that reads; the work behind it is still shared.
        readers = 1 if self._workload == "kalman" else self._cores
        mode = self._variant if self._variant in ("process", "thread") else None
        environment = StreamExecutionEnvironment.get_execution_environment(
            configuration(readers, mode)
        )
        tables = StreamTableEnvironment.create(environment)
        path = whole_file(given.events) if self._workload == "kalman" else given.events
        tables.execute_sql(_EVENTS.format(path=path))
        if self._workload == "kalman":
            return self._kalman(environment, tables, sink)
        columns, query = _QUERIES[self._workload]
        tables.execute_sql(_SINK.format(columns=columns, options=sink))
        result = tables.execute_sql(query)
        return _net_seconds(result.get_job_client())

    def _kalman(
        self, environment: StreamExecutionEnvironment, tables: StreamTableEnvironment, sink: str
    ) -> float:
        tables.execute_sql(_SINK.format(columns=_KALMAN_COLUMNS, options=sink))
        rows = tables.to_data_stream(
            tables.sql_query("SELECT sensor, `time`, temperature FROM events")
        )
        kind = Types.ROW_NAMED(
            ["sensor", "time", "value"], [Types.STRING(), Types.LONG(), Types.DOUBLE()]
        )
        levels = rows.key_by(lambda row: row[0], Types.STRING()).process(Kalman(), kind)
        levels.set_parallelism(self._cores)
        statements = tables.create_statement_set()
        statements.add_insert("results", tables.from_data_stream(levels))
        result = statements.execute()
        return _net_seconds(result.get_job_client())


def configuration(readers: int, mode: str | None = None) -> Configuration:
    """Of a cluster inside this process. `mode` is the one in which Python functions run."""
    found = Configuration()
    settings = {
        "parallelism.default": str(readers),
        "table.exec.resource.default-parallelism": str(readers),
        "table.local-time-zone": "UTC",
        "taskmanager.memory.managed.size": "512m",
        "taskmanager.memory.network.min": "128m",
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "python.fn-execution.bundle.size": "10000",
    }
    if mode is not None:
        settings["python.execution-mode"] = mode
    for key, value in settings.items():
        found.set_string(key, value)
    return found


def _net_seconds(client: Any) -> float:
    return client.get_job_execution_result().result().get_net_runtime() / 1000


def _place(workload: str) -> int:
    return 2 if workload == "kalman" else 3


def _counted(folder: Path, place: int) -> Checked:
    count, total = 0, 0.0
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open(encoding="utf-8") as lines:
                for line in lines:
                    count += 1
                    total += float(line.split(",")[place])
    return Checked(count, total)


if __name__ == "__main__":
    serve(FlinkEngine(sys.argv[1], sys.argv[2]))
