"""Whom the engine looks after when: who waits for a job to start does not wait for the others."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.contracts.engine import EngineConfig, EngineJobConfig
from fogline.agent.engine import process as module
from fogline.agent.engine.jobs import own_trigger
from fogline.agent.engine.process import Engine, with_slots
from fogline.agent.supervisor.child_configs import engine_slots
from fogline.common.process.parent import StatusWriter
from fogline.model.jobs import Assignment, Code
from fogline.model.sites import JobStatus, QueryStatus


class Job:
    """A job that runs when it has been looked after so many times."""

    def __init__(self, name: str, until_running: int = 0) -> None:
        self.name, self.left = name, until_running
        self.looked = 0
        self.kept = 0
        self.run = "r"

    def counts(self) -> dict[str, int]:
        return {"records_in": 0, "records_out": 0, "bad": 0, "late": 0}

    @property
    def status(self) -> JobStatus:
        state = "starting" if self.left else "running"
        return JobStatus(self.name, (QueryStatus("job", state),))

    def keep_counts(self) -> None:
        self.kept += 1

    def tick(self) -> None:
        self.looked += 1
        self.left = max(self.left - 1, 0)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(make_config(tmp_path, revision=3), StatusWriter().write)


def make_config(folder: Path, *jobs: EngineJobConfig, revision: int = 1) -> EngineConfig:
    return EngineConfig(
        revision=revision,
        site="s",
        folder=str(folder),
        logs=str(folder),
        min_free_bytes=0,
        engine="local",
        engine_host="",
        slots=0,
        memory="1g",
        trigger_ms=100,
        live_ms=5000,
        jobs=jobs,
    )


def with_jobs(engine: Engine, *jobs: Job) -> None:
    engine._jobs.update({job.name: job for job in jobs})  # type: ignore[misc]


def turns(engine: Engine, count: int) -> list[float]:
    return [engine._turn(threading.Event()) for _ in range(count)]


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs are looked after once in a test, however slow the machine."""
    monkeypatch.setattr(module, "_TICK_SECONDS", 60.0)
    monkeypatch.setattr(module, "_LONGEST_WAIT", 60.0)


@pytest.mark.usefixtures("seldom")
def test_jobs_that_run_are_looked_after_now_and_then(engine: Engine) -> None:
    jobs = [Job(str(number)) for number in range(30)]
    with_jobs(engine, *jobs)
    waits = turns(engine, 5)
    assert {job.looked for job in jobs} == {1}
    assert all(0 < wait <= module._LONGEST_WAIT for wait in waits)


@pytest.mark.usefixtures("seldom")
def test_a_job_that_starts_is_looked_at_often_without_the_others(engine: Engine) -> None:
    others = [Job(str(number)) for number in range(30)]
    with_jobs(engine, *others)
    turns(engine, 1)
    with_jobs(engine, new := Job("new", until_running=4))
    waits = turns(engine, 4)
    assert all(0 < wait <= module._STARTING_LONGEST for wait in waits[:3])
    assert waits[3] > 1
    assert (new.looked, {job.looked for job in others}) == (4, {1})


def test_many_that_start_are_looked_at_less_often(engine: Engine) -> None:
    with_jobs(engine, *(Job(str(number), until_running=100) for number in range(50)))
    assert turns(engine, 2)[1] == module._STARTING_LONGEST


def test_one_that_takes_long_is_looked_at_less_often(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with_jobs(engine, Job("slow", until_running=1_000))
    (first,) = turns(engine, 1)
    now[0] += 0.5
    (later,) = turns(engine, 1)
    now[0] += 60.0
    (much_later,) = turns(engine, 1)
    assert (first, later) == (module._STARTING_EACH, pytest.approx(0.05))
    assert much_later == module._STARTING_LONGEST


def test_a_new_state_is_told_at_once(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    with_jobs(engine, Job("a"), Job("b", until_running=3))
    turns(engine, 1)
    first = told(capsys)
    assert {job["name"]: job["state"] for job in first[-1]["jobs"]} == {
        "a": "running",
        "b": "starting",
    }
    turns(engine, 1)
    (news,) = told(capsys)
    assert [job["state"] for job in news["jobs"]] == ["running", "running"]
    assert news["revision"] == 3


def test_without_jobs_it_waits(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert turns(engine, 1)[0] > 0.1
    assert told(capsys)[-1]["jobs"] == []


def test_a_parent_that_is_gone_is_noticed_between_jobs(engine: Engine) -> None:
    jobs = [Job(str(number)) for number in range(10)]
    with_jobs(engine, *jobs)
    gone = threading.Event()
    gone.set()
    engine._turn(gone)
    assert sum(job.looked for job in jobs) == 1


@pytest.mark.parametrize(
    ("engine", "wanted"),
    [
        ("local", "local[65]"),
        ("local[2]", "local[66]"),
        ("local[2, 3]", "local[66,3]"),
        ("spark://h:7077", "spark://h:7077"),
        ("local-cluster[2,1,512]", "local-cluster[2,1,512]"),
    ],
)
def test_every_local_engine_has_room_for_real_time(engine: str, wanted: str) -> None:
    assert with_slots(engine, 64) == wanted


class Reading:
    """A job that reads so many streams."""

    def __init__(self, count: int) -> None:
        self._count = count

    def streams(self) -> list[str]:
        return ["s"] * self._count


def test_there_is_a_slot_for_every_stream_in_real_time() -> None:
    assert engine_slots([]) == 64
    assert engine_slots([Reading(12)] * 20) >= 20 * (12 + 12 + 4)  # type: ignore[list-item]


# ── many jobs, and one that somebody waits for ───────────────────────────────────────────────────


class Slow(Job):
    """A job that takes a while to look after, by a clock that is made up."""

    def __init__(self, name: str, clock: list[float], until_running: int = 0) -> None:
        super().__init__(name, until_running)
        self._clock = clock

    def tick(self) -> None:
        super().tick()
        self._clock[0] += 0.04


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_who_starts_is_looked_at_while_the_others_have_their_turn(
    engine: Engine, clock: list[float]
) -> None:
    others = [Slow(str(number), clock) for number in range(25)]
    with_jobs(engine, *others)
    assert turns(engine, 1) == [0.0], "there is more to do, but others may want something first"
    assert 0 < sum(job.looked for job in others) < 5
    with_jobs(engine, new := Slow("new", clock, until_running=2))
    turns(engine, 2)
    assert new.status.state == "running"
    assert sum(job.looked for job in others) < 10
    while turns(engine, 1) == [0.0]:
        pass
    assert {job.looked for job in others} == {1}, "each has its turn, and only once"


def test_a_change_is_not_kept_waiting_by_many_jobs(engine: Engine) -> None:
    jobs = [Job(str(number)) for number in range(25)]
    with_jobs(engine, *jobs)
    news = threading.Event()
    news.set()
    assert engine._turn(news) == 0.0
    assert sum(job.looked for job in jobs) == 1
    engine._jobs.pop("3")
    news.clear()
    assert engine._turn(news) > 0
    assert [job.looked for job in jobs] == [1, 1, 1, 0, *[1] * 21], "one went meanwhile"


def test_what_is_wanted_as_before_is_not_touched(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assigned: list[tuple[str, object]] = []

    class Assigned(Job):
        def __init__(self, place: object, assignment: Assignment, package: str) -> None:
            super().__init__(assignment.job)

        def assign(self, assignment: Assignment, package: str) -> None:
            assigned.append((assignment.job, assignment.parameters["x"]))

    def config(*values: object) -> EngineConfig:
        made = [
            Assignment(str(n), "p", Code("m:f", "1", "m.py"), parameters={"x": value})  # type: ignore[dict-item]
            for n, value in enumerate(values)
        ]
        return make_config(tmp_path, *map(EngineJobConfig, made))

    monkeypatch.setattr(module, "EngineJob", Assigned)
    for values in ((1, 1, 1), (1, 2, 1), (1, 2, True), (1, 2, True)):
        engine._reconcile(config(*values), None)  # type: ignore[arg-type]
    assert assigned == [("1", 2), ("2", True)]


def test_a_system_that_does_not_allow_it_is_no_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def refuse(process: int, policy: int, _: object) -> None:
        asked.append(policy)
        raise PermissionError("not here")

    monkeypatch.setattr(module.os, "sched_setscheduler", refuse)
    module._wake_gently()
    assert asked == [module.os.SCHED_BATCH]


class Ending(Job):
    """Ends when it and another one have been told to."""

    def __init__(self, name: str, together: threading.Barrier, problem: str = "") -> None:
        super().__init__(name)
        self._together, self._problem = together, problem
        self.stopped = False

    def stop(self) -> None:
        self._together.wait(20)
        self.stopped = True
        if self._problem:
            raise ConnectionError(self._problem)


def test_jobs_that_go_are_stopped_side_by_side(engine: Engine) -> None:
    together = threading.Barrier(2)
    gone = [Ending("a", together), Ending("b", together)]
    with_jobs(engine, *gone, stays := Job("stays"))
    kept = EngineJobConfig(Assignment("stays", "p", Code("m:f", "1", "m.py")))
    engine._configured["stays"] = repr(kept)
    engine._reconcile(replace(engine._config, jobs=(kept,)), None)  # type: ignore[arg-type]
    assert all(job.stopped for job in gone)
    assert engine._jobs == {"stays": stays}


def test_one_that_cannot_be_stopped_keeps_no_other_from_it(engine: Engine) -> None:
    together = threading.Barrier(2)
    gone = [Ending("a", together, "Spark is gone"), Ending("b", together)]
    with_jobs(engine, *gone)
    with pytest.raises(ConnectionError, match="Spark is gone"):
        engine._reconcile(replace(engine._config, jobs=()), None)  # type: ignore[arg-type]
    assert all(job.stopped for job in gone)


class Wanting:
    """A parent that is there for good."""

    def __init__(self) -> None:
        self.ended, self.news = threading.Event(), threading.Event()

    def take_change(self) -> None: ...

    def wait(self, seconds: float) -> None: ...


def test_counts_are_kept_when_spark_dies(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Last(Job):
        def tick(self) -> None:
            raise ConnectionError("Spark is gone")

    monkeypatch.setattr(engine, "_reconcile", lambda *_: None)
    with_jobs(engine, first := Job("first"), last := Last("last"))
    with pytest.raises(ConnectionError):
        engine._serve(Wanting(), None)  # type: ignore[arg-type]
    assert (first.kept, last.kept) == (1, 1)


def test_jobs_of_a_site_do_not_begin_their_batches_at_once() -> None:
    intervals = {own_trigger(1000, f"job-{number}") for number in range(100)}
    assert min(intervals) >= 1000
    assert max(intervals) <= 1040
    assert len(intervals) > 20
    assert own_trigger(1000, "a") == own_trigger(1000, "a")
    assert [own_trigger(interval, "a") for interval in (0, 20)] == [0, 20]
