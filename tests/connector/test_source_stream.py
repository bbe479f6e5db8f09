"""A stream reads the same records as a batch, whatever the limits, restarts and ways files grow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbor2
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import window

from tests.waiting import wait_for

pytestmark = pytest.mark.spark

END = 253_402_214_400_000_000
Rows = list[dict[str, Any]]


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def rejected(folder: Path) -> Rows:
    return [
        json.loads(line)
        for file in sorted(folder.glob("*"))
        for line in file.read_text().splitlines()
    ]


def numbers(rows: Rows) -> list[int]:
    return [row["i"] for row in rows]


FILES = {
    "json": b"".join(b'{"i": %d, "s": "%s"}\r\n\n' % (i, b"x" * (i % 17)) for i in range(60))
    + b'[{"i": 60}, {"i": 61}]',
    "csv": b"\xef\xbb\xbf\n\ni,s\n"
    + b"".join(b'%d,"%s"\n' % (i, b"," * (i % 17)) for i in range(62)),
    "cbor": b"".join(cbor2.dumps({"i": i, "s": "\n" * (i % 17)}) for i in range(62)),
    "senml": b"".join(
        b'%d,{"e":[{"n":"i","v":"%d"}],"bt":%d}\n' % (i, i, 10**12 + i) for i in range(62)
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_batch_is_whole_whatever_the_split(batch: Callable, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "in"
    path.write_bytes(FILES[kind])
    for split in (1, 2, 7, 20, 64, 100, 333, 10_000):
        rows = batch(path, kind, "i long, _error", splitBytes=split)
        assert numbers(rows) == list(range(62)), split


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(("limit", "split"), [(300, 50), (700, 1), (1_000_000, 100)])
def test_stream_is_batch(
    stream: Callable, tmp_path: Path, kind: str, limit: int, split: int
) -> None:
    path = tmp_path / "in"
    path.write_bytes(FILES[kind])
    rows = stream(path, kind, "i long, _error", maxBytesPerTrigger=limit, splitBytes=split)
    assert numbers(rows) == list(range(62))
    batches = len(FILES[kind]) // limit
    assert batches // 2 <= rows[-1]["_batch"] <= batches


def test_single_bytes_per_batch(stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", *({"i": i} for i in range(6)))
    rows = stream(path, "json", "i long", maxBytesPerTrigger=1)
    assert [(row["i"], row["_batch"]) for row in rows] == [(i, i) for i in range(6)]


def test_folder_in_name_order(batch: Callable, stream: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name, i in [("b", 2), ("a", 1), ("c", 3), ("_hidden", 8), (".hidden", 9)]:
        write(folder / name, {"i": i})
    (folder / "inner").mkdir()
    write(folder / "inner" / "d", {"i": 7})
    assert numbers(batch(folder, "json", "i long")) == [1, 2, 3]
    assert numbers(batch(folder, "json", "i long", splitBytes=1)) == [1, 2, 3]
    assert numbers(stream(folder, "json", "i long", maxBytesPerTrigger=1)) == [1, 2, 3]


def test_restart_continues_where_it_was(stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", *({"i": i} for i in range(5)))
    kept = {"checkpoint": tmp_path / "kept", "maxBytesPerTrigger": 20, "tail": True}
    assert numbers(stream(path, "json", "i long", **kept)) == list(range(5))
    assert stream(path, "json", "i long", **kept) == []
    append(path, '{"i": 5}\n{"i": 6')
    assert numbers(stream(path, "json", "i long", **kept)) == [5]
    append(path, "0}\n")
    assert numbers(stream(path, "json", "i long", **kept)) == [60]


def test_failed_batch_repeats_itself(spark: SparkSession, start: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", *({"i": i} for i in range(40)))
    spark.sparkContext._jvm.io.fogline.source.SampleControl.set("repeat", 0.5)
    options = {
        "checkpoint": tmp_path / "kept",
        "control": "repeat",
        "rejects": tmp_path / "rejects",
    }
    append(path, "bad\nworse\n")

    class Crashing(list):  # type: ignore[type-arg]
        def extend(self, rows: Any) -> None:
            super().extend(rows)
            raise RuntimeError("crash")

    first: Rows = Crashing()
    with pytest.raises(Exception, match="crash"):
        start(first, path, "json", "i long, _fraction", **options).awaitTermination(60)
    kept = rejected(tmp_path / "rejects")
    spark.sparkContext._jvm.io.fogline.source.SampleControl.set("repeat", 1.0)
    again: Rows = []
    start(again, path, "json", "i long, _fraction", **options).awaitTermination(60)
    assert 0 < len(first) < 40
    assert again == first
    assert rejected(tmp_path / "rejects") == kept


def test_tail_waits_for_whole_lines_and_the_end(start: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", {"i": 0})
    rows: Rows = []
    query = start(rows, path, "json", "i long, _error", now=False, tail=True, flush=True)
    wait_for(lambda: numbers(rows) == [0])
    append(path, '{"i": 1}\n{"i"')
    wait_for(lambda: numbers(rows) == [0, 1])
    append(path, ": 2}\n")
    wait_for(lambda: numbers(rows) == [0, 1, 2])
    append(path, '{"i": 3}')
    query.processAllAvailable()
    assert numbers(rows) == [0, 1, 2]
    path.with_name("in.end").touch()
    wait_for(lambda: len(rows) == 5)
    query.processAllAvailable()
    assert [row["i"] for row in rows] == [0, 1, 2, 3, None]
    assert rows[-1]["_time"] == END
    assert query.exception() is None


def test_tail_finds_new_files(start: Callable, tmp_path: Path) -> None:
    write(tmp_path / "in" / "a", {"i": 0})
    rows: Rows = []
    start(rows, tmp_path / "in", "json", "i long", now=False, tail=True)
    wait_for(lambda: numbers(rows) == [0])
    write(tmp_path / "in" / "b", {"i": 1})
    wait_for(lambda: numbers(rows) == [0, 1])
    append(tmp_path / "in" / "a", '{"i": 2}\n')
    wait_for(lambda: numbers(rows) == [0, 1, 2])


def test_tail_of_cbor_waits_for_whole_items(stream: Callable, tmp_path: Path) -> None:
    path = tmp_path / "in"
    item = cbor2.dumps({"i": 1})
    path.write_bytes(item + item[:2])
    kept = {"checkpoint": tmp_path / "kept", "tail": True}
    assert numbers(stream(path, "cbor", "i long", **kept)) == [1]
    path.write_bytes(item + item + item[:3])
    assert numbers(stream(path, "cbor", "i long", **kept)) == [1]
    path.with_name("in.end").touch()
    assert [row["_error"] is None for row in stream(path, "cbor", "i long, _error", **kept)] == [
        False
    ]


def test_end_row_comes_once_and_last(batch: Callable, stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", *({"i": i} for i in range(4)))
    keep = {"op": "<", "column": "i", "value": 3}
    options = {
        "flush": True,
        "filter": keep,
        "checkpoint": tmp_path / "kept",
        "maxBytesPerTrigger": 10,
    }
    fields = "i long, _error, _raw, _hash long, _fraction double"
    rows = stream(path, "json", fields, **options)
    assert numbers(rows) == [0, 1, 2, None]
    last = {name: value for name, value in rows[-1].items() if name not in ("_time", "_batch")}
    assert rows[-1]["_time"] == END
    assert set(last.values()) == {None}
    assert stream(path, "json", fields, **options) == []
    assert numbers(batch(path, "json", "i long", flush=True)) == [0, 1, 2, 3]


def test_end_row_in_a_batch_of_its_own(stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", {"i": 0})
    kept = {"checkpoint": tmp_path / "kept", "tail": True, "flush": True}
    assert numbers(stream(path, "json", "i long", **kept)) == [0]
    path.with_name("in.end").touch()
    assert [(row["i"], row["_time"]) for row in stream(path, "json", "i long", **kept)] == [
        (None, END)
    ]
    empty = write(tmp_path / "empty")
    assert [row["_time"] for row in stream(empty, "json", "i long", flush=True)] == [END]


def test_end_row_closes_windows(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "in", *({"t": 1_700_000_000 + i} for i in range(25)))
    fields = json.dumps([{"name": "t", "type": "long"}])
    reader = spark.readStream.format("fogline").option("format", "json").option("fields", fields)
    frame = (
        reader.option("time", "t")
        .option("flush", "true")
        .option("maxBytesPerTrigger", "200")
        .load(str(path))
    )
    windows = (
        frame.withWatermark("_time", "1 second").groupBy(window("_time", "10 seconds")).count()
    )
    query = windows.writeStream.format("memory").queryName("closed").outputMode("append")
    query.option("checkpointLocation", str(tmp_path / "kept")).trigger(
        availableNow=True
    ).start().awaitTermination(120)
    assert [row["count"] for row in spark.table("closed").orderBy("window").collect()] == [
        10,
        10,
        5,
    ]


def late_stream() -> list[dict[str, int]]:
    times = [100, 103, 101, 110, 105, 111, 99, 120, 117, 118, 119, 90]
    return [{"i": i, "t": at} for i, at in enumerate(times)]


def test_late_records_are_diverted(stream: Callable, start: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", *late_stream())
    options = {
        "time": "t",
        "lateness": 5000,
        "rejects": tmp_path / "rejects",
        "maxBytesPerTrigger": 1,
        "stream": "s",
    }
    rows: Rows = []
    query = start(rows, path, "json", "i long", **options)
    query.awaitTermination(60)
    expected, newest = [], None
    for record in late_stream():
        if newest is None or record["t"] >= newest - 5:
            expected.append(record["i"])
        newest = max(record["t"], newest or 0)
    assert numbers(rows) == expected
    kept = rejected(tmp_path / "rejects")
    assert sorted(json.loads(item["record"])["i"] for item in kept) == sorted(
        set(range(12)) - set(expected)
    )
    assert {item["kind"] for item in kept} == {"late"}
    metrics = query.lastProgress["sources"][0]["metrics"]
    assert {name: int(value) for name, value in metrics.items()} == {
        "records": 12,
        "bad": 0,
        "lag": 0,
        "late": 12 - len(expected),
        "bytes": path.stat().st_size,
    }


def test_nothing_is_late_within_a_batch_or_without_lateness(
    batch: Callable, stream: Callable, tmp_path: Path
) -> None:
    path = write(tmp_path / "in", *late_stream())
    assert len(stream(path, "json", "i long", time="t", lateness=0)) == 12
    assert len(stream(path, "json", "i long", time="t", maxBytesPerTrigger=1)) == 12
    assert len(batch(path, "json", "i long", time="t", lateness=0)) == 12


def test_lateness_survives_a_restart(stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", {"i": 0, "t": 100}, {"i": 1, "t": 200})
    kept = {"checkpoint": tmp_path / "kept", "tail": True, "time": "t", "lateness": 10_000}
    assert numbers(stream(path, "json", "i long", **kept)) == [0, 1]
    append(path, '{"i": 2, "t": 150}\n{"i": 3, "t": 195}\n')
    assert numbers(stream(path, "json", "i long", **kept)) == [3]


def test_filtered_records_still_move_the_newest_time(stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", {"i": 9, "t": 200}, {"i": 1, "t": 100}, {"i": 2, "t": 199})
    keep = {"op": "<", "column": "i", "value": 5}
    options = {"time": "t", "lateness": 5000, "maxBytesPerTrigger": 1, "filter": keep}
    assert numbers(stream(path, "json", "i long", **options)) == [2]


@pytest.mark.parametrize("split", [1, 10_000])
def test_rejects_are_kept_once(
    start: Callable, batch: Callable, tmp_path: Path, split: int
) -> None:
    path = write(tmp_path / "in", *({"i": i} for i in range(30)))
    path.write_text(path.read_text().replace('{"i": 7}', "seven").replace('{"i": 23}', "{twenty}"))
    options = {
        "rejects": tmp_path / "rejects",
        "stream": "my stream",
        "maxBytesPerTrigger": 100,
        "splitBytes": split,
    }
    rows: Rows = []
    query = start(rows, path, "json", "i long", **options)
    query.awaitTermination(60)
    assert numbers(rows) == [i for i in range(30) if i not in (7, 23)]
    assert sorted(item["record"] for item in rejected(tmp_path / "rejects")) == [
        "seven",
        "{twenty}",
    ]
    assert all(file.name.startswith("my_stream-in-") for file in (tmp_path / "rejects").iterdir())
    assert int(query.lastProgress["sources"][0]["metrics"]["bad"]) == 2
    assert int(query.lastProgress["sources"][0]["metrics"]["records"]) == 28


def test_shrunk_file_is_an_error(stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path / "in", {"i": 0}, {"i": 1})
    kept = {"checkpoint": tmp_path / "kept", "tail": True}
    stream(path, "json", "i long", **kept)
    write(path, {"i": 0})
    with pytest.raises(Exception, match="shorter than what was already read"):
        stream(path, "json", "i long", **kept)
