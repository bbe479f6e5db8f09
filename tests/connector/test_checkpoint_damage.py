"""A damaged checkpoint ends its query once, with a problem that names the file, and never gives a
wrong result."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from fogline.spark.jobs.checkpoint_damage import find_damage
from fogline.spark.jobs.site_query import SiteQuery
from tests.damage import DAMAGES
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

Counts = dict[str, int]
LINES = 4
KEYS = ("apple", "pear", "plum")


class Bench:
    """A query that counts lines by key, over three batches; its checkpoint is made once."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.whole = folder / "whole"
        for number in range(3):
            self.add(number)
            self.start(self.whole, {}).awaitTermination(60)

    def add(self, number: int) -> None:
        lines = "".join(f"{key}\n" for key in KEYS for _ in range(LINES))
        (self._folder / "in").mkdir(exist_ok=True)
        (self._folder / "in" / str(number)).write_text(lines, encoding="utf-8")

    def start(self, checkpoint: Path, counts: Counts) -> StreamingQuery:
        def keep(frame: DataFrame, _: int) -> None:
            counts.update({row["value"]: row["count"] for row in frame.collect()})

        lines = self._spark.readStream.text(str(self._folder / "in"))
        writer = lines.groupBy("value").agg(F.count("*").alias("count")).writeStream
        writer = writer.foreachBatch(keep).outputMode("update").trigger(availableNow=True)
        return writer.option("checkpointLocation", str(checkpoint)).start()


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = Bench(spark, tmp_path_factory.mktemp("bench"))
    made.add(3)
    return made


FILES = {
    "offsets": "offsets/2",
    "commits": "commits/2",
    "metadata": "metadata",
    "source": "sources/0/2",
    "state": "state/0/*/3.changelog",
    "state schema": "state/0/0/_metadata/schema",
}


@pytest.mark.parametrize("damage", ["flipped bit", "zeroed page", "half", "doubled"])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_checkpoint_gives_no_wrong_result(
    bench: Bench, tmp_path: Path, file: str, damage: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(bench.whole, checkpoint)
    assert not list(find_damage(checkpoint))
    damaged = sorted(checkpoint.glob(FILES[file]))
    for path in damaged:
        DAMAGES[damage](path)
    assert [found.file for found in find_damage(checkpoint)] == damaged
    counts: Counts = {}
    starts = []

    def start() -> StreamingQuery:
        starts.append(None)
        return bench.start(checkpoint, counts)

    query = SiteQuery("count", start, 1000, checkpoint=checkpoint)
    wait_for(_ended(query), 60, "end")
    problem = query.status().problem
    assert counts == {}
    assert str(damaged[0]) in problem
    assert f"move {checkpoint} away" in problem
    for _ in range(3):
        query._due = 0.0
        query.keep_running()
    assert len(starts) == 1


def test_a_checkpoint_that_is_restored_goes_on(bench: Bench, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(bench.whole, checkpoint)
    DAMAGES["flipped bit"](checkpoint / "offsets" / "2")
    counts: Counts = {}
    query = SiteQuery("count", lambda: bench.start(checkpoint, counts), 1000, checkpoint=checkpoint)
    query.keep_running()
    wait_for(_ended(query), 60, "end")
    shutil.copy(bench.whole / "offsets" / "2", checkpoint / "offsets" / "2")
    query._due = 0.0
    query.keep_running()
    wait_for(lambda: counts == dict.fromkeys(KEYS, 4 * LINES), 60, "counts")


def _ended(query: SiteQuery) -> Callable[[], bool]:
    def look() -> bool:
        query.keep_running()
        return bool(query.status().problem)

    return look
