"""The four commands as Bytewax dataflows: `bytewax_command.py WORKLOAD READINGS RESULTS`.

Written as Bytewax's guides do it: its own file source and sink, `stateful_map` for the filter of
Kalman, one `fold_window` for all insights of a window, which need no order. JSON is read and
written with orjson, as many dataflows do; Python's own module is slower.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import orjson
from bytewax.connectors.files import FileSink, FileSource
from bytewax.dataflow import Dataflow, Stream
from bytewax.operators.windowing import (
    EventClock,
    SlidingWindower,
    TumblingWindower,
    Windower,
    fold_window,
)
from bytewax.run import cli_main

sys.path.insert(0, str(Path(__file__).parents[1]))

from command_workloads import DUST_LIMIT, Level, filter_step

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Reading = dict[str, Any]
Total = tuple[float, float, int]


def dataflow(workload: str, readings: str, results: str) -> Dataflow:
    flow = Dataflow(workload)
    lines = op.input("read", flow, FileSource(readings, batch_size=10_000))
    written = _WORKLOADS[workload](lines)
    op.output("write", written, FileSink(Path(results)))
    return flow


def _filter(lines: Stream[str]) -> Stream[tuple[str, str]]:
    return op.filter_map("dusty", lines, _dusty)


def _dusty(line: str) -> tuple[str, str] | None:
    reading = orjson.loads(line)
    if reading["dust"] <= DUST_LIMIT:
        return None
    at = _text(_time(reading))
    return reading["sensor"], _line("dusty", at, at, reading["sensor"], reading["dust"], 1)


def _kalman(lines: Stream[str]) -> Stream[tuple[str, str]]:
    filtered = op.stateful_map("kalman", _by_sensor(lines), _level)
    return op.map("line", filtered, _level_line)


def _level(last: Level | None, reading: Reading) -> tuple[Level, tuple[Reading, Level]]:
    state = filter_step(last, reading["temperature"])
    return state, (reading, state)


def _level_line(item: tuple[str, tuple[Reading, Level]]) -> tuple[str, str]:
    sensor, (reading, (level, _, count)) = item
    at = _text(_time(reading))
    return sensor, _line("level", at, at, sensor, level, count)


def _tumbling(lines: Stream[str]) -> Stream[tuple[str, str]]:
    length = timedelta(seconds=5)
    folded = _folded(lines, TumblingWindower(length=length, align_to=_EPOCH))

    def three(item: tuple[str, tuple[int, Total]]) -> Iterable[tuple[str, str]]:
        sensor, (window, (total, peak, count)) = item
        start, end = _text(_EPOCH + window * length), _text(_EPOCH + (window + 1) * length)
        yield sensor, _line("mean", start, end, sensor, total / count, count)
        yield sensor, _line("peak", start, end, sensor, peak, count)
        yield sensor, _line("readings", start, end, sensor, count, count)

    return op.flat_map("lines", folded, three)


def _sliding(lines: Stream[str]) -> Stream[tuple[str, str]]:
    length, every = timedelta(seconds=60), timedelta(seconds=1)
    folded = _folded(lines, SlidingWindower(length=length, offset=every, align_to=_EPOCH))

    def mean(item: tuple[str, tuple[int, Total]]) -> tuple[str, str]:
        sensor, (window, (total, _, count)) = item
        start = _EPOCH + window * every
        line = _line("mean", _text(start), _text(start + length), sensor, total / count, count)
        return sensor, line

    return op.map("line", folded, mean)


def _folded(lines: Stream[str], windower: Windower[Any]) -> Stream[tuple[str, tuple[int, Total]]]:
    # Readings of a sensor are in order of time. By default the watermark also advances with the
    # clock of the system, and a machine that is busy elsewhere would make readings late.
    clock = EventClock(
        ts_getter=_time,
        wait_for_system_duration=timedelta(0),
        now_getter=lambda: _EPOCH,
        to_system_utc=lambda _: None,
    )
    return fold_window(
        "window", _by_sensor(lines), clock, windower, _nothing, _add, _merge, ordered=False
    ).down


def _nothing() -> Total:
    return 0.0, float("-inf"), 0


def _add(total: Total, reading: Reading) -> Total:
    value = reading["temperature"]
    return total[0] + value, value if value > total[1] else total[1], total[2] + 1


def _merge(one: Total, other: Total) -> Total:
    return one[0] + other[0], max(one[1], other[1]), one[2] + other[2]


def _by_sensor(lines: Stream[str]) -> Stream[tuple[str, Reading]]:
    return op.map("parse", lines, _keyed)


def _keyed(line: str) -> tuple[str, Reading]:
    reading = orjson.loads(line)
    return reading["sensor"], reading


def _time(reading: Reading) -> datetime:
    return datetime.fromtimestamp(reading["time"] / 1000, UTC)


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _line(insight: str, start: str, end: str, sensor: str, value: float, count: int) -> str:
    record = {
        "insight": insight,
        "window": {"start": start, "end": end},
        "keys": {"sensor": sensor},
        "value": value,
        "count": count,
    }
    return orjson.dumps(record).decode()


_WORKLOADS = {"filter": _filter, "kalman": _kalman, "tumbling": _tumbling, "sliding": _sliding}

if __name__ == "__main__":
    cli_main(dataflow(*sys.argv[1:4]))
