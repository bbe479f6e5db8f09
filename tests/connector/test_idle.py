"""Event time that moves on in silence: what the source tells, and that it tells the same again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from fogline.log import LogWriter, SiteLog
from fogline.log.files.idleness import write_heard
from tests.connector.conftest import Rows, configured
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

BASE = 1_700_000_000_000
IDLE, HORIZON, LATENESS = 10_000, 30_000, 1000


@pytest.fixture
def log(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=0)


@pytest.fixture
def writers(log: SiteLog) -> Iterator[dict[str, LogWriter]]:
    made = {name: log.writer(name) for name in ("a", "b")}
    yield made
    for writer in made.values():
        writer.close()


def say(writer: LogWriter, *times: int) -> None:
    """Readings at these milliseconds, at once."""
    found = [json.dumps({"n": t, "t": BASE + t}).encode() for t in times]
    writer.append([(writer.folder.name, payload) for payload in found])
    writer.commit()


def hear(writer: LogWriter, quiet_ms: int) -> None:
    write_heard(writer.folder, writer.position, quiet_ms)


def options(**more: Any) -> dict[str, Any]:
    return {
        "log": True, "tail": True, "time": "t", "lateness": LATENESS, "clock": "group",
        "idle": IDLE, "horizon": HORIZON, "clockStep": 1000, **more,
    }  # fmt: skip


def records(rows: Rows) -> list[int]:
    return [int(row["n"]) for row in rows if row["n"] is not None]


def clocks(rows: Rows) -> list[int]:
    """The times that were told without a record."""
    return [row["_time"] // 1000 - BASE for row in rows if row["_clock"]]


def test_in_silence_time_goes_on_until_no_window_is_open(
    start: Callable, writers: dict[str, LogWriter], log: SiteLog
) -> None:
    rows: Rows = []
    say(writers["a"], 0, 5000)
    query = start(rows, log.folder("a"), "json", "n long, _clock", now=False, **options())
    wait_for(lambda: records(rows) == [0, 5000], 20, "records")
    hear(writers["a"], IDLE - 1)
    query.processAllAvailable()
    assert clocks(rows) == []
    hear(writers["a"], IDLE + 4000)
    wait_for(lambda: clocks(rows) == [9000], 20, "time")
    hear(writers["a"], IDLE + 1_000_000)
    wait_for(lambda: clocks(rows) == [9000, 5000 + HORIZON + LATENESS], 20, "end of time")
    hear(writers["a"], IDLE + 2_000_000)
    query.processAllAvailable()
    assert len(clocks(rows)) == 2


def test_a_silence_of_an_earlier_position_counts_for_nothing(
    start: Callable, writers: dict[str, LogWriter], log: SiteLog
) -> None:
    rows: Rows = []
    hear(writers["a"], 3_600_000)
    say(writers["a"], 0)
    query = start(rows, log.folder("a"), "json", "n long, _clock", now=False, **options())
    wait_for(lambda: records(rows) == [0], 20, "record")
    query.processAllAvailable()
    assert clocks(rows) == []


def test_what_comes_within_idle_and_lateness_counts_and_what_comes_later_is_late(
    start: Callable, writers: dict[str, LogWriter], log: SiteLog, tmp_path: Path
) -> None:
    rows: Rows = []
    more = options(rejects=tmp_path / "rejects")
    say(writers["a"], 0)
    start(rows, log.folder("a"), "json", "n long, _clock", now=False, **more)
    wait_for(lambda: records(rows) == [0], 20, "record")
    hear(writers["a"], IDLE + 8000)
    wait_for(lambda: clocks(rows) == [8000], 20, "time")
    say(writers["a"], 7000, 6999)
    wait_for(lambda: records(rows) == [0, 7000], 20, "record within lateness")
    (file,) = wait_for(lambda: list((tmp_path / "rejects").glob("*.ndjson")), 20, "late record")
    late = json.loads(file.read_text())
    assert (late["kind"], late["topic"]) == ("late", "a")


def test_a_batch_that_is_run_again_tells_the_same_time(
    spark: SparkSession, writers: dict[str, LogWriter], log: SiteLog, tmp_path: Path
) -> None:
    """The first run fails while it tells a time; meanwhile the silence has become longer."""
    told: list[int] = []

    def run(fail: bool) -> StreamingQuery:
        def keep(frame: DataFrame, number: int) -> None:
            told.extend(clocks([row.asDict() for row in micros(frame).collect()]))
            if fail and told:
                raise RuntimeError("killed")

        frame = configured(
            spark.readStream, log.folder("a"), "json", "n long, _clock", options(clock=f"g{fail}")
        )
        writer = frame.writeStream.foreachBatch(keep).trigger(processingTime="50 milliseconds")
        return writer.option("checkpointLocation", str(tmp_path / "again")).start()

    say(writers["a"], 0)
    failing = run(fail=True)
    wait_for(lambda: failing.lastProgress, 20, "first batch")
    hear(writers["a"], IDLE + 3000)
    wait_for(lambda: not failing.isActive, 20, "failure")
    hear(writers["a"], IDLE + 7000)
    query = run(fail=False)
    wait_for(lambda: told[-1:] == [7000], 20, "time after the failure")
    query.stop()
    assert told[:2] == [3000, 3000]


def micros(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("* except (_time)", "unix_micros(_time) as _time")


def test_a_silent_stream_goes_by_the_others(
    spark: SparkSession, writers: dict[str, LogWriter], log: SiteLog, tmp_path: Path
) -> None:
    """Also after a restart, when Spark has forgotten how far single streams were."""
    counts: dict[int, int] = {}

    def run(group: str) -> StreamingQuery:
        frames = [
            configured(spark.readStream, log.folder(name), "json", "n long, _clock", given)
            .withWatermark("_time", "1 second")
            .where("CASE WHEN _time < '9999-01-01' THEN _clock IS NULL ELSE false END")
            for name, given in {"a": options(clock=group), "b": options(clock=group)}.items()
        ]
        windows = frames[0].union(frames[1]).groupBy(F.window("_time", "5 seconds"))

        def keep(frame: DataFrame, number: int) -> None:
            for row in frame.selectExpr("unix_millis(window.end) AS end", "count").collect():
                assert row["end"] - BASE not in counts
                counts[row["end"] - BASE] = row["count"]

        writer = windows.count().writeStream.foreachBatch(keep).outputMode("append")
        writer = writer.trigger(processingTime="50 milliseconds")
        return writer.option("checkpointLocation", str(tmp_path / "windows")).start()

    query = run("first")
    say(writers["a"], 0, 1000, 6000)
    query.processAllAvailable()
    say(writers["a"], 7000)
    query.processAllAvailable()
    assert counts == {}, "the other stream may still speak"
    hear(writers["b"], IDLE)
    wait_for(lambda: counts == {5000: 2}, 30, "window of the stream that speaks")
    query.stop()
    query = run("second")
    say(writers["a"], 11_500)
    wait_for(lambda: counts == {5000: 2, 10_000: 2}, 30, "window after the restart")
    hear(writers["a"], IDLE + 10_000)
    hear(writers["b"], IDLE + 20_000)
    wait_for(lambda: counts.get(15_000) == 1, 30, "last window")
    query.stop()


def test_records_that_a_filter_leaves_out_move_time(
    start: Callable, writers: dict[str, LogWriter], log: SiteLog
) -> None:
    rows: Rows = []
    few = {"op": "<", "column": "n", "value": 100}
    say(writers["a"], 0, 50, 8000)
    start(rows, log.folder("a"), "json", "n long, _clock", now=False, **options(filter=few))
    wait_for(lambda: records(rows) == [0, 50], 20, "records")
    assert clocks(rows) == [8000]


def test_only_a_log_with_a_lateness_has_a_clock(batch: Callable, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}\n")
    with pytest.raises(Exception, match="option clock"):
        batch(file, "json", "n long", clock="g")
