"""Who is gone holds nothing back; what goes wrong on a full disk is told, and the site goes on."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.config.site import JobConfig, RetentionConfig, SiteConfig
from fogline.agent.config.store import StoreConfig
from fogline.agent.jobs.job import job_folder, job_reader, route_reader
from fogline.agent.jobs.readers import retire_strays
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.agent.jobs.start_positions import load_starts
from fogline.agent.supervisor import site as site_module
from fogline.agent.supervisor.site import Site
from fogline.common.errors import SetupError
from fogline.log import SiteLog, get_position, lowest_position, set_position
from fogline.model.jobs import Assignment, Code, Place, Route
from tests.agent.kit import install

QUERY = (
    's = STREAM FROM mqtt(topic="t", format="json", time="at");\nm = COMPUTE AVG(x, 5 s) EVERY 5 s'
)


@pytest.fixture
def logs(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "site" / "log", segment_bytes=4096, min_free_bytes=1)


def make_site(folder: Path, *jobs: str, **more: Any) -> Site:
    for name in jobs:
        (folder / f"{name}.ins").write_text(QUERY, encoding="utf-8")
    given = tuple(JobConfig(name, folder / f"{name}.ins") for name in jobs)
    return Site(SiteConfig("s", folder / "site", jobs=given, **more))


def fill(logs: SiteLog, topic: str, count: int = 100) -> None:
    with logs.writer(topic) as writer:
        for _ in range(count):
            writer.append([(topic, bytes(1000))])
            writer.commit()


def positions(logs: SiteLog, topic: str, *readers: str) -> None:
    for reader in readers:
        set_position(logs.folder(topic), reader, 0)


def test_a_job_that_left_the_configuration_holds_nothing_back(
    tmp_path: Path, logs: SiteLog
) -> None:
    fill(logs, "t")
    positions(logs, "t", job_reader("gone"))
    small = RetentionConfig(megabytes=0.01)
    make_site(tmp_path, "gone", retention=small)._enforce_retention()
    assert lowest_position(logs.folder("t")) == 0
    with logs.reader("t") as reader:
        assert reader.first() == 0
    make_site(tmp_path, "kept", retention=small)._enforce_retention()
    with logs.reader("t") as reader:
        assert reader.first() > 0


def test_publisher_and_store_go_with_who_needs_them(tmp_path: Path, logs: SiteLog) -> None:
    for topic in ("insights/a/m", "insights/b/m", "t"):
        fill(logs, topic, 1)
        positions(logs, topic, "publisher", "store")
    make_site(tmp_path, "a")._enforce_retention()
    assert lowest_position(logs.folder("insights/a/m")) == 0
    assert (logs.folder("insights/b/m") / "readers" / "store").exists()
    assert not (logs.folder("insights/b/m") / "readers" / "publisher").exists()
    make_site(tmp_path, "a", store=StoreConfig(enabled=False))._enforce_retention()
    assert lowest_position(logs.folder("t")) is None
    assert get_position(logs.folder("t"), "store") == 0, "remembered for when it comes back"


def test_jobs_that_are_stopped_or_cannot_run_keep_their_places(
    tmp_path: Path, logs: SiteLog
) -> None:
    code = Code("job:run", "0" * 64, "job.py")
    more: dict[str, Any] = {"reads": (Place("in"),), "routes": (Route("log", "out"),)}
    jobs = SiteJobs(SiteConfig("s", tmp_path), tmp_path, logs)
    install(jobs, Assignment("still", "p", code, running=False, **more))
    for topic in ("in", "out/still", "insights/unsure/m"):
        fill(logs, topic, 1)
    positions(logs, "in", job_reader("still"), job_reader("unsure"), job_reader("left"))
    positions(logs, "out/still", route_reader("still", 0), route_reader("still", 1))
    positions(logs, "insights/unsure/m", "publisher")
    retired = retire_strays(logs, jobs.all(), ["unsure"], stored=True)
    assert retired == ["job%20left of in", "route%20still%201 of out/still"]


@pytest.mark.parametrize("known", [None, 1000])
def test_a_job_may_begin_now(tmp_path: Path, logs: SiteLog, known: int | None) -> None:
    fill(logs, "t")
    with logs.reader("t") as reader:
        end = reader.committed()
    if known is not None:
        set_position(logs.folder("t"), job_reader("a"), known)
    site = make_site(tmp_path, "a")
    (job,) = site.jobs.current()
    folder = job_folder(site.folder, "a")
    begins_now = replace(site.config.jobs[0], start="now")
    site.config = replace(site.config, jobs=(begins_now,))
    site._note_starts()
    assert load_starts(folder, job.assignment) == {"t": end if known is None else known}
    make_site(tmp_path, "a")._note_starts()
    assert load_starts(folder, job.assignment) == {}, "with the oldest again"


def test_retention_tells_what_it_cannot_do(
    tmp_path: Path, logs: SiteLog, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(logs, "t", 1)
    (logs.folder("t") / "readers" / "store").mkdir(parents=True)
    site = make_site(tmp_path)
    site._enforce_retention()
    site._enforce_retention()
    (problem,) = site.status().retention_problems
    assert "Is a directory" in problem
    assert capsys.readouterr().err.count("Is a directory") == 1


def test_a_note_that_cannot_be_left_is_left_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[Any] = []

    def leave(note: Any) -> Path:
        said.append(note)
        if len(said) == 1:
            raise SetupError(f"cannot be written: {os.strerror(errno.ENOSPC)}")
        return tmp_path / "note"

    monkeypatch.setattr(site_module, "leave_note", leave)
    site = make_site(tmp_path)
    site._leave_note()
    assert "No space left" in capsys.readouterr().err
    site._leave_note()
    assert len(said) == 1, "not at every tick"
    monkeypatch.setattr(site, "_note_due", 0.0)
    site._leave_note()
    site._leave_note()
    assert len(said) == 2
