"""The loop's rests and its log: much that is heard costs few looks, and nothing waits for long."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fogline.coordinator.api import service
from fogline.coordinator.reconcile import loop as module
from fogline.coordinator.reconcile.loop import Outstanding
from fogline.coordinator.reconcile.state import Look
from fogline.model.nodes import ONLINE
from tests.coordinator.kit import CODE, FakeControl, Rig, composition
from tests.waiting import wait_for

pytestmark = pytest.mark.site

SECONDS = 60.0
"""Longer than any test may take: who waits it out fails."""


def rested(outstanding: Outstanding) -> threading.Event:
    """Set when a rest of a minute is over."""
    over = threading.Event()

    def rest() -> None:
        outstanding.rest(SECONDS)
        over.set()

    threading.Thread(target=rest, daemon=True).start()
    return over


def test_the_last_answer_ends_the_rest() -> None:
    outstanding = Outstanding()
    outstanding.look()
    for _ in range(3):
        outstanding.add()
    over = rested(outstanding)
    outstanding.note_answers()
    outstanding.note_answers()
    assert not over.wait(0.05)
    outstanding.note_answers()
    assert over.wait(SECONDS / 2)


def test_an_answer_that_came_before_the_rest_counts_until_it_is_looked_at() -> None:
    outstanding = Outstanding()
    outstanding.look()
    outstanding.add()
    outstanding.note_answers()
    assert rested(outstanding).wait(SECONDS / 2)
    outstanding.look()
    assert not rested(outstanding).wait(0.05)
    outstanding.hurry()


def test_who_is_in_a_hurry_ends_the_rest() -> None:
    outstanding = Outstanding()
    over = rested(outstanding)
    outstanding.hurry()
    assert over.wait(SECONDS / 2)


def test_counting_is_for_many_threads() -> None:
    outstanding = Outstanding()
    for _ in range(2_000):
        outstanding.add()
    outstanding.look()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2_000):
            pool.submit(outstanding.note_answers)
    assert rested(outstanding).wait(SECONDS / 2)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rests are as if every round took very long."""
    monkeypatch.setattr(module, "REST_SHARE", 1e9)
    monkeypatch.setattr(module, "LONGEST_REST", 5.0)


def deployed(tmp_path: Path, jobs: int) -> Rig:
    rig = Rig(tmp_path, FakeControl("north"))
    rig.packages.add("clean.py", CODE.encode())
    rig.service.put_pipeline("p", composition(jobs), "yaml")
    return rig


@pytest.mark.usefixtures("slow")
def test_a_chain_goes_on_with_every_answer(tmp_path: Path) -> None:
    """Twenty steps one after the other, none of which waits for a rest of five seconds."""
    rig = deployed(tmp_path, 20).begin()
    try:
        wait_for(lambda: len(rig.control.jobs_at("north")) == 20, 40)
    finally:
        rig.end()


@pytest.mark.usefixtures("slow")
def test_what_comes_while_it_rests_is_taken_together(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FakeControl("north")).begin()
    try:
        wait_for(lambda: rig.events)
        for _ in range(500):
            rig.control.set_state("north", ONLINE)
    finally:
        rig.end()
    assert sum(isinstance(event, Look) for event in rig.events) < 10


def test_nodes_are_told_before_a_change_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_REPORT_SECONDS", SECONDS)
    rig = deployed(tmp_path, 1).begin()
    try:
        wait_for(lambda: rig.control.jobs_at("north"))
        for limit in range(2, 6):
            rig.service.put_pipeline("p", composition(1, limit=limit), "yaml")
            assert len(rig.control.sent) == limit
        rig.service.delete_pipeline("p")
        assert rig.control.sent[-1][1] == "remove"
    finally:
        rig.end()


def test_who_is_in_a_hurry_does_not_wait_for_a_loop_that_does_not_run(tmp_path: Path) -> None:
    rig = deployed(tmp_path, 1)
    rig.loop.hurry(1e9)
    rig.end()


def test_the_log_is_written_now_and_then_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_SECONDS", SECONDS)
    rig = deployed(tmp_path, 3)
    writes: list[int] = []
    write = rig.store.log
    monkeypatch.setattr(
        rig.store, "log", lambda entries: (writes.append(len(entries)), write(entries))[1]
    )
    for _ in range(10):
        rig.loop.round()
    assert len(writes) == 1
    rig.loop.stop()
    assert len(writes) == 2
    kinds = [event["kind"] for event in rig.service.events()]
    assert kinds.count("sent") == kinds.count("done") == 3
    rig.store.close()


def test_what_many_nodes_are_asked_at_once_is_one_line_of_the_log(tmp_path: Path) -> None:
    names = [f"site-{number:02}" for number in range(30)]
    rig = Rig(tmp_path, FakeControl(*names))
    rig.packages.add("clean.py", CODE.encode())
    text = "".join(
        f"- {{job_name: at-{name}, site: {name}, job_path: clean.py, entry: 'clean:clean',"
        f" source_topic: in, sink_topic: out}}\n"
        for name in names
    )
    rig.service.put_pipeline("p", f"jobs:\n{text}", "yaml")
    for _ in range(3):
        rig.loop.round()
    rig.loop.stop()
    events = {event["kind"]: event for event in rig.service.events()}
    assert len(rig.control.sent) == 30
    for kind in ("sent", "done"):
        assert (events[kind]["op"], events[kind]["of"]) == ("install", 30)
        assert events[kind]["nodes"] == names[: module.MOST_SHOWN]
    rig.store.close()


def test_a_job_that_did_not_change_is_wanted_as_it_was(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FakeControl("north"))
    rig.packages.add("clean.py", CODE.encode())
    rig.service.put_pipeline("p", composition(5), "yaml")
    before = rig.planner.plan().desired
    changed = composition(5).replace("limit: 1", "limit: 2", 1)
    rig.service.put_pipeline("p", changed, "yaml")
    after = rig.planner.plan().desired
    assert [name for name in after if after[name] is not before[name]] == ["job-0"]
    assert after["job-0"].version != before["job-0"].version
    rig.store.close()
