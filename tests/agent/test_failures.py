"""What is told of a failure: what the user's code said, where it said something."""

from __future__ import annotations

from pathlib import Path

import pytest

from fogline.agent.engine.jobs import EngineJob, Workplace
from fogline.log import SiteLog
from fogline.model.jobs import Assignment, Code, Place
from fogline.model.sites import JobStatus, QueryStatus
from fogline.spark.session.failures import python_traceback, summarise_failure

FAILURE = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/site/packages/abc", line 7, in run
    return mark(x)
  File "/site/packages/abc", line 3, in mark
    raise ValueError("boom")
ValueError: boom

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: java.lang.RuntimeException: something of Spark's own
"""


def test_an_exception_of_the_users_code_is_told_with_its_place() -> None:
    assert str(summarise_failure(Exception(FAILURE))) == "ValueError: boom (abc, line 3, in mark)"
    found = python_traceback(Exception(FAILURE)).splitlines()
    assert (found[0], found[-1]) == ("Traceback (most recent call last):", "ValueError: boom")
    assert len(found) == 6


def test_other_failures_are_told_by_their_cause() -> None:
    text = "it failed\n\tat x\nCaused by: a\nCaused by: java.io.IOException: disk\n"
    assert str(summarise_failure(Exception(text))) == "Caused by: java.io.IOException: disk"
    assert str(summarise_failure(Exception("plain"))) == "plain"
    assert python_traceback(Exception(text)) == ""


def test_the_whole_traceback_is_among_what_the_job_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assignment = Assignment("j", "p", Code("job:run", "0" * 64, "job.py"), (Place("in"),))
    place = Workplace(None, tmp_path, SiteLog(tmp_path / "log"), lambda *_: None, 50, 5000)  # type: ignore[arg-type]
    job = EngineJob(place, assignment, "")
    detail = python_traceback(Exception(FAILURE))
    job._set_status(JobStatus("j", (QueryStatus("code", "failed", "boom", detail=detail),)))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 7
    assert all("job j:" in line for line in said)
    assert said[-1].endswith("ValueError: boom")
