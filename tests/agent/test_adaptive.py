"""Insights with MAX_ERROR at a site: their results pass through Python into the logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fogline.agent.engine.process import Engine
from fogline.common import settings
from fogline.log import SiteLog
from fogline.plan.analysis.query_file import check_text
from fogline.plan.rules import optimise
from fogline.spark.jobs.site_job import JobSpec, SiteJob
from tests.agent.test_engine import make_config
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

QUERY = """
s = STREAM FROM mqtt(topic="t", format="json", time="at");
mean = COMPUTE AVG(x, 2 s) BY room EVERY 2 s WITH MAX_ERROR {bound} TO mqtt(topic="cmd/{{room}}");
"""
START = 1_700_000_000_000


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    config = replace(make_config(tmp_path), logs=str(tmp_path / "log"))
    return Engine(config, lambda _status: None)


@pytest.fixture
def logs(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=0)


def job(spark: SparkSession, engine: Engine, logs: SiteLog, folder: Path, bound: float) -> SiteJob:
    plan, _ = optimise(check_text(QUERY.format(bound=bound), settings.load()).plan)
    where = (folder / "job", logs.root, logs.folder)
    return SiteJob(spark, JobSpec("j", plan, f"c{bound}", *where, engine._append, trigger_ms=50))


def records(logs: SiteLog, log: str) -> list[tuple[str, bytes]]:
    if not logs.folder(log).exists():
        return []
    with logs.reader(log) as reader:
        return list(reader.read(0)[0])


def run_until_more(running: SiteJob, logs: SiteLog, count: int) -> None:
    def more() -> bool:
        running.keep_running()
        assert running.status().state != "failed", running.status()
        return len(records(logs, "to/j/mean")) >= count

    try:
        wait_for(more, 60, f"{count} results")
    finally:
        running.stop()


def test_results_come_also_after_the_query_changed_and_are_sent(
    spark: SparkSession, engine: Engine, logs: SiteLog, tmp_path: Path
) -> None:
    """A new checkpoint counts its batches from 0; it is another writer in the log."""
    with logs.writer("t") as writer:
        for n in range(30):
            row = {"at": START + 400 * n, "x": n, "room": "a"}
            writer.append([("t", json.dumps(row).encode())])
            writer.commit()
    run_until_more(job(spark, engine, logs, tmp_path, 0.1), logs, 5)
    first = len(records(logs, "insights/j/mean"))
    run_until_more(job(spark, engine, logs, tmp_path, 0.2), logs, first + 5)
    assert len(records(logs, "insights/j/mean")) >= first + 5
    assert {topic for topic, _ in records(logs, "to/j/mean")} == {"cmd/a"}
    assert {topic for topic, _ in records(logs, "insights/j/mean")} == {"insights/j/mean"}
    engine._close_writers()
    for log in ("insights/j/mean", "to/j/mean"):
        logs.writer(log).close()
