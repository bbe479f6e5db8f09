"""The four commands in PyFlink: `flink_command.py WORKLOAD READINGS RESULTS`.

SQL for the filter and the windows, a keyed process function in Python for the filter of Kalman.
One task reads the file, whose readings are in order of time. RESULTS is a folder of part files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import StreamTableEnvironment

sys.path.insert(0, str(Path(__file__).parents[1]))

from command_workloads import DUST_LIMIT, filter_step
from flink import configuration

_READINGS = """
CREATE TEMPORARY TABLE readings (
  sensor STRING, `time` BIGINT, temperature DOUBLE, dust DOUBLE,
  ts AS TO_TIMESTAMP_LTZ(`time`, 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'json')"""
_RESULTS = """
CREATE TEMPORARY TABLE results (
  insight STRING, `window` ROW<`start` STRING, `end` STRING>, keys ROW<sensor STRING>,
  `value` DOUBLE, `count` BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'json')"""
_FORMAT = "'yyyy-MM-dd''T''HH:mm:ss.SSS''Z'''"
_AT = f"DATE_FORMAT(TO_TIMESTAMP_LTZ(`time`, 3), {_FORMAT})"
_SPAN = f"ROW(DATE_FORMAT(window_start, {_FORMAT}), DATE_FORMAT(window_end, {_FORMAT}))"
_WINDOWS = """
SELECT sensor, window_start, window_end, AVG(temperature) AS mean, MAX(temperature) AS peak,
  COUNT(temperature) AS n
FROM TABLE({window}) GROUP BY sensor, window_start, window_end"""
_TUMBLE = _WINDOWS.format(window="TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '5' SECOND)")
_HOP = _WINDOWS.format(
    window="HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '60' SECOND)"
)
_QUERIES = {
    "filter": f"""
SELECT 'dusty', ROW({_AT}, {_AT}), ROW(sensor), dust, CAST(1 AS BIGINT)
FROM readings WHERE dust > {DUST_LIMIT}""",
    "tumbling": f"""
SELECT insight, {_SPAN}, ROW(sensor), v, n FROM ({_TUMBLE})
CROSS JOIN UNNEST(ARRAY[ROW('mean', mean), ROW('peak', peak), ROW('readings', CAST(n AS DOUBLE))])
  AS t (insight, v)""",
    "sliding": f"SELECT 'mean', {_SPAN}, ROW(sensor), mean, n FROM ({_HOP})",
    "kalman": f"SELECT 'level', ROW({_AT}, {_AT}), ROW(sensor), v, n FROM levels",
}


class Kalman(KeyedProcessFunction):
    def open(self, context: RuntimeContext) -> None:
        kept = Types.TUPLE([Types.DOUBLE(), Types.DOUBLE(), Types.LONG()])
        self._state = context.get_state(ValueStateDescriptor("state", kept))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        level, variance, count = filter_step(self._state.value(), value[2])
        self._state.update((level, variance, count))
        yield Row(value[0], value[1], level, count)


def main(workload: str, readings: str, results: str) -> None:
    # The interpreter of the Python function does not know this environment.
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    cores = os.cpu_count() or 1
    environment = StreamExecutionEnvironment.get_execution_environment(
        configuration(1 if workload == "kalman" else cores)
    )
    tables = StreamTableEnvironment.create(environment)
    tables.execute_sql(_READINGS.format(path=Path(readings).resolve()))
    tables.execute_sql(_RESULTS.format(path=Path(results).resolve()))
    if workload == "kalman":
        _make_levels(tables, cores)
    tables.execute_sql(f"INSERT INTO results {_QUERIES[workload]}").wait()


def _make_levels(tables: StreamTableEnvironment, cores: int) -> None:
    rows = tables.to_data_stream(
        tables.sql_query("SELECT sensor, `time`, temperature FROM readings")
    )
    kind = Types.ROW_NAMED(
        ["sensor", "time", "v", "n"], [Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.LONG()]
    )
    levels = rows.key_by(lambda row: row[0], Types.STRING()).process(Kalman(), kind)
    levels.set_parallelism(cores)
    tables.create_temporary_view("levels", tables.from_data_stream(levels))


if __name__ == "__main__":
    main(*sys.argv[1:4])
