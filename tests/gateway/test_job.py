"""Jobs through crashes: whatever moment they end at, every output is there once, in order."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.state_files import read_state
from fogline.gateway.jobs import job as job_module
from fogline.gateway.jobs.files import JobFiles
from fogline.gateway.jobs.inputs import InputLog
from fogline.gateway.jobs.job import GatewayJob
from fogline.gateway.jobs.ledger import LedgerEntry
from fogline.log import LogFull, LogWriter, SiteLog
from fogline.model.jobs import Assignment, Place, Steps
from fogline.model.sites import bad_log, late_log, out_log
from tests.gateway.helpers import BASE

STEPS = (
    {"op": "filter", "when": "x != 3"},
    {"op": "aggregate", "window": 2, "fields": ["x"], "functions": ["sum", "count"], "by": ["k"]},
)


def assignment(**changes: Any) -> Assignment:
    given_: dict[str, Any] = {
        "job": "j", "pipeline": "p", "work": Steps(STEPS), "reads": (Place("d/+"),),
        "input": {"time": "time"},
    }  # fmt: skip
    return Assignment(**given_ | changes)


class Bench:
    """An input and a job over it, which can be ended as a crash would end it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.logs = SiteLog(root / "logs", min_free_bytes=0)
        self.writer = self.logs.writer("in/x")
        self.entry = LedgerEntry(assignment(), "1", 0)
        self.job = self.open()

    def open(self) -> GatewayJob:
        source = InputLog(self.logs.folder("in/x"), journal=False)
        self.job = GatewayJob(self.entry, ("d/+",), source, JobFiles(self.root, self.logs))
        return self.job

    def crash(self) -> None:
        """Nothing is saved; what was not committed is gone."""
        self.job.abandon()
        self.job.input.close()
        self.open()

    def send(self, contents: list[Any]) -> None:
        records = [("d/1", c if isinstance(c, bytes) else json.dumps(c).encode()) for c in contents]
        self.writer.append(records)
        self.writer.commit()

    def read(self, log: str) -> list[Any]:
        with self.logs.reader(log) as reader:
            found: list[Any] = []
            position = 0
            while position < reader.committed():
                records, position = reader.read(position)
                found += [json.loads(payload) for _, payload in records]
            return found

    def results(self) -> list[list[Any]]:
        logs = (out_log("j"), bad_log("j", "stream"), late_log("j", "stream"))
        return [self.read(log) for log in logs]

    def close(self) -> None:
        self.job.abandon()
        self.job.input.close()
        self.writer.close()


messages = st.lists(
    st.one_of(
        st.just(b"broken"),
        st.fixed_dictionaries(
            {
                "time": st.integers(0, 12).map(lambda s: BASE + s * 1000),
                "x": st.integers(0, 5),
                "k": st.sampled_from("ab"),
            }
        ),
    ),
    min_size=1,
    max_size=5,
)
actions = st.lists(
    st.one_of(
        messages.map(lambda m: ("send", m)),
        st.sampled_from(["step", "step", "save", "crash", "fail", "flush"]).map(
            lambda a: (a, None)
        ),
    ),
    max_size=25,
)


def play(bench: Bench, script: list[tuple[str, Any]], faults: bool) -> list[list[Any]]:
    """Flushes come at the same place of the input in both runs: only when all of it is read."""
    for action, content in script:
        if action == "send":
            bench.send(content)
        elif action == "flush":
            settle(bench)
            bench.job.flush()
            bench.job.step()
        elif not faults:
            continue
        elif action == "step":
            bench.job.step()
        elif action == "save":
            bench.job._save(flushing=False)
        elif action == "crash":
            bench.crash()
        else:
            fail(bench)
    settle(bench)
    return bench.results()


def settle(bench: Bench) -> None:
    while bench.job.step():
        pass


def fail(bench: Bench) -> None:
    """The process ends between the commits of a step: the first log has it, the others do not."""
    commit, done = LogWriter.commit, []

    def once(writer: LogWriter) -> int:
        if done:
            raise KeyboardInterrupt
        done.append(1)
        return commit(writer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogWriter, "commit", once)
        try:
            bench.job.step()
        except KeyboardInterrupt:
            bench.crash()


@given(actions)
def test_every_output_once_whatever_happens(script: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        calm, rough = Bench(Path(folder, "calm")), Bench(Path(folder, "rough"))
        try:
            wanted = play(calm, script, faults=False)
            assert play(rough, script, faults=True) == wanted
            assert rough.job.observed().records_in == calm.job.observed().records_in
        finally:
            calm.close()
            rough.close()


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    made = Bench(tmp_path)
    yield made
    made.close()


def reading(second: int, x: int = 1) -> dict[str, Any]:
    return {"time": BASE + second * 1000, "x": x, "k": "a"}


def test_a_crash_in_the_middle_of_a_flush(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.send([reading(0), reading(1)])
    settle(bench)
    saves: list[bool] = []
    save = GatewayJob._save

    def dying(job: GatewayJob, flushing: bool) -> None:
        saves.append(flushing)
        if len(saves) == 2:
            raise KeyboardInterrupt
        save(job, flushing)

    monkeypatch.setattr(GatewayJob, "_save", dying)
    bench.job.flush()
    with pytest.raises(KeyboardInterrupt):
        bench.job.step()
    assert saves == [True, False]
    monkeypatch.undo()
    bench.crash()
    settle(bench)
    assert [r["sum_x"] for r in bench.read(out_log("j"))] == [2]


def test_parameters_count_from_where_they_were_given(bench: Bench) -> None:
    work = Steps(({"op": "filter", "when": "x > 0"}, {"op": "sample", "fraction": 1}))
    bench.entry = LedgerEntry(assignment(work=work), "2", 0)
    bench.crash()
    bench.send([reading(i) for i in range(5)])
    settle(bench)
    bench.job.update(assignment(work=work, parameters={"fraction": 0}))
    bench.entry = bench.job.entry
    bench.crash()
    bench.send([reading(i) for i in range(5, 10)])
    settle(bench)
    assert len(bench.read(out_log("j"))) == 5
    assert bench.job.observed().records_in == 10


def test_new_parameters_are_taken_over_with_the_next_message(bench: Bench) -> None:
    state = bench.root / "state" / "j.json"
    bench.job.update(assignment(parameters={"window": 3}))
    settle(bench)
    assert not state.exists()
    bench.send([reading(0), reading(9)])
    settle(bench)
    assert json.loads(read_state(state))["parameters"] == {"window": 3}
    assert [r["sum_x"] for r in bench.read(out_log("j"))] == [1]


def test_a_job_that_has_seen_nothing_has_no_files(bench: Bench) -> None:
    settle(bench)
    bench.job.close()
    assert bench.logs.topics() == ["in/x"]
    assert not (bench.root / "state" / "j.json").exists()
    bench.open()


def test_what_an_earlier_job_of_the_name_left_does_not_count(bench: Bench) -> None:
    bench.send([reading(0, x=5)])
    settle(bench)
    bench.job.close()
    bench.entry = LedgerEntry(assignment(), "2", bench.job.position)
    bench.open()
    bench.send([reading(0), reading(9)])
    settle(bench)
    assert bench.job.observed().records_in == 2
    assert [r["sum_x"] for r in bench.read(out_log("j"))] == [1]


def test_a_crash_before_the_first_checkpoint_goes_on_from_the_beginning(bench: Bench) -> None:
    bench.send([reading(0)])
    settle(bench)
    bench.crash()
    bench.send([reading(9)])
    settle(bench)
    assert bench.job.observed().records_in == 2
    assert [r["sum_x"] for r in bench.read(out_log("j"))] == [1]


def test_no_space_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = LogWriter.commit

    def full(writer: LogWriter) -> int:
        writer.rollback()
        raise LogFull("no space left")

    bench.send([reading(0), reading(5)])
    monkeypatch.setattr(LogWriter, "commit", full)
    bench.job.step()
    bench.job.step()
    assert "no space" in bench.job.observed().problem
    monkeypatch.setattr(LogWriter, "commit", commit)
    settle(bench)
    assert [r["sum_x"] for r in bench.read(out_log("j"))] == [1]
    assert bench.job.observed().state == "running"


def test_a_job_that_is_not_to_run_waits(bench: Bench) -> None:
    bench.job.update(assignment(running=False))
    bench.send([reading(0), reading(9)])
    settle(bench)
    assert bench.job.observed().state == "stopped"
    assert bench.job.lag > 0
    bench.job.update(assignment())
    settle(bench)
    assert len(bench.read(out_log("j"))) == 1


def test_rejects_are_kept_as_at_a_site(bench: Bench) -> None:
    bench.send([b"\xff", b"nonsense", reading(9), reading(0), b"{" * 100_000])
    settle(bench)
    _, bad, late = bench.results()
    assert [r["kind"] for r in bad + late] == ["bad"] * 3 + ["late"]
    assert bad[0]["base64"]
    assert bad[1]["record"] == "nonsense"
    assert len(bad[2]["record"]) == 64 << 10
    assert late[0]["reason"] == "its window was emitted already"
    assert {r["topic"] for r in bad + late} == {"d/1"}
    assert bench.job.said


def test_a_job_that_has_seen_nothing_has_made_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Assignment] = []
    make = job_module.make_chain
    monkeypatch.setattr(
        job_module, "make_chain", lambda given, *rest: (made.append(given), make(given, *rest))[1]
    )
    bench.entry = replace(bench.entry, counts=(7, 6, 5, 4, 3))
    job = bench.open()
    assert not job.step()
    assert (job.observed().records_in, job.counts) == (7, (7, 6, 5, 4, 3))
    assert made == []
    bench.send([{"x": 1, "k": "a", "time": BASE}])
    assert job.step()
    assert (job.observed().records_in, len(made)) == (8, 1)
