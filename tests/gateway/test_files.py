"""The files of a gateway's jobs: known without looking, forgotten without a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from fogline.gateway.jobs.checkpoint import Checkpoint
from fogline.gateway.jobs.files import JobFiles
from fogline.log import SiteLog
from fogline.model.sites import bad_log, late_log, out_log


@pytest.fixture
def logs(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "logs", min_free_bytes=0)


def make(files: JobFiles, *names: str) -> None:
    for name in names:
        files.writer(name).close()


def of(job: str) -> tuple[str, ...]:
    return out_log(job), bad_log(job, "s"), late_log(job, "s"), late_log(job, "another stream")


def on_disk(logs: SiteLog) -> list[str]:
    return logs.topics()


def lives_of(files: JobFiles, job: str) -> bool:
    known = files.checkpoint(job)
    return known is not None and known.life == f"life of {job}"


NAMES = ["j", "a b", "%2F", "ü" * 60, "x" * 120]


@pytest.fixture(params=["at once", "after a restart"])
def files(request: pytest.FixtureRequest, tmp_path: Path, logs: SiteLog) -> JobFiles:
    made = JobFiles(tmp_path, logs)
    for name in NAMES:
        make(made, *of(name))
        made.keep(name, Checkpoint(f"life of {name}", 1))
    return made if request.param == "at once" else JobFiles(tmp_path, logs)


@pytest.mark.parametrize("name", NAMES)
def test_all_files_of_a_job_go_and_no_other(files: JobFiles, logs: SiteLog, name: str) -> None:
    others = sorted(log for other in NAMES if other != name for log in of(other))
    files.forget(name)
    again = JobFiles(logs.root.parent, logs)
    assert again.checkpoint(name) is None
    assert files.topics() == on_disk(logs) == others
    assert files.checkpoint(name) is None
    assert all(lives_of(f, other) for f in (files, again) for other in NAMES if other != name)
    assert not any(files.has(log) for log in of(name))


def test_names_that_begin_alike_are_different_jobs(tmp_path: Path, logs: SiteLog) -> None:
    files = JobFiles(tmp_path, logs)
    make(files, *of("j"), *of("jj"))
    files.forget("j")
    assert files.topics() == on_disk(logs) == sorted(of("jj"))


def test_a_job_without_files_is_forgotten_too(tmp_path: Path, logs: SiteLog) -> None:
    files = JobFiles(tmp_path, logs)
    files.forget("nobody")
    files.forget("nobody")
    assert not logs.root.exists()


def test_a_log_that_was_removed_is_made_again(tmp_path: Path, logs: SiteLog) -> None:
    files = JobFiles(tmp_path, logs)
    for _ in range(2):
        make(files, *of("j"))
        assert files.has(out_log("j"))
        files.forget("j")
        assert not files.has(out_log("j"))
    assert on_disk(logs) == []


def test_the_disk_is_not_asked_for_a_job_without_files(
    tmp_path: Path, logs: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = JobFiles(tmp_path, logs)
    asked: list[str] = []
    for name in ("open", "unlink", "read_text"):
        monkeypatch.setattr(Path, name, lambda path, *_, **__: asked.append(str(path)))
    assert files.checkpoint("nobody") is None
    files.forget("nobody")
    assert asked == []
