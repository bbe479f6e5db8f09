"""A query cut into its two stages gives what the whole gives: the same windows, the same values."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.common import settings
from fogline.log import SiteLog
from fogline.plan.analysis.query_file import check_text
from fogline.plan.rules import optimise
from fogline.spark.jobs.first_stage_job import FirstStageJob
from fogline.spark.jobs.site_job import JobSpec, SiteJob
from tests.agent.kit import payloads
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

QUERY = """
s = STREAM FROM mqtt(topic="t", format="json", time="at", lateness="2 s");

mean = COMPUTE AVG(x, 4 s) BY key EVERY 2 s;
spread = COMPUTE SDEV(x, 6 s) + SLOPE(x, 6 s) BY key EVERY 2 s;
middle = COMPUTE MEDIAN(x, 4 s) BY key EVERY 2 s;
total = COMPUTE COUNT(x WHEN x > 5, 10 s) EVERY 10 s;
peak = COMPUTE MAX(mean, 6 s) BY key EVERY 6 s;
"""
START = 1_700_000_000_000


def readings(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    made = [
        {"at": START + i * 40 + rng.randrange(400), "key": rng.choice("abc"), "x": rng.random() * 9}
        for i in range(1500)
    ]
    return [*made, {"at": START + 120_000, "key": "end", "x": 1.0}]


def fill(logs: SiteLog, topic: str, messages: list[bytes]) -> None:
    with logs.writer(topic) as writer:
        for at in range(0, len(messages), 100):
            writer.append([(topic, m) for m in messages[at : at + 100]])
            writer.commit()


def records(logs: SiteLog, topic: str) -> list[bytes]:
    with logs.reader(topic) as reader:
        return list(payloads(reader))


class Place:
    """A site of its own: its logs, and one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = SiteLog(folder / "log", min_free_bytes=1)
        self._epochs: dict[tuple[str, int], int] = {}

    def spec(self, name: str, **more: Any) -> JobSpec:
        plan, _ = optimise(check_text(QUERY, settings.load()).plan)
        return JobSpec(
            name,
            plan,
            "c",
            self.folder / name,
            self.logs.root,
            self.logs.folder,
            self.append,
            trigger_ms=50,
            max_bytes=20_000,
            **more,
        )

    def append(self, log: str, source: int, epoch: int, records: Any) -> None:
        if epoch > self._epochs.get((log, source), -1):
            self._epochs[log, source] = epoch
            fill(self.logs, log, [payload for _, payload in records])

    def results(self, job: str) -> set[str]:
        names = ("mean", "spread", "middle", "total", "peak")
        found = [r for n in names for r in records(self.logs, f"insights/{job}/{n}")]
        assert len(found) == len(set(found))
        return {rounded(json.loads(r)) for r in found}


def rounded(record: dict[str, Any]) -> str:
    return json.dumps(record | {"value": round(record["value"], 9)}, sort_keys=True)


def run_until(job: Any, done: Any) -> None:
    def ready() -> bool:
        job.keep_running()
        assert job.status().state != "failed", job.status()
        return bool(done())

    wait_for(ready, 120, "all results")


@pytest.mark.parametrize("parts", [1, 2])
def test_two_stages_are_one_query(tmp_path: Path, spark: SparkSession, parts: int) -> None:
    rows = readings(parts)
    whole = Place(tmp_path / "whole")
    fill(whole.logs, "t", [json.dumps(r).encode() for r in rows])
    job = SiteJob(spark, whole.spec("j"))
    run_until(job, lambda: caught_up(job))
    expected = whole.results("j")
    job.stop()
    assert len(expected) > 100

    second = Place(tmp_path / "second")
    origins = [Place(tmp_path / f"first{i}") for i in range(parts)]
    for i, origin in enumerate(origins):
        own = [r for r in rows if r["key"] == "end" or hash_of(r) % parts == i]
        fill(origin.logs, "t", [json.dumps(r).encode() for r in own])
        first = FirstStageJob(spark, origin.spec("f", reads=("t",)))
        run_until(first, lambda: caught_up(first))  # noqa: B023
        first.stop()
        panes = records(origin.logs, "out/f")
        assert panes
        fill(second.logs, f"panes/{i}", panes)
    reads = tuple(f"panes/{i}" for i in range(parts))
    last = SiteJob(spark, second.spec("j", reads=reads, second=True))
    run_until(last, lambda: caught_up(last))
    found = second.results("j")
    last.stop()
    assert found == expected


def hash_of(row: dict[str, Any]) -> int:
    return int(row["at"]) // 7


def caught_up(job: Any) -> bool:
    """Everything is read, and a batch without news came after it."""
    queries = job.status().queries
    return all(q.batches > 2 and q.lag_bytes == 0 and q.rows_per_second == 0 for q in queries)
