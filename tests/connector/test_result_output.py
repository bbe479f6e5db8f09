"""Results as lines: in order, whatever their number and size, and with a reader that fails."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fogline.spark.run.result_output import ResultOutput, stream_writer

pytestmark = pytest.mark.spark


def _frame(spark: SparkSession, count: int, partitions: int, size: int = 0) -> DataFrame:
    """Results whose order is not that of their partitions."""
    number = F.col("id") * 7919 % count
    record = F.format_string('{"n":%d,"more":"%s"}', number, F.repeat(F.lit("x"), size))
    return spark.range(0, count, 1, partitions).select(
        (number / F.lit(10)).cast("bigint").alias("end"),
        F.when(number % 2 == 0, "even").otherwise("odd").alias("insight"),
        F.format_string('{"key":"%04d"}', 1000 - number % 1000).alias("key"),
        record.alias("record"),
    )


def _collect(frame: DataFrame, folder: Path) -> tuple[list[str], dict[str, int]]:
    blocks: list[bytes] = []
    with ResultOutput(frame.sparkSession, folder, blocks.append) as output:
        output.write(frame)
    assert all(block.endswith(b"\n") for block in blocks)
    return b"".join(blocks).decode().splitlines(), dict(output.counts())


@pytest.mark.parametrize(
    ("count", "partitions", "size"),
    [(0, 1, 0), (1, 3, 0), (5_000, 1, 0), (5_000, 7, 0), (40_000, 3, 200), (5, 2, 3 << 20)],
    ids=["none", "one", "one run", "seven runs", "runs in files", "records above any buffer"],
)
def test_results_come_in_order_of_end_insight_key_and_record(
    spark: SparkSession, tmp_path: Path, count: int, partitions: int, size: int
) -> None:
    frame = _frame(spark, count, partitions, size)
    found, counts = _collect(frame, tmp_path)
    rows = sorted((r["end"], r["insight"], r["key"], r["record"]) for r in frame.collect())
    assert found == [record for *_, record in rows]
    assert sum(counts.values()) == count
    assert counts == {name: counts[name] for name in ("even", "odd") if counts.get(name)}
    assert [path.name for path in tmp_path.iterdir()] == ["results"], "runs are removed"


def test_a_stream_writes_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    lines = tmp_path / "in"
    lines.mkdir()
    blocks: list[bytes] = []
    folder = tmp_path / "out"
    folder.mkdir()
    with ResultOutput(spark, folder, blocks.append) as output:
        for batch in range(3):
            text = "".join(f"{batch * 100 + n}\n" for n in reversed(range(50)))
            (lines / f"{batch}.txt").write_text(text)
            frame = spark.readStream.text(str(lines)).select(
                F.col("value").cast("bigint").alias("end"),
                F.lit("i").alias("insight"),
                F.lit("{}").alias("key"),
                F.col("value").alias("record"),
            )
            writer = stream_writer(frame, output).option(
                "checkpointLocation", str(tmp_path / "checkpoint")
            )
            writer.trigger(availableNow=True).start().awaitTermination()
    expected = [batch * 100 + n for batch in range(3) for n in range(50)]
    assert [int(line) for line in b"".join(blocks).split()] == expected


def test_a_reader_that_fails_does_not_hold_up_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen: list[bytes] = []

    def refuse(lines: bytes) -> None:
        seen.append(lines)
        raise BrokenPipeError

    with ResultOutput(spark, tmp_path, refuse) as output:
        output.write(_frame(spark, 40_000, 2, 200))
    assert isinstance(output.failure, BrokenPipeError)
    assert len(seen) == 1


def test_a_query_can_be_stopped_while_nobody_reads(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines").write_text("".join(f"{n}\n" for n in range(2_000)))
    frame = spark.readStream.text(str(tmp_path / "in")).select(
        F.col("value").cast("bigint").alias("end"),
        F.lit("i").alias("insight"),
        F.lit("{}").alias("key"),
        F.to_json(F.struct(F.repeat(F.lit("x"), 10_000).alias("x"))).alias("record"),
    )
    arrived, go_on = threading.Event(), threading.Event()
    blocks: list[bytes] = []

    def read_slowly(lines: bytes) -> None:
        blocks.append(lines)
        arrived.set()
        go_on.wait()

    with ResultOutput(spark, tmp_path, read_slowly) as output:
        writer = stream_writer(frame, output)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert arrived.wait(60)
        query.stop()
        go_on.set()
    lines = b"".join(blocks).splitlines()
    assert 0 < len(lines) < 2_000
    assert all(len(json.loads(line)["x"]) == 10_000 for line in lines), "whole lines only"
