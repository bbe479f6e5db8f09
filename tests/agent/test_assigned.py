"""What a coordinator gives a site to do: kept on disk, fetched once, ended in order."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.config.site import SiteConfig
from fogline.agent.contracts.ingest import CopyStatus, IngestStatus
from fogline.agent.contracts.publish import PublishStatus, RouteStatus
from fogline.agent.jobs.assignments import Assignments
from fogline.agent.jobs.forwarders import observe_forwarder
from fogline.agent.jobs.job import (
    AgentJob,
    copies,
    job_folder,
    job_reader,
    route_reader,
    routes,
    subscriptions,
)
from fogline.agent.jobs.packages import Packages
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.agent.jobs.start_positions import life_name, load_starts
from fogline.common.errors import DataError, FoglineError, UsageError
from fogline.common.state_files import find_damaged
from fogline.log import SiteLog, get_position, set_position
from fogline.log.counting import RecordCounter
from fogline.model.jobs import Assignment, Code, Place, Query, Route, Steps
from fogline.spark.jobs.checkpoints import note_logs
from tests.agent.kit import fill, install, make_status

CODE = Code("job:run", "0" * 64, "job.py")
QUERY = (
    's = STREAM FROM mqtt(topic="t", format="json", time="at");\nm = COMPUTE AVG(x, 5 s) EVERY 5 s'
)


def job(name: str = "j", work: Any = CODE, **more: Any) -> Assignment:
    defaults = {"reads": (Place("in"),), "routes": (Route("log", "out"),)}
    return Assignment(name, "p", work, **(defaults | more))


# ── on disk ──────────────────────────────────────────────────────────────────────────────────────


def test_assignments_survive(tmp_path: Path) -> None:
    kept = Assignments(tmp_path)
    assert kept.install([job("a"), job("b", Query(QUERY))]) == ["a", "b"]
    assert kept.install([job("a")]) == []
    assert [gone.job for gone in kept.remove(["b", "b", "unknown"])] == ["b"]
    assert Assignments(tmp_path).all() == {"a": job("a")}


@pytest.mark.parametrize("text", ["", "{", '[{"job": 1}]', "[1]", '{"a": 1}', "[" * 5000])
def test_a_file_that_makes_no_sense_is_set_aside(tmp_path: Path, text: str) -> None:
    (tmp_path / "assignments.json").write_text(text, encoding="utf-8")
    assert Assignments(tmp_path).all() == {}
    (aside,) = find_damaged([tmp_path])
    assert aside.read_text(encoding="utf-8") == text


def test_versions_tell_what_has_changed() -> None:
    first = job()
    redirected = job(routes=(Route("publish", "elsewhere"),))
    updated = job(parameters={"rate": 2})
    other = job(reads=(Place("in2"),))
    assert len({a.version for a in (first, redirected, updated, other)}) == 4
    assert first.run == redirected.run
    assert first.run != updated.run
    assert first.computation == updated.computation != other.computation


# ── packages ─────────────────────────────────────────────────────────────────────────────────────


class Repository:
    def __init__(self, data: bytes, part: int = 10) -> None:
        self.data = data
        self.part = part
        self.asked = 0

    def ask(self, op: str, body: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert op == "package"
        self.asked += 1
        part = self.data[body["offset"] : body["offset"] + self.part]
        return {"size": len(self.data), "data": base64.b64encode(part).decode()}


def test_a_package_is_removed_a_day_after_its_last_job(
    tmp_path: Path, jobs: SiteJobs, logs: SiteLog
) -> None:
    data = b"def run(records):\n    return records\n"
    wanted = job(work=Code("job:run", hashlib.sha256(data).hexdigest(), "job.py"))
    packages, repository = Packages(tmp_path), Repository(data)
    packages.fetch([wanted], repository.ask)
    install(jobs, wanted)
    now = time.time()
    assert packages.remove_unused(jobs.assignments(), now + 100_000) == []
    jobs.remove(["j"], revision=2)
    assert packages.remove_unused(jobs.assignments(), now + 200_000) == [], "it is still ending"
    jobs.release_drained(stopped=2, revision=3)
    jobs.clean_up(reached=3)
    assert packages.remove_unused(jobs.assignments(), now + 200_001) == []
    (name,) = packages.remove_unused(jobs.assignments(), now + 300_000)
    path = packages.path(wanted)
    assert path is not None
    assert path.name == name
    assert not path.exists()
    asked = repository.asked
    packages.fetch([wanted], repository.ask)
    assert repository.asked > asked
    assert path.exists()


def test_a_package_is_fetched_once(tmp_path: Path) -> None:
    data = b"def run(records):\n    return records\n"
    wanted = job(work=Code("job:run", hashlib.sha256(data).hexdigest(), "job.py"))
    packages, repository = Packages(tmp_path), Repository(data)
    packages.fetch([wanted, job("q", Query(QUERY))], repository.ask)
    packages.fetch([wanted], repository.ask)
    path = packages.path(wanted)
    assert path is not None
    assert path.read_bytes() == data
    assert repository.asked == 4


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"size": 5},
        {"size": 5, "data": "!"},
        {"size": 0, "data": ""},
        {"size": 5, "data": ""},
        {"size": 1 << 40, "data": "AAAA"},
        {"size": 3, "data": "AAAA"},
    ],
)
def test_what_is_no_package_is_refused(tmp_path: Path, answer: dict[str, Any]) -> None:
    packages = Packages(tmp_path)
    with pytest.raises(DataError):
        packages.fetch([job()], lambda op, body, seconds: answer)
    path = packages.path(job())
    assert path is not None
    assert not path.exists()


# ── where a job begins ───────────────────────────────────────────────────────────────────────────


def test_a_new_job_begins_with_what_comes_from_now_on(
    tmp_path: Path, jobs: SiteJobs, logs: SiteLog
) -> None:
    end = fill(logs, "in", b"old")
    install(jobs, job())
    folder = job_folder(tmp_path, "j")
    assert load_starts(folder, job()) == {"in": end}
    assert get_position(logs.folder("in"), job_reader("j")) == end
    fill(logs, "in", b"new")
    install(jobs, job())
    assert load_starts(folder, job()) == {"in": end}


def test_a_changed_computation_goes_on_where_the_old_one_was(
    tmp_path: Path, jobs: SiteJobs, logs: SiteLog
) -> None:
    install(jobs, job())
    done = fill(logs, "in", b"done")
    set_position(logs.folder("in"), job_reader("j"), done)
    fill(logs, "in", b"waiting")
    changed = job(input={"format": "json", "schema": "x double"})
    install(jobs, changed)
    assert load_starts(job_folder(tmp_path, "j"), changed) == {"in": done}


def test_no_computation_goes_on_with_what_it_left_before_another(
    tmp_path: Path, jobs: SiteJobs, logs: SiteLog
) -> None:
    first, second = job(), job(work=replace(CODE, package="1" * 64))
    folder = job_folder(tmp_path, "j")
    install(jobs, first)
    done = done_by(folder, first, fill(logs, "in", b"1"))
    install(jobs, second)
    assert load_starts(folder, second) == {"in": done}
    install(jobs, first)
    install(jobs, second)
    install(jobs, first)
    assert load_starts(folder, first) == {"in": done}
    done_by(folder, first, done_later := fill(logs, "in", b"2"))
    install(jobs, second)
    assert load_starts(folder, second) == {"in": done_later}
    names = {life_name(folder, second)}
    install(jobs, first)
    names.add(life_name(folder, first))
    install(jobs, second)
    names.add(life_name(folder, second))
    assert len(names) == 3
    assert load_starts(folder, second) == {"in": done_later}


def test_a_topic_that_was_not_read_meanwhile_begins_anew(
    tmp_path: Path, jobs: SiteJobs, logs: SiteLog
) -> None:
    both, one = job(reads=(Place("in"), Place("b"))), job()
    fill(logs, "b", b"old")
    install(jobs, both)
    install(jobs, one)
    end = fill(logs, "b", b"not for it")
    install(jobs, both)
    assert load_starts(job_folder(tmp_path, "j"), both) == {"in": 0, "b": end}


def done_by(folder: Path, assignment: Assignment, position: int) -> int:
    """Spark has done a batch up to there, as its checkpoint tells."""
    checkpoint = folder / "checkpoints" / life_name(folder, assignment) / "code"
    note_logs(checkpoint, ["in"])
    for kind in ("offsets", "commits"):
        (checkpoint / kind).mkdir(parents=True)
    offset = json.dumps({"files": {"log": position}})
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{offset}", encoding="utf-8")
    (checkpoint / "commits" / "0").write_text("v1\n{}", encoding="utf-8")
    return position


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "wrong",
    [
        job(work=Query("nothing = ")),
        job(work=Steps(({"op": "filter"},))),
        job(reads=()),
        job(work=Query(QUERY.replace("mqtt(topic", "memory(name"))),
    ],
)
def test_what_cannot_run_here_changes_nothing(jobs: SiteJobs, wrong: Assignment) -> None:
    with pytest.raises(FoglineError):
        jobs.check([job("good"), wrong])
    assert jobs.all() == []


def test_jobs_of_the_site_itself_are_not_touched(tmp_path: Path, logs: SiteLog) -> None:
    from fogline.agent.config.site import JobConfig

    (tmp_path / "own.ins").write_text(QUERY, encoding="utf-8")
    config = SiteConfig("s", tmp_path, jobs=(JobConfig("own", tmp_path / "own.ins"),))
    jobs = SiteJobs(config, tmp_path, logs)
    with pytest.raises(UsageError, match="own configuration"):
        jobs.check([job("own")])
    assert not jobs.remove(["own"], 2)
    assert [j.name for j in jobs.current()] == ["own"]


# ── the end of a job ─────────────────────────────────────────────────────────────────────────────


def test_a_removed_job_sends_what_it_has_before_it_is_forgotten(
    tmp_path: Path, jobs: SiteJobs, logs: SiteLog
) -> None:
    install(jobs, job())
    fill(logs, "in", b"1")
    end = fill(logs, "out/j", b"1")
    set_position(logs.folder("in"), job_reader("j"), 0)
    assert jobs.remove(["j"], revision=2)
    assert jobs.current() == []
    assert [j.running for j in jobs.all()] == [False]
    with pytest.raises(UsageError, match="still ending"):
        jobs.check([job()])
    assert not jobs.release_drained(stopped=1, revision=3)
    assert not jobs.release_drained(stopped=2, revision=3)
    set_position(logs.folder("out/j"), route_reader("j", 0), end)
    assert jobs.release_drained(stopped=2, revision=3)
    assert jobs.all() == []
    jobs.clean_up(reached=2)
    assert logs.folder("out/j").exists()
    jobs.clean_up(reached=3)
    assert not logs.folder("out/j").exists()
    assert not job_folder(tmp_path, "j").exists()
    assert get_position(logs.folder("in"), job_reader("j")) is None
    jobs.check([job()])


@pytest.fixture
def owing(jobs: SiteJobs, logs: SiteLog) -> int:
    """A job is removed and has stopped; one of two records is sent. The end of its log."""
    install(jobs, job())
    sent = fill(logs, "out/j", b"1")
    end = fill(logs, "out/j", b"2")
    set_position(logs.folder("out/j"), route_reader("j", 0), sent)
    jobs.remove(["j"], revision=2)
    assert not jobs.release_drained(stopped=2, revision=3)
    return end


def test_what_a_removed_job_owes_survives_a_restart(
    tmp_path: Path, owing: int, logs: SiteLog
) -> None:
    jobs = SiteJobs(SiteConfig("s", tmp_path), tmp_path, logs)
    assert jobs.current() == []
    assert [(j.name, j.running) for j in jobs.all()] == [("j", False)]
    assert subscriptions(jobs.all()) == []
    assert not jobs.release_drained(stopped=1, revision=2)
    set_position(logs.folder("out/j"), route_reader("j", 0), owing)
    assert jobs.release_drained(stopped=1, revision=2)
    jobs.clean_up(reached=2)
    assert not logs.folder("out/j").exists()
    assert not job_folder(tmp_path, "j").exists()
    assert SiteJobs(SiteConfig("s", tmp_path), tmp_path, logs).all() == []


def test_a_removal_that_was_cut_off_has_not_happened(
    tmp_path: Path, jobs: SiteJobs, logs: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(jobs, job())
    monkeypatch.setattr(Assignments, "remove", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jobs.remove(["j"], revision=2)
    again = SiteJobs(SiteConfig("s", tmp_path), tmp_path, logs)
    assert [(j.name, j.running) for j in again.all()] == [("j", True)]


def test_a_job_that_comes_back_sends_what_is_owed_and_computes_anew(
    tmp_path: Path, jobs: SiteJobs, owing: int, logs: SiteLog
) -> None:
    end = fill(logs, "in", b"not for anybody")
    jobs.check([job()])
    install(jobs, job(), revision=4)
    assert [(j.name, j.running) for j in jobs.all()] == [("j", True)]
    folder = job_folder(tmp_path, "j")
    assert load_starts(folder, job()) == {"in": end}
    assert (get_position(logs.folder("out/j"), route_reader("j", 0)) or 0) < owing
    again = SiteJobs(SiteConfig("s", tmp_path), tmp_path, logs)
    assert [(j.name, j.running) for j in again.all()] == [("j", True)]


def test_what_is_owed_is_not_sent_elsewhere(
    jobs: SiteJobs, owing: int, logs: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = job(routes=(Route("log", "elsewhere"),))
    for _ in range(2):
        with pytest.raises(UsageError, match="still ending"):
            jobs.check([elsewhere])
        assert not jobs.release_drained(stopped=2, revision=3)
    monkeypatch.setattr("fogline.agent.jobs.site_jobs._PATIENT_SECONDS", -1.0)
    with pytest.raises(UsageError, match="still ending"):
        jobs.check([elsewhere])
    assert jobs.release_drained(stopped=2, revision=3)
    jobs.clean_up(reached=3)
    jobs.check([elsewhere])
    assert not logs.folder("out/j").exists()


def test_a_removed_forwarder_sends_what_came_before(jobs: SiteJobs, logs: SiteLog) -> None:
    passing = job("f", Steps(()), reads=(Place("raw"),), routes=(Route("publish", "x"),))
    install(jobs, passing)
    end = fill(logs, "raw", b"1")
    set_position(logs.folder("raw"), route_reader("f", 0), 0)
    jobs.remove(["f"], revision=2)
    fill(logs, "raw", b"for others")
    assert not jobs.release_drained(stopped=2, revision=3)
    set_position(logs.folder("raw"), route_reader("f", 0), end)
    assert jobs.release_drained(stopped=2, revision=3)
    jobs.clean_up(reached=3)
    assert get_position(logs.folder("raw"), route_reader("f", 0)) is None
    assert logs.folder("raw").exists()


def test_a_forwarder_begins_where_it_was_installed(jobs: SiteJobs, logs: SiteLog) -> None:
    end = fill(logs, "raw", b"of yesterday")
    one = job("f", Steps(()), reads=(Place("raw"),), routes=(Route("publish", "x"),))
    install(jobs, one)
    assert get_position(logs.folder("raw"), route_reader("f", 0)) == end
    later = fill(logs, "raw", b"of today")
    two = replace(one, routes=(*one.routes, Route("publish", "y")))
    for _ in range(2):
        install(jobs, two)
        places = [get_position(logs.folder("raw"), route_reader("f", i)) for i in (0, 1)]
        assert places == [end, later]
        fill(logs, "raw", b"since then")


def test_a_forwarder_that_was_there_before_its_log_sends_all_of_it(
    jobs: SiteJobs, logs: SiteLog
) -> None:
    routes_ = (Route("publish", "x"), Route("publish", "y"))
    passing = job("f", Steps(()), reads=(Place("raw"),), routes=routes_)
    install(jobs, passing)
    assert [route.begin for route in routes(jobs.all())] == ["start", "start"]
    fill(logs, "raw", b"first")
    install(jobs, passing)
    assert get_position(logs.folder("raw"), route_reader("f", 0)) is None


def test_a_forwarder_tells_what_it_has_passed_on() -> None:
    given = (Route("publish", "x"), Route("log", "y"))
    passing = AgentJob(job("f", Steps(()), reads=(Place("raw"),), routes=given))
    report = PublishStatus(
        "running",
        1,
        topics=(),
        routes=tuple(
            RouteStatus("running", count, lag, log="raw", reader=reader, mode="publish", topic="x")
            for reader, count, lag in ((route_reader("f", 0), 7, 5), (route_reader("g", 0), 99, 99))
        ),
    )
    copy = CopyStatus("raw", "y", route_reader("f", 1), "running", 6, 9)
    ingest = IngestStatus("running", 1, subscriptions=(), copies=(copy,), bad_links=0)
    found = observe_forwarder(passing, make_status(ingest, publish=report), {})
    assert (found.state, found.records_in, found.records_out) == ("running", 7, 13)
    assert found.lag_bytes == 9
    assert observe_forwarder(passing, make_status(), {}).records_in == 0


def test_a_route_that_is_no_more_keeps_no_records(jobs: SiteJobs, logs: SiteLog) -> None:
    two = job(routes=(Route("log", "a"), Route("publish", "b")))
    install(jobs, two)
    fill(logs, "out/j", b"1")
    for index in (0, 1):
        set_position(logs.folder("out/j"), route_reader("j", index), 0)
    install(jobs, job(), revision=5)
    jobs.clean_up(reached=4)
    assert get_position(logs.folder("out/j"), route_reader("j", 1)) == 0
    jobs.clean_up(reached=5)
    assert get_position(logs.folder("out/j"), route_reader("j", 1)) is None
    assert get_position(logs.folder("out/j"), route_reader("j", 0)) == 0


# ── what the processes do for jobs ───────────────────────────────────────────────────────────────


def test_chains_at_a_site_are_copies_and_the_rest_are_routes(jobs: SiteJobs) -> None:
    install(
        jobs,
        job("first", routes=(Route("log", "t"),)),
        job("second", Query(QUERY), reads=(Place("t"),), routes=()),
        job("third", routes=(Route("link", "far", "mqtt://h:1", "north"),)),
        job("fourth", Steps(()), reads=(Place("raw/#"),), routes=(Route("publish", "x"),)),
    )
    told = jobs.all()
    assert [c.log for c in copies(told)] == ["out/first"]
    assert [(r.mode, r.log) for r in routes(told)] == [
        ("link", "out/third"),
        ("publish", "raw/#"),
    ]
    assert sorted(s.log for s in subscriptions(told)) == ["in", "raw/#", "t"]
    assert [s.deduplicate for s in subscriptions(told) if s.log == "t"] == [True]


def test_what_is_for_a_site_that_was_never_seen_waits(jobs: SiteJobs) -> None:
    install(jobs, job(routes=(Route("publish", "x", node="far"), Route("publish", "y"))))
    assert [route.topic for route in routes(jobs.all())] == ["y"]


def test_a_stopped_forwarder_sends_nothing(jobs: SiteJobs) -> None:
    passing = job("f", Steps(()), reads=(Place("raw"),), routes=(Route("publish", "x"),))
    install(jobs, passing)
    assert len(routes(jobs.all())) == 1
    install(jobs, replace(passing, running=False))
    assert routes(jobs.all()) == []
    assert [s.log for s in subscriptions(jobs.all())] == ["raw"]


def test_records_are_counted_without_reading_them(tmp_path: Path, logs: SiteLog) -> None:
    note = tmp_path / "note"
    counter = RecordCounter(logs.folder("c"), note)
    assert counter.update() == 0
    fill(logs, "c", b"1", b"2")
    assert counter.update() == 2
    fill(logs, "c", *[b"x"] * 300)
    assert counter.update() == 302
    counter.close()
    fill(logs, "c", b"3")
    assert RecordCounter(logs.folder("c"), note).update() == 303
    note.write_text("nonsense", encoding="ascii")
    assert RecordCounter(logs.folder("c"), note).update() == 303
