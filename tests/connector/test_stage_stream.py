"""The second stage over a stream gives what it gives over history, once, whatever the batches."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.spark

BASE = 1_700_000_000_000
END = 253_402_214_400_000
SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": "1",
}
NO_LISTS = "cast(array() as array<array<double>>) as lists"
NO_BLOBS = "cast(array() as array<binary>) as blobs"
NO_PASS = "cast(null as string) as pass"

CHANNEL = {
    "partials": [{"kind": "sum", "at": 0}, {"kind": "sum", "at": 1}, {"kind": "values", "at": 0}],
    "events": {"at": 1, "inputs": 1},
}


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


def aggregate(function: str, kind: str, length: int = 0, **rest: Any) -> dict[str, Any]:
    window = {"kind": kind, "length": length} if length else {"kind": kind}
    return {"function": function, "window": window, "offset": rest.pop("offset", 0), **rest}


NODES = [
    {"kind": "every", "everyMs": 2000, "aggregates": [
        aggregate("AVG", "time", 6000, partials=[0, 1]),
        aggregate("MEDIAN", "time", 6000, partials=[2]),
        aggregate("COUNT", "time", 3000, partials=[1], offset=4000),
    ]},
    {"kind": "every", "everyMs": 5000, "aggregates": [
        aggregate("RUNNING_MEAN", "running", partials=[0, 1]),
        aggregate("KALMAN", "running", inputs=[0], parameters=[0.1, 1]),
        aggregate("SUM", "events", 4, inputs=[0]),
    ]},
    {"kind": "arrival", "aggregates": [
        aggregate("AVG", "time", 4000, inputs=[0]),
        aggregate("PERCENTILE", "time", 4000, inputs=[0], parameters=[75], offset=1000),
        aggregate("FORECAST", "time", 6000, inputs=[0], parameters=[2, 1000]),
    ]},
    {"kind": "arrival", "everyEvents": 3, "aggregates": [
        aggregate("SDEV", "events", 5, inputs=[0]),
        aggregate("TOP_K", "events", 5, inputs=[0], parameters=[2]),
        aggregate("EWMA", "running", inputs=[0], parameters=[0.5]),
    ]},
    {"kind": "session", "aggregates": [
        aggregate("MAX", "session", 1500, inputs=[0]),
        aggregate("OUTLIER_DETECTION", "session", 1500, inputs=[0], parameters=[2, 0.05]),
    ]},
]  # fmt: skip


def spec(
    *nodes: dict[str, Any], channel: dict[str, Any] = CHANNEL, pane: int = 1000
) -> dict[str, Any]:
    numbered = [{"id": i, "channel": 0, **node} for i, node in enumerate(nodes)]
    return {"paneMs": pane, "channels": [channel], "nodes": numbered}


def stage(frame: DataFrame, what: dict[str, Any]) -> DataFrame:
    spark = frame.sparkSession
    return DataFrame(
        spark._jvm.io.fogline.stage.KeyedStage.apply(frame._jdf, json.dumps(what)), spark
    )


def write_batches(folder: Path, rng: random.Random, number: int, first: int = 0) -> None:
    """Files of records in nearly the order of time; the flush comes later, on its own."""
    events = []
    for _ in range(30 * number):
        seconds = rng.choice([rng.uniform(0, 60), rng.uniform(10, 20)])
        events.append((BASE + int(seconds * 1000), rng.choice("abc"), round(rng.random(), 3)))
    events.append((BASE + 30_000, "rare", 0.5))
    events.sort(key=lambda e: e[0] + rng.uniform(0, 1500))
    # one batch ends such that the watermark falls exactly on the grid
    events.insert(
        len(events) // 2,
        (max(e[0] for e in events[: len(events) // 2]) // 1000 * 1000 + 2000, "a", 0.7),
    )
    cuts = sorted([*rng.sample(range(1, len(events)), number - 1), len(events) // 2 + 1])
    for i, (low, high) in enumerate(zip([0, *cuts], [*cuts, len(events)], strict=True)):
        write_file(folder, first + i, events[low:high])


def write_file(
    folder: Path, number: int, events: list[tuple[int, str | None, float | None]]
) -> None:
    path = folder / f"{number:03}.json"
    path.write_text("".join(json.dumps({"t": t, "k": k, "v": v}) + "\n" for t, k, v in events))
    os.utime(path, (1e9 + number, 1e9 + number))


def panes(source: DataFrame) -> DataFrame:
    """The first stage: native partials of 1 s, with the watermark 2 s behind."""
    timed = source.select(F.timestamp_millis("t").alias("at"), "t", "k", "v").withWatermark(
        "at", "2 seconds"
    )
    made = timed.groupBy(F.window("at", "1 second").alias("w"), F.col("k").alias("key")).agg(
        F.sum("v").alias("sum"),
        F.count("v").cast("double").alias("n"),
        F.collect_list("v").alias("values"),
        F.collect_list(F.col("t").cast("double")).alias("times"),
    )
    return made.selectExpr(
        "0 as channel", "key", "unix_millis(w.start) as pane",
        "array(coalesce(sum, double('NaN')), n) as nums",
        "array(values, if(n = 0, array(), times), values) as lists",
        NO_BLOBS, NO_PASS, "window_time(w) as _time",
    )  # fmt: skip


def records(spark: SparkSession, folder: Path, stream: bool) -> DataFrame:
    reader = spark.readStream.option("maxFilesPerTrigger", 1) if stream else spark.read
    return reader.schema("t long, k string, v double").json(str(folder))


def flat(rows: list[Any]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for row in rows:
        if row["node"] < 0:
            found.append((-1, row["key"], row["pass"]))
        width = len(row["values"]) // max(1, len(row["ends"]))
        for i, end in enumerate(row["ends"]):
            cells = row["values"][i * width : (i + 1) * width]
            texts = row["texts"][i * width : (i + 1) * width]
            shown = tuple(f"{cell:.12g}" for cell in cells), tuple(texts)
            counts = tuple(row["counts"][i * width : (i + 1) * width])
            found.append((row["node"], row["key"], row["starts"][i], end, counts, *shown))
    return sorted(found, key=repr)


class Run:
    """A stream into a list, that can be stopped and started again."""

    def __init__(self, frame: DataFrame, checkpoint: Path) -> None:
        self.frame, self.checkpoint = frame, checkpoint
        self.rows: list[Any] = []
        self.progress: list[Any] = []

    def go(self) -> None:
        writer = self.frame.writeStream.outputMode("append").trigger(availableNow=True)
        writer = writer.foreachBatch(lambda frame, _: self.rows.extend(frame.collect()))
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        query.awaitTermination(100)
        assert query.exception() is None
        self.progress.extend(query.recentProgress)


@pytest.mark.parametrize("seed", [1, 2])
def test_stream_equals_batch_for_any_batches(
    rocks: SparkSession, tmp_path: Path, seed: int
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rng = random.Random(seed)
    write_batches(folder, rng, rng.randint(3, 5))
    run = Run(stage(panes(records(rocks, folder, True)), spec(*NODES)), tmp_path / "checkpoint")
    run.go()
    write_file(folder, 90, [(END, None, None)])
    run.go()
    expected = flat(
        stage(panes(records(rocks, folder, False).where("v is not null")), spec(*NODES)).collect()
    )
    assert len(expected) > 200
    assert flat(run.rows) == expected


FIRST = spec(
    {
        "kind": "every",
        "everyMs": 2000,
        "aggregates": [aggregate("AVG", "time", 6000, partials=[0, 1])],
    }
)
SECOND = spec(
    {"kind": "every", "everyMs": 10_000, "aggregates": [
        aggregate("SUM", "time", 10_000, partials=[0, 1]),
        aggregate("TOP_K", "time", 10_000, partials=[2], parameters=[2], labels=True),
    ]},
    channel={**CHANNEL, "labels": True}, pane=5000,
)  # fmt: skip


def two_levels(source: DataFrame) -> DataFrame:
    """Results of the first level go on as finished ones and as panes of the second."""
    first = stage(panes(source), FIRST).select(
        "key", F.posexplode("ends").alias("i", "end"), "values", "_time"
    )
    done = first.selectExpr("_time", "explode(array(" + ", ".join([
        "named_struct('channel', -1, 'key', key, 'pane', 0L, 'nums', array(double('NaN')), 'pass',"
        " to_json(named_struct('key', key, 'end', end, 'value', round(values[i], 9))))",
        "named_struct('channel', 0, 'key', '{}', 'pane', (end - 1) - (end - 1) % 5000, 'nums',"
        " array(values[i], 1.0D), 'pass', to_json(named_struct('k', key)))",
    ]) + ")) as row")  # fmt: skip
    lists = "array(array(row.nums[0]), array(double(row.pane)), array(row.nums[0])) as lists"
    rows = done.selectExpr(
        "row.channel", "row.key", "row.pane", "row.nums", lists, NO_BLOBS, "row.pass", "_time"
    )
    return stage(rows, SECOND)


def test_levels_chain_in_one_query(rocks: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_batches(folder, random.Random(8), 4)
    run = Run(two_levels(records(rocks, folder, True)), tmp_path / "checkpoint")
    run.go()
    write_file(folder, 90, [(END, None, None)])
    run.go()
    expected = flat(two_levels(records(rocks, folder, False).where("v is not null")).collect())
    assert len({row for row in expected if row[0] == -1}) > 60
    assert len([row for row in expected if row[0] == 0]) == 7
    assert flat(run.rows) == expected


def test_a_native_window_can_follow_and_state_is_dropped(
    rocks: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_batches(folder, random.Random(9), 3)
    write_file(folder, 90, [(END, None, None)])
    what = spec(NODES[0], NODES[2], NODES[4])
    one = stage(panes(records(rocks, folder, True)), what).selectExpr("size(ends) as n", "_time")
    run = Run(
        one.groupBy(F.window("_time", "10 seconds")).agg(F.sum("n").alias("n")),
        tmp_path / "checkpoint",
    )
    run.go()
    batch = stage(panes(records(rocks, folder, False).where("v is not null")), what)
    total = batch.selectExpr("sum(size(ends)) as n").first()
    assert total is not None
    # what the flush itself closes comes with the flush's time, whose window stays open
    assert 0 < sum(row["n"] for row in run.rows) <= total["n"]
    operators = [op for progress in run.progress for op in progress["stateOperators"]]
    assert sum(op["numRowsDroppedByWatermark"] for op in operators) == 0
    kept = [op["numRowsTotal"] for op in operators if "transformWithState" in op["operatorName"]]
    assert max(kept) >= 3
    assert kept[-1] == 0
