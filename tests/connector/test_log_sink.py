"""The sink into the site log: exactly once in micro-batches, whatever Spark runs again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fogline.common.state_files import write_state
from fogline.log import SiteLog

pytestmark = pytest.mark.spark


@pytest.fixture
def site(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=0)


def source(spark: SparkSession, folder: Path) -> DataFrame:
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    topic = F.concat(F.lit("out/"), F.substring("value", 1, 1))
    return lines.select(
        F.lit("out/all").alias("log"),
        topic.alias("topic"),
        F.col("value").cast("binary").alias("payload"),
    )


def run(frame: DataFrame, site: SiteLog, checkpoint: Path, muted: Path | None = None) -> None:
    writer = frame.writeStream.format("fogline-log").option("path", str(site.root))
    writer = writer.option("muted", str(muted)) if muted else writer
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination(60)


def add(folder: Path, name: str, lines: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def records(site: SiteLog, topic: str) -> list[tuple[str, str]]:
    def read() -> Iterator[tuple[str, str]]:
        with site.reader(topic) as reader:
            position = reader.first()
            while position < reader.committed():
                found, position = reader.read(position)
                yield from ((t, p.decode()) for t, p in found)

    return list(read())


def test_rows_arrive_with_their_topics(spark: SparkSession, site: SiteLog, tmp_path: Path) -> None:
    add(tmp_path / "in", "1", ["a1", "b2"])
    run(source(spark, tmp_path / "in"), site, tmp_path / "checkpoint")
    assert sorted(records(site, "out/all")) == [("out/a", "a1"), ("out/b", "b2")]


def test_a_batch_that_is_run_again_changes_nothing(
    spark: SparkSession, site: SiteLog, tmp_path: Path
) -> None:
    add(tmp_path / "in", "1", ["a1", "a2"])
    add(tmp_path / "in", "2", ["a3"])
    checkpoint = tmp_path / "checkpoint"
    run(source(spark, tmp_path / "in"), site, checkpoint)
    before = records(site, "out/all")
    assert len(before) == 3
    # As after a crash between the sink's commit and Spark's: the last batch is not known as done.
    last = max(int(p.name) for p in (checkpoint / "commits").iterdir() if p.name.isdigit())
    for path in (checkpoint / "commits").glob(f"*{last}*"):
        path.unlink()
    run(source(spark, tmp_path / "in"), site, checkpoint)
    assert records(site, "out/all") == before
    add(tmp_path / "in", "3", ["a4"])
    run(source(spark, tmp_path / "in"), site, checkpoint)
    assert records(site, "out/all") == [*before, ("out/a", "a4")]


def test_another_query_is_another_source(
    spark: SparkSession, site: SiteLog, tmp_path: Path
) -> None:
    add(tmp_path / "in", "1", ["a1"])
    run(source(spark, tmp_path / "in"), site, tmp_path / "one")
    run(source(spark, tmp_path / "in"), site, tmp_path / "two")
    assert records(site, "out/all") == [("out/a", "a1")] * 2


def test_wrong_columns_are_refused(spark: SparkSession, site: SiteLog, tmp_path: Path) -> None:
    add(tmp_path / "in", "1", ["a1"])
    wrong = source(spark, tmp_path / "in").drop("topic")
    with pytest.raises(Exception, match="log, topic, payload"):
        run(wrong, site, tmp_path / "checkpoint")


def test_large_and_odd_payloads(spark: SparkSession, site: SiteLog, tmp_path: Path) -> None:
    lines = ["x" * 3_000_000, "é\u2028", json.dumps({"a": "\n"})]
    add(tmp_path / "in", "1", lines)
    run(source(spark, tmp_path / "in"), site, tmp_path / "checkpoint")
    assert sorted(p for _, p in records(site, "out/all")) == sorted(lines)


def test_what_is_muted_is_dropped_until_it_is_heard_again(
    spark: SparkSession, site: SiteLog, tmp_path: Path
) -> None:
    muted = tmp_path / "muted"
    for number, text in enumerate(["", "out/b\nout/c\n", "out/a\n"]):
        write_state(muted, text)
        add(tmp_path / "in", str(number), [f"a{number}", f"b{number}"])
        frame = source(spark, tmp_path / "in").withColumn("log", F.col("topic"))
        run(frame, site, tmp_path / "checkpoint", muted)
    assert records(site, "out/a") == [("out/a", "a0"), ("out/a", "a1")]
    assert records(site, "out/b") == [("out/b", "b0"), ("out/b", "b2")]
