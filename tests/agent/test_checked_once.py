"""A query is checked once by the supervisor and once by the engine, however it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.engine.jobs import EngineJob, Workplace
from fogline.agent.jobs import job as module
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.common.settings import Settings
from fogline.log import SiteLog
from fogline.model.jobs import Assignment, Query
from fogline.model.sites import JobStatus, QueryStatus
from fogline.plan.analysis.query_file import LoadedQuery
from fogline.spark.jobs import site_job

pytestmark = pytest.mark.spark
TEXT = """
s = STREAM FROM mqtt(topic="t", time="at");
a = COMPUTE AVG(x, 5 s) EVERY 5 s;
b = COMPUTE MAX(x, 5 s) EVERY 5 s;
"""
JOB = Assignment("j", "p", Query(TEXT))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were checked."""
    found: list[str] = []
    check = module.check_text

    def count(text: str, settings: Settings) -> LoadedQuery:
        found.append(text)
        return check(text, settings)

    monkeypatch.setattr(module, "check_text", count)
    return found


def test_by_the_supervisor(jobs: SiteJobs, checked: list[str]) -> None:
    (job,) = jobs.check([JOB])
    assert jobs.install([job])
    assert jobs.current() == [job]
    assert checked == [TEXT]


class RunningJob:
    """In place of one on Spark."""

    def __init__(self, spark: object, spec: site_job.JobSpec) -> None:
        assert [emit.name for emit in spec.plan.emits] == ["a", "b"]

    def keep_running(self) -> None: ...

    def status(self) -> JobStatus:
        return JobStatus("j", (QueryStatus("windows", "running"),))

    def needed_positions(self) -> Mapping[str, int]:
        return {}

    def with_parameters(self, parameters: Mapping[str, Any]) -> None: ...

    def stop(self) -> None: ...


def test_by_the_engine(
    tmp_path: Path, logs: SiteLog, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_job, "SiteJob", RunningJob)
    place = Workplace(None, tmp_path, logs, lambda *_: None, 1000, 5000)  # type: ignore[arg-type]
    job = EngineJob(place, JOB, "")
    job.tick()
    assert job.status.state == "running"
    assert checked == [TEXT]
    job.assign(replace(JOB, muted=("a",), parameters={"x": 1}), "")
    job.tick()
    assert job.status.state == "running"
    assert checked == [TEXT], "what it computes is the same"
    assert "insights/j/a" in (tmp_path / "jobs" / "j" / "muted").read_text(encoding="utf-8")
    other = Query(TEXT.replace("AVG", "MIN"))
    job.assign(replace(JOB, work=other), "")
    job.tick()
    assert checked == [TEXT, other.text]
