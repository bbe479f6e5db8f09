"""The small parts of an agent: memory of messages, metrics, rejects, pools, processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from fogline.agent.engine import jobs
from fogline.agent.engine.jobs import EngineJob, Workplace
from fogline.agent.engine.rejects import RejectMover
from fogline.agent.jobs.job import job_folder
from fogline.common.process.children import Child
from fogline.common.process.contract import ProcessStatus
from fogline.common.process.log_rotation import LARGEST, keep_bounded
from fogline.common.process.parent import StatusWriter
from fogline.links.dedup import Recent
from fogline.log import SiteLog
from fogline.model.jobs import Assignment, Code, Place, Query
from fogline.model.sites import JobStatus, QueryStatus
from fogline.spark.session.site_session import pools_xml
from tests.agent.kit import payloads
from tests.waiting import wait_for


def test_recent_knows_what_it_saw() -> None:
    recent = Recent(3)
    assert recent.is_new("a", b"1")
    assert not recent.is_new("a", b"1")
    assert recent.is_new("b", b"1")
    recent.note([("c", b"1"), ("d", b"1")])
    assert not recent.is_new("c", b"1")
    assert recent.is_new("a", b"1"), "only the last three are remembered"


def test_recent_takes_any_topic_and_payload() -> None:
    recent = Recent()
    long = "é" * 5000
    assert recent.is_new(long, b"")
    assert not recent.is_new(long, b"")
    assert recent.is_new(long + "x", b"")


def test_recent_tells_long_topics_apart_by_their_beginning() -> None:
    recent = Recent()
    device = "d" * 63
    assert recent.is_new(f"plantA/{device}", b"1")
    assert recent.is_new(f"plantB/{device}", b"1")
    assert recent.is_new("a", b"bc")
    assert recent.is_new("ab", b"c")


def test_pools_weigh_by_salience() -> None:
    root = ElementTree.fromstring(pools_xml([1, 9, 9, 0]))
    weights = {p.get("name"): p.findtext("weight") for p in root}
    assert weights == {"salience-0": "1", "salience-1": "1", "salience-9": "9"}


def test_rejects_become_messages(tmp_path: Path) -> None:
    folder = tmp_path / "rejects"
    folder.mkdir()
    rows = [
        {"stream": "s", "kind": "bad", "reason": "not JSON", "record": "x"},
        {"stream": "s", "kind": "late", "reason": "old", "record": "y"},
    ]
    text = "\n".join(map(json.dumps, rows)) + "\n"
    (folder / "s-log-0-9.ndjson").write_text(text, encoding="utf-8")
    (folder / ".s-log-9-12.ndjson.tmp").write_text("unfinished", encoding="utf-8")
    site = SiteLog(tmp_path / "log", min_free_bytes=0)
    mover = RejectMover("j", folder, site)
    assert mover.move() == 2
    assert mover.move() == 0
    with site.reader("bad/j/s") as bad, site.reader("late/j/s") as late:
        assert [json.loads(p)["record"] for p in payloads(bad)] == ["x"]
        assert [json.loads(p)["record"] for p in payloads(late)] == ["y"]
    assert [p.name for p in folder.iterdir()] == [".s-log-9-12.ndjson.tmp"]


def test_a_torn_reject_is_put_aside_and_the_rest_is_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "rejects"
    folder.mkdir()
    good = json.dumps({"stream": "s", "kind": "bad", "reason": "not JSON", "record": "x"})
    text = f'{good}\n[1]\n{good}\n{{"stream": "s", "ki'
    (folder / "s-log-0-9.ndjson").write_text(text, encoding="utf-8")
    mover = RejectMover("j", folder, SiteLog(tmp_path / "log", min_free_bytes=0))
    assert mover.move() == 2
    assert mover.move() == 0
    torn = folder / "torn" / "s-log-0-9.ndjson"
    assert torn.read_text(encoding="utf-8") == '[1]\n{"stream": "s", "ki\n'
    assert f"2 rejected records cannot be read, they are in {torn}" in capsys.readouterr().err


class _Running:
    """A job of Spark's that runs."""

    def keep_running(self) -> None:
        pass

    def status(self) -> JobStatus:
        return JobStatus("j", (QueryStatus("windows", "running"),))

    def needed_positions(self) -> dict[str, int]:
        return {}

    def stop(self) -> None:
        pass


def test_without_space_a_job_goes_on_and_its_rejects_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = (
        's = STREAM FROM mqtt(topic="t", format="json", time="at");\n'
        "m = COMPUTE AVG(x, 5 s) EVERY 5 s"
    )
    monkeypatch.setattr(jobs, "_make_spark_job", lambda *_: _Running())
    site = SiteLog(tmp_path / "log", min_free_bytes=1 << 60)
    place = Workplace(None, tmp_path, site, lambda *_: None, 1000, 5000)  # type: ignore[arg-type]
    job = EngineJob(place, Assignment("j", "", Query(query)), "")
    folder = job_folder(tmp_path, "j") / "rejects"
    folder.mkdir(parents=True)
    rows = [{"stream": "s", "kind": kind, "record": "x"} for kind in ("bad", "late")]
    text = "\n".join(map(json.dumps, rows))
    (folder / "s-log-0-9.ndjson").write_text(text, encoding="utf-8")
    job.tick()
    (told,) = job.status.queries
    assert told.state == "running"
    assert "space" in told.problem
    site._min_free_bytes = 0
    job.tick()
    job.tick()
    assert job.status.queries[0].problem == ""
    with site.reader("bad/j/s") as bad:
        assert len(list(payloads(bad))) == 1
    assert list(folder.iterdir()) == []


class _Counting(_Running):
    """A run of a query that has read so much."""

    def __init__(self, run: str, records: int) -> None:
        self._query = QueryStatus("windows", "running", run=run, records=records, bad=1, late=2)

    def status(self) -> JobStatus:
        return JobStatus("j", (self._query,))

    def with_parameters(self, parameters: Mapping[str, Any]) -> None:
        assert parameters == {"least": 2}


def test_what_a_job_has_taken_is_counted_on_through_updates_and_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = iter([_Counting("1", 10), _Counting("2", 5), _Counting("3", 1)])
    monkeypatch.setattr(jobs, "_make_spark_job", lambda *_: next(runs))
    site = SiteLog(tmp_path / "log", min_free_bytes=1)
    place = Workplace(None, tmp_path, site, lambda *_: None, 1000, 5000)  # type: ignore[arg-type]
    first = Assignment("j", "", Code("m:f", "0" * 64, "m.py"), reads=(Place("in"),))
    job = EngineJob(place, first, "")
    job.tick()
    job.tick()
    assert job.counts() == {"records_in": 10, "records_out": 0, "bad": 1, "late": 2}
    job.assign(replace(first, parameters={"least": 2}), "")
    assert job.counts()["records_in"] == 10
    job.tick()
    assert job.counts() == {"records_in": 15, "records_out": 0, "bad": 2, "late": 4}
    job.stop()
    again = EngineJob(place, first, "")
    assert again.counts()["records_in"] == 15
    again.tick()
    assert again.counts()["records_in"] == 16


# ── processes ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "echo_child.py").write_text(
        "from dataclasses import dataclass\n"
        "from fogline.common.process.contract import ProcessStatus\n"
        "from fogline.common.process.parent import Parent\n"
        "@dataclass(frozen=True)\n"
        "class Config:\n    number: int\n"
        "parent = Parent(Config)\n"
        "parent.report_status(ProcessStatus('running', parent.config.number))\n"
        "while not parent.ended.is_set():\n    parent.wait(60)\n    parent.take_change()\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Child("echo", "echo_child", lambda: {"number": 1}, ProcessStatus, tmp_path)
    yield made
    made.wait(0)


def running(child: Child[ProcessStatus]) -> bool:
    child.keep_running()
    return child.state == "running"


def reason(child: Child[ProcessStatus]) -> str:
    child.keep_running()
    return child.died


@pytest.mark.site
def test_a_child_is_told_tells_and_ends(child: Child[ProcessStatus]) -> None:
    wait_for(lambda: running(child), 20, "running child")
    assert (child.status, child.revision) == (ProcessStatus("running", 1), 1)
    process = psutil.Process(child.pid)
    child.ask_to_end()
    child.wait(10)
    assert not process.is_running()


@pytest.mark.site
def test_what_a_child_tells_is_heard_at_once(child: Child[ProcessStatus]) -> None:
    told: list[str] = []
    child._on_status = lambda: told.append(child.state)
    wait_for(lambda: running(child) and told, 20, "running child")
    assert told == ["running"]


def test_what_is_told_again_is_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    writer = StatusWriter()
    for number in (1, 1, 2, 2, 1):
        writer.write(ProcessStatus("running", number))
    told = [json.loads(line)["revision"] for line in capsys.readouterr().out.splitlines()]
    assert told == [1, 2, 1]


@pytest.mark.site
def test_a_status_that_is_not_as_the_contract_says_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import sys\nprint('no json', flush=True)\n"
        'print(\'{"state": "running", "other": 1}\', flush=True)\nsys.stdin.read()\n'
    )
    (tmp_path / "odd_child.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    odd = Child("odd", "odd_child", dict, ProcessStatus, tmp_path)
    odd.keep_running()
    wait_for(lambda: "cannot be read" in odd.state, 20, "the problem")
    assert odd.state == "its status cannot be read: ProcessStatus: unknown key 'other'"
    assert (odd.status, odd.revision) == (None, 0)
    odd.ask_to_end()
    odd.wait(10)


@pytest.mark.site
def test_a_configuration_that_is_not_as_the_contract_says_is_named(
    child: Child[ProcessStatus],
) -> None:
    child._config = dict
    wait_for(lambda: reason(child), 20, "reason")
    assert "Config: missing key 'number'" in child.died
    child._config = lambda: {"number": 2}
    wait_for(lambda: running(child), 20, "running child")
    child._config = lambda: {"number": "2"}
    child.update()
    wait_for(lambda: "Config.number must be int" in reason(child), 20, "reason")


@pytest.mark.site
def test_a_child_that_dies_is_started_again(child: Child[ProcessStatus]) -> None:
    wait_for(lambda: running(child), 20, "running child")
    first = child.pid
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: running(child) and child.pid != first, 20, "new child")
    assert child.restarts == 1


def test_what_a_process_says_does_not_fill_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    keep_bounded(path)
    with path.open("ab", buffering=0) as log:
        log.write(b"a" * 100)
        keep_bounded(path, 100)
        assert path.stat().st_size == 100
        log.write(b"b")
        keep_bounded(path, 100)
        log.write(b"c")
    assert path.read_bytes() == b"c"
    assert (tmp_path / "engine.log.1").read_bytes() == b"a" * 100 + b"b"


@pytest.mark.site
def test_the_log_of_a_child_is_kept_bounded(child: Child[ProcessStatus], tmp_path: Path) -> None:
    log = tmp_path / "echo.log"
    with log.open("wb") as file:
        file.truncate(LARGEST + 1)
    wait_for(lambda: running(child), 20, "running child")
    assert log.stat().st_size < LARGEST


@pytest.mark.site
def test_why_a_child_died_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import sys\nprint('working', file=sys.stderr)\nsys.exit('engine: no Java (install it)')\n"
    )
    (tmp_path / "dying_child.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    dying = Child("dying", "dying_child", dict, ProcessStatus, tmp_path)
    wait_for(lambda: reason(dying), 20, "reason")
    assert dying.died == "engine: no Java (install it)"
    dying.wait(0)


@pytest.mark.site
def test_a_child_that_cannot_be_started_is_tried_again(
    child: Child[ProcessStatus], tmp_path: Path
) -> None:
    (tmp_path / "echo.log").mkdir()
    child.keep_running()
    assert "cannot be started" in child.died
    (tmp_path / "echo.log").rmdir()
    wait_for(lambda: running(child), 20, "running child")


@pytest.mark.site
def test_a_child_that_is_killed_is_told(child: Child[ProcessStatus]) -> None:
    wait_for(lambda: running(child), 20, "running child")
    os.kill(child.pid, signal.SIGKILL)
    wait_for(lambda: running(child) and child.died, 20, "reason")
    assert child.died == "killed by signal 9"


@pytest.mark.site
def test_a_child_that_hangs_is_killed(child: Child[ProcessStatus]) -> None:
    wait_for(lambda: running(child), 20, "running child")
    process = psutil.Process(child.pid)
    os.kill(child.pid, signal.SIGSTOP)
    child.ask_to_end()
    child.wait(0.2)
    assert not process.is_running()
