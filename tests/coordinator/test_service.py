"""What is asked of a coordinator becomes so at made-up nodes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fogline.common.errors import (
    ConflictError,
    DataError,
    NotFoundError,
    PipelineError,
    UnavailableError,
)
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.pipelines.changes import apply_actions, merge_pipelines
from fogline.coordinator.pipelines.ports import START, STOP, UNINSTALL, UPDATE, Action
from fogline.coordinator.reconcile.decide import replay
from fogline.coordinator.reconcile.loop import Loop
from fogline.coordinator.reconcile.planner import DesiredState
from fogline.coordinator.reconcile.state import Memory
from fogline.coordinator.reconcile.status import progress
from fogline.gateway.jobs.checks import read_assignments
from fogline.model.nodes import GATEWAY, OFFLINE, ONLINE, SITE, Node, Observed
from tests.coordinator.kit import FakeControl, Rig, chain, composition
from tests.waiting import wait_for

pytestmark = pytest.mark.site

Make = Callable[..., Rig]


def put(rig: Rig, text: str, name: str = "p", **more: Any) -> dict[str, Any]:
    return rig.service.put_pipeline(name, text, "yaml", **more)


def states(rig: Rig) -> dict[str, str]:
    return {job["name"]: job["state"] for job in rig.service.jobs()}


def test_the_store_stays_small(make_rig: Make, tmp_path: Path) -> None:
    service = make_rig().begin().service
    for limit in range(5):
        service.put_pipeline("p", composition(300, limit=limit), "yaml")
    ahead = (tmp_path / "coordinator.db-wal").stat().st_size
    service.delete_pipeline("p")
    assert max(ahead, (tmp_path / "coordinator.db-wal").stat().st_size) < 200_000


def test_a_pipeline_is_put_changed_and_deleted(make_rig: Make) -> None:
    rig = make_rig().begin()
    told = put(rig, composition(3))
    assert (told["changed"], told["revision"], told["empty"]) == (True, 1, False)
    wait_for(lambda: states(rig) == dict.fromkeys(("job-0", "job-1", "job-2"), "running"))
    order = [job for _, op, jobs in rig.control.sent for job in jobs if op == "install"]
    assert order == ["job-2", "job-1", "job-0"]

    sent = len(rig.control.sent)
    again = put(rig, composition(3))
    assert (again["changed"], again["revision"], again["empty"]) == (False, 1, True)
    shown = put(rig, composition(2), dry_run=True)
    assert (shown["changed"], shown["dry_run"], shown["empty"]) == (False, True, False)
    assert len(rig.control.sent) == sent

    put(rig, composition(2))
    wait_for(lambda: rig.control.jobs_at("north") == {"job-0", "job-1"})
    put(rig, composition(2, site="south"))
    wait_for(lambda: rig.control.jobs_at("south") == {"job-0", "job-1"})
    wait_for(lambda: rig.control.jobs_at("north") == set())
    rig.service.delete_pipeline("p")
    wait_for(lambda: rig.control.jobs_at("south") == set())
    with pytest.raises(NotFoundError):
        rig.service.delete_pipeline("p")


def test_what_is_wrong_in_a_text_is_told_and_nothing_changes(make_rig: Make) -> None:
    rig = make_rig()
    with pytest.raises(PipelineError):
        put(rig, composition(2, site="nowhere"))
    with pytest.raises(PipelineError):
        put(rig, composition(2).replace("clean:clean", "clean:other"))
    with pytest.raises(DataError):
        put(rig, composition(1), name="a/b")
    with pytest.raises(DataError):
        rig.service.put_pipeline("p", "", "exe")
    assert rig.service.pipelines() == []


def test_a_job_alone_is_a_pipeline_of_one(make_rig: Make) -> None:
    rig = make_rig().begin()
    description = {
        "job_name": "lonely",
        "site": "north",
        "job_path": "clean.py",
        "entry_class": "clean:clean",
        "source_topic": "in",
        "sink_topic": "out",
    }
    assert rig.service.post_job(description)["changed"]
    assert not rig.service.post_job(description)["changed"]
    with pytest.raises(ConflictError):
        rig.service.post_job({**description, "sink_topic": "other"})
    wait_for(lambda: rig.service.job("lonely")["state"] == "running")
    told = rig.service.job("lonely")
    assert (told["pipeline"], told["node"], told["runs"]) == ("lonely", "north", ["r1"])
    assert told["records_in"] == 7
    rig.service.delete_job("lonely")
    wait_for(lambda: rig.control.jobs_at("north") == set())
    assert rig.service.pipelines() == []
    with pytest.raises(NotFoundError):
        rig.service.delete_job("lonely")


def test_a_job_is_stopped_started_and_given_parameters(make_rig: Make) -> None:
    rig = make_rig().begin()
    put(rig, composition(1))
    rig.service.patch_job("job-0", {}, False)
    wait_for(lambda: states(rig) == {"job-0": "stopped"})
    assert rig.service.patch_job("job-0", {"limit": 9}, True)["parameters"] == {"limit": 9}
    assert not rig.service.patch_job("job-0", {"limit": 9}, None)["changed"]
    wait_for(lambda: states(rig) == {"job-0": "running"})
    assert put(rig, composition(1))["diff"]["counts"] == {"updated": 1}
    with pytest.raises(NotFoundError):
        rig.service.patch_job("other", {}, True)


def test_what_a_job_said(make_rig: Make) -> None:
    rig = make_rig()
    put(rig, composition(1))
    assert rig.service.logs("job-0", 5) == {"lines": ["job-0 says"] * 2}
    rig.control.refuse.add("job-0")
    with pytest.raises(UnavailableError, match="cannot run job-0"):
        rig.service.logs("job-0", 5)
    rig.control.set_state("north", OFFLINE)
    with pytest.raises(UnavailableError, match="cannot be asked"):
        rig.service.logs("job-0", 5)


def test_a_full_disk_keeps_nobody_from_being_told(
    make_rig: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RepositoryError("the disk is full")

    rig = make_rig()
    put(rig, composition(1))
    monkeypatch.setattr(rig.store, "log", full)
    monkeypatch.setattr(rig.store, "remember_nodes", full)
    rig.loop.round()
    assert rig.control.jobs_at("north") == {"job-0"}
    assert rig.loop.failures == 2


def test_a_gone_node_keeps_its_jobs_and_catches_up(make_rig: Make) -> None:
    rig = make_rig().begin()
    put(rig, composition(1))
    wait_for(lambda: states(rig) == {"job-0": "running"})
    rig.control.set_state("north", OFFLINE)
    put(rig, composition(1, limit=2))
    wait_for(lambda: states(rig) == {"job-0": "unreachable"})
    rig.service.delete_pipeline("p")
    put(rig, composition(1, prefix="next"))
    assert rig.control.jobs_at("north") == {"job-0"}
    rig.control.set_state("north", ONLINE)
    wait_for(lambda: rig.control.jobs_at("north") == {"next-0"})


def test_progress_counts_states_and_what_is_still_where_it_should_not_be(make_rig: Make) -> None:
    rig = make_rig()
    assert rig.service.progress() == {"jobs": 0, "states": {}, "extra": 0, "settled": True}
    rig.service.put_pipeline("p", composition(3), "yaml")
    assert rig.service.progress() == {
        "jobs": 3, "states": {"waiting": 3}, "extra": 0, "settled": False,
    }  # fmt: skip
    rig.begin()
    wait_for(lambda: rig.service.progress()["states"] == {"running": 3})
    rig.control.set_state("north", "gone")
    rig.service.delete_pipeline("p")
    assert rig.service.progress() == {"jobs": 0, "states": {}, "extra": 3, "settled": False}
    rig.control.set_state("north", "online")
    wait_for(lambda: rig.service.progress()["extra"] == 0)


def test_a_job_that_nobody_is_told_of_is_not_settled() -> None:
    (job,) = chain("p", 1).jobs
    assert not progress(DesiredState(jobs={job.name: ("p", job)}), {})["settled"]
    assert progress(DesiredState(), {})["settled"]


def test_progress_waits_until_all_is_as_wanted(make_rig: Make) -> None:
    rig = make_rig()
    rig.service.put_pipeline("p", composition(3), "yaml")
    assert not rig.service.progress(settle=0.01)["settled"]
    with ThreadPoolExecutor() as pool:
        told = pool.submit(rig.service.progress, 60.0)
        rig.begin()
        assert told.result(30)["states"] == {"running": 3}
        rig.control.set_state("north", OFFLINE)
        rig.service.delete_pipeline("p")
        told = pool.submit(rig.service.progress, 60.0)
        with pytest.raises(TimeoutError):
            told.result(0.2)
        rig.control.set_state("north", ONLINE)
        assert told.result(30)["settled"]


def test_a_refusal_is_the_jobs_problem_and_stops_nobody_else(make_rig: Make) -> None:
    rig = make_rig().begin()
    rig.control.refuse.add("bad-0")
    put(rig, composition(1, prefix="bad"), "bad")
    put(rig, composition(1, prefix="good"), "good")
    wait_for(lambda: states(rig) == {"bad-0": "waiting", "good-0": "running"})
    wait_for(lambda: "cannot run bad-0" in rig.service.job("bad-0")["problem"])


def test_a_job_says_whom_it_waits_for(make_rig: Make) -> None:
    rig = make_rig().begin()
    rig.control.refuse.add("job-1")
    put(rig, composition(2))
    wait_for(lambda: "cannot run job-1" in rig.service.job("job-1")["problem"])
    assert rig.service.job("job-0")["problem"].startswith("waits for job-1 at north")
    assert [jobs for _, _, jobs in rig.control.sent] == [("job-1",)]


def test_a_restarted_coordinator_knows_everything_and_does_nothing(make_rig: Make) -> None:
    rig = make_rig().begin()
    put(rig, composition(3))
    wait_for(lambda: set(states(rig).values()) == {"running"})
    rig.loop.stop()
    control = rig.control
    control.forget("south")
    sent = len(control.sent)
    again = make_rig(control=control)
    for _ in range(3):
        again.loop.round()
    assert len(control.sent) == sent
    assert {node["name"]: node["state"] for node in again.service.nodes()} == {
        "north": ONLINE,
        "south": OFFLINE,
    }
    again.service.delete_pipeline("p")
    for _ in range(8):
        again.loop.round()
    removed = [job for _, op, jobs in control.sent for job in jobs if op == "remove"]
    assert removed == ["job-0", "job-1", "job-2"]
    assert again.service.forget_node("south")["forgotten"]
    with pytest.raises(ConflictError):
        again.service.forget_node("north")


def test_the_order_of_removals_survives_a_restart(make_rig: Make) -> None:
    rig = make_rig()
    put(rig, composition(3))
    for _ in range(6):
        rig.loop.round()
    assert rig.control.jobs_at("north") == {"job-0", "job-1", "job-2"}
    rig.service.delete_pipeline("p")
    again = make_rig(control=rig.control)
    for _ in range(8):
        again.loop.round()
    removed = [job for _, op, jobs in rig.control.sent for job in jobs if op == "remove"]
    assert removed == ["job-0", "job-1", "job-2"]


def test_what_is_for_a_site_that_was_never_seen_waits_and_says_so(make_rig: Make) -> None:
    control = FakeControl()
    control.add(Node("gate", GATEWAY, site="far"))
    rig = make_rig(control=control).begin()
    description = {"name": "j", "site": "gate", "steps": [{"op": "sample", "fraction": 0.5}]}
    rig.service.post_job(description | {"source_topic": "in", "sink_topic": "up"})
    wait_for(lambda: rig.service.job("j")["state"] == "running")
    assert rig.service.job("j")["problem"] == "what it sends to far waits at gate: never seen yet"
    control.add(Node("far", SITE, broker="mqtt://far.invalid:1883"))
    rig.loop.wake()
    wait_for(lambda: not rig.service.job("j")["problem"])
    told = rig.planner.plan().desired["j"].assignment.routes
    assert [route.broker for route in told] == ["mqtt://far.invalid:1883"]
    version = rig.planner.plan().desired["j"].version
    wait_for(lambda: control.views()["gate"].jobs["j"].version == version)


def test_own_jobs_of_a_site_are_left_alone(make_rig: Make) -> None:
    rig = make_rig().begin()
    rig.control.observe("north", Observed("job-0", "v", "running", more={"local": True}))
    put(rig, composition(1))
    wait_for(lambda: "own configuration" in rig.service.job("job-0")["problem"])
    rig.service.delete_pipeline("p")
    rig.loop.stop()
    for _ in range(3):
        rig.loop.round()
    assert rig.control.sent == []


def test_the_loop_survives_what_fails(make_rig: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = make_rig()
    whole = rig.control.views
    monkeypatch.setattr(rig.control, "views", lambda: 1 / 0)
    rig.begin()
    wait_for(lambda: rig.loop.failures > 2)
    monkeypatch.setattr(rig.control, "views", whole)
    put(rig, composition(1))
    wait_for(lambda: states(rig) == {"job-0": "running"})
    wait_for(lambda: rig.service.health()["ok"])
    assert rig.service.health()["failures"] > 2


def test_sending_that_raises_is_tried_again(
    make_rig: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig().begin()
    send, tries = rig.control.send, []

    def fails_first(*arguments: Any) -> Any:
        tries.append(arguments)
        if len(tries) < 2:
            raise OSError("no way")
        return send(*arguments)

    monkeypatch.setattr(rig.control, "send", fails_first)
    put(rig, composition(1))
    wait_for(lambda: states(rig) == {"job-0": "running"})
    assert len(tries) == 2


def test_events_are_told_and_can_be_replayed(make_rig: Make) -> None:
    rig = make_rig().begin()
    put(rig, composition(2))
    wait_for(lambda: set(states(rig).values()) == {"running"})
    rig.loop.stop()
    kinds = [event["kind"] for event in rig.service.events()]
    assert {"pipeline", "node", "sent", "done"} <= set(kinds)
    said, _ = replay(rig.events, Memory(0))
    assert [(c.node, c.op, c.jobs) for c in said] == rig.control.sent


def test_two_hundred_nodes_at_once(make_rig: Make) -> None:
    names = [f"node-{number}" for number in range(200)]
    rig = make_rig(*names)
    texts = [composition(1, site=name, prefix=name).partition("\n")[2] for name in names]
    put(rig, "jobs:\n" + "".join(texts))
    before = time.thread_time()
    rig.loop.round()
    assert len(rig.control.sent) == 200
    assert time.thread_time() - before < 5


def test_a_thousand_jobs_are_compared_fast(make_rig: Make) -> None:
    """In the time of this thread alone: other tests may run beside it."""
    rig = make_rig()
    put(rig, composition(1000))
    before = time.thread_time()
    told = put(rig, composition(1000, limit=2), dry_run=True)
    assert time.thread_time() - before < 2
    assert told["diff"]["counts"] == {"updated": 1000}


def test_actions_of_deployment_plans() -> None:
    old = {"p": chain("p", 2), "q": chain("q", 1, prefix="other")}
    actions = [
        Action(UPDATE, "job-0", {"threshold": 5}),
        Action(STOP, "job-0"),
        Action(UNINSTALL, "job-1"),
        Action(STOP, "other-0"),
        Action(START, "other-0"),
    ]
    changed = apply_actions(old, actions)
    assert list(changed) == ["p"]
    (job,) = changed["p"].jobs
    assert (job.parameters, job.running) == ({"threshold": 5}, False)
    with pytest.raises(NotFoundError):
        apply_actions(old, [Action(STOP, "nobody")])
    with pytest.raises(DataError):
        apply_actions(old, [Action("dance", "job-0")])
    assert merge_pipelines(old["p"], chain("p", 1)) == old["p"]
    assert len(merge_pipelines(None, chain("p", 1)).jobs) == 1


def test_a_loop_that_never_began_can_be_stopped(make_rig: Make) -> None:
    rig = make_rig()
    assert isinstance(rig.loop, Loop)
    assert not rig.service.health()["ok"]
    rig.loop.stop()


# ── what only all pipelines together show ────────────────────────────────────────────────────────


def job(name: str, source: str, sink: str, **more: Any) -> dict[str, Any]:
    work = {} if "steps" in more else {"job_path": "clean.py", "entry": "clean:clean"}
    found = {"job_name": name, "site": "north", "source_topic": source, "sink_topic": sink}
    return found | work | more


def with_gateway(rig: Rig) -> Rig:
    rig.control.add(Node("gate", GATEWAY, broker="mqtt://gate.invalid:1883", site="north"))
    return rig


def test_jobs_posted_one_by_one_may_not_feed_one_another_in_a_circle(make_rig: Make) -> None:
    rig = make_rig()
    rig.service.post_job(job("y1", "y/1", "y/2"))
    with pytest.raises(PipelineError, match="y2 -> y1 -> y2") as refused:
        rig.service.post_job(job("y2", "y/2", "y/1"))
    assert "it goes through y1" in str(refused.value)
    assert list(states(rig)) == ["y1"]


def test_pipelines_may_not_make_a_circle_together(make_rig: Make) -> None:
    rig = make_rig()
    put(rig, json.dumps({"jobs": [job("a", "t/1", "t/2")]}), "one")
    text = json.dumps({"jobs": [job("b", "t/+", "t/1")]})
    with pytest.raises(PipelineError, match="in a circle"):
        put(rig, json.dumps({"jobs": [job("b", "t/2", "t/1")]}), "two")
    with pytest.raises(PipelineError, match="in a circle"):
        put(rig, text, "two", dry_run=True)
    put(rig, json.dumps({"jobs": [job("b", "t/2", "t/3")]}), "two")


def test_what_only_shows_beside_other_pipelines_is_told_with_its_place(make_rig: Make) -> None:
    rig = with_gateway(make_rig())

    def places(text: str, name: str, format: str = "yaml") -> list[tuple[str, int, int, str]]:
        with pytest.raises(PipelineError) as refused:
            rig.service.put_pipeline(name, text, format)
        found = refused.value.problems
        return [(item.code, item.line, item.column, item.source) for item in found]

    put(rig, json.dumps({"jobs": [job("a", "t/1", "t/2")]}), "one")
    circle = "jobs:\n- name: b\n  site: north\n  job_path: clean.py\n  entry: clean:clean\n"
    circle += "  source_topic: t/2\n  sink_topic: t/1\n"
    assert places(circle, "two") == [("CYCLE", 2, 9, "- name: b")]
    taken = circle.replace("name: b", "name:   a").replace("t/1", "t/9")
    assert places(taken, "two") == [("EXISTS", 2, 11, "- name:   a")]
    steps = "jobs:\n- {name: c, site: gate, steps: [], source_topic: x, sink_topics: "
    steps += "[{topic: y, site: gate}]}"
    steps += "\n- {name: d, site: gate, steps: [], source_topic: y, sink_topic: z}\n"
    assert [place[:3] for place in places(steps, "three")] == [("GATEWAY", 2, 10)]
    operation = {"OP-ID": "a", "source": "x", "task": {"Type": "deploy", "binary": "forward"}}
    operation["task"] |= {"Arguments": {"publish.topic": "y"}}  # type: ignore[operator]
    plan = [{"Operation": operation}, {"Placement": [{"OP ID": "a", "P ID": "gate"}]}]
    text = json.dumps({"Computation": plan}, indent=1)
    rig.service.put_pipeline("four", text, "plan")
    line = next(i for i, part in enumerate(text.splitlines(), 1) if '"P ID"' in part)
    assert [place[:2] for place in places(text, "five", "plan")] == [("EXISTS", line)]


def test_a_query_whose_job_is_called_like_another_one_is_refused(make_rig: Make) -> None:
    rig = make_rig()
    rig.service.post_job(job("q-south", "t/1", "t/2"))
    text = (
        's = STREAM FROM mqtt(topic="t", format="json", time="at", nodes="south");\n'
        "m = COMPUTE AVG(x, 10 s) EVERY 10 s;"
    )
    with pytest.raises(PipelineError, match="a job q-south already, in pipeline q-south"):
        rig.service.put_pipeline("q", text, "ins")


def test_a_query_file_that_is_deployed_again_is_compared_with_what_is_stored(
    make_rig: Make,
) -> None:
    stream = 's = STREAM FROM mqtt(topic="t", format="json", time="at", nodes="south");\n'
    mean = "m = COMPUTE AVG(x, 10 s) EVERY 10 s;\n"
    most = "n = COMPUTE MAX(x, 10 s) EVERY 10 s;\n"
    make_rig().service.put_pipeline("q", stream + mean + most, "ins")
    changed = stream + mean + most.replace("MAX", "MIN")
    told = make_rig().service.put_pipeline("q", changed, "ins")
    assert told["text"] == "~ q-south muted n\n+ q-south-2 added at south: n"
    again = make_rig().service
    assert again.job("q-south")["muted"] == ["n"]
    assert again.own_diff("q")["empty"]
    told = again.put_pipeline("q", changed, "ins")
    assert (told["changed"], told["revision"]) == (False, 2)


def test_what_a_gateway_would_refuse_is_refused_before(make_rig: Make) -> None:
    rig = with_gateway(make_rig())
    steps = [{"op": "deadband", "field": "a", "band": 1}]
    two = {
        "job_name": "two",
        "site": "gate",
        "source_topics": [{"topic": "x", "site": "gate"}, {"topic": "y", "site": "north"}],
        "sink_topic": "z",
        "steps": steps,
    }
    with pytest.raises(PipelineError, match=r"two at gate: .*reads from one broker"):
        rig.service.post_job(two)
    first = {"job_name": "first", "site": "gate", "source_topic": "x", "steps": steps}
    first["sink_topics"] = [{"topic": "mid", "site": "gate"}]
    second = {"job_name": "second", "site": "gate", "source_topic": "mid", "steps": steps}
    second["sink_topic"] = "end"
    rig.service.post_job(first)
    with pytest.raises(PipelineError, match="first at gate: a gateway has no logs"):
        rig.service.post_job(second)
    with pytest.raises(PipelineError, match="first at gate: a gateway has no logs"):
        put(rig, json.dumps({"jobs": [first, second]}), "first")


AVERAGE = {
    "Computation": [
        {
            "Operation": {
                "OP-ID": "001",
                "source": "sensors",
                "task": {
                    "Type": "deploy",
                    "binary": "average.dp",
                    "Arguments": {
                        "publish.topic": "temp",
                        "publish.rate": "5",
                        "fields": "value",
                        "input.format": "json",
                    },
                },
            }
        },
        {"Placement": [{"OP ID": "001", "P ID": "gate"}]},
    ]
}


def test_a_plans_own_parameters_can_be_updated(make_rig: Make) -> None:
    rig = with_gateway(make_rig())
    rig.service.put_pipeline("plan", json.dumps(AVERAGE), "plan")
    told = rig.service.patch_job("001@gate", {"publish.rate": 10}, None)
    assert (told["changed"], told["parameters"]) == (True, {"aggregate.window": 10})
    wanted = rig.planner.plan().desired["001@gate"].assignment
    assert [a.job for a in read_assignments([wanted.as_json()])] == ["001@gate"]
    for wrong in ({"nonsense": 1}, {"publish.rate": -3}, {"publish.rate": None}):
        with pytest.raises(DataError, match="job 001@gate"):
            rig.service.patch_job("001@gate", wrong, None)
    assert rig.service.job("001@gate")["parameters"] == {"aggregate.window": 10}


def test_parameters_of_code_are_checked_and_can_be_taken_back(make_rig: Make) -> None:
    rig = make_rig()
    rig.service.post_job(job("a", "t/1", "t/2"))
    with pytest.raises(DataError, match="no parameter unheard: it takes limit"):
        rig.service.patch_job("a", {"unheard": 1}, None)
    assert rig.service.patch_job("a", {"limit": 3}, None)["parameters"] == {"limit": 3}
    assert rig.service.patch_job("a", {"limit": None}, None)["parameters"] == {}


SLOW = """
import pathlib, time
pathlib.Path({begun!r}).touch()
while not pathlib.Path({released!r}).exists():
    time.sleep(0.05)
def f(records): return records
"""


def test_code_that_is_slow_to_import_blocks_nobody(make_rig: Make, tmp_path: Path) -> None:
    begun, released = tmp_path / "begun", tmp_path / "released"
    rig = make_rig()
    put(rig, composition(1), "other")
    code = SLOW.format(begun=str(begun), released=str(released))
    rig.packages.add("slow.py", code.encode())
    slow = job("slow", "s/1", "s/2", job_path="slow.py", entry="slow:f")
    thread = threading.Thread(target=rig.service.post_job, args=(slow,))
    thread.start()
    wait_for(begun.exists, 20, "import that has begun")
    rig.service.delete_pipeline("other")
    assert thread.is_alive()
    released.touch()
    thread.join()
    assert list(states(rig)) == ["slow"]


def test_a_pipeline_stays_bound_to_the_code_it_was_deployed_with(make_rig: Make) -> None:
    rig = make_rig()
    rig.packages.add("jobs.py", b"def f(records): return records\n")
    text = json.dumps({"jobs": [job("a", "t/1", "t/2", job_path="jobs.py", entry="jobs:f")]})
    put(rig, text)
    rig.packages.add("jobs.py", b"def other(records): return records\n")
    assert rig.service.own_diff("p")["empty"]
    with pytest.raises(PipelineError, match="has no function f"):
        put(rig, text, dry_run=True)


def test_a_dry_run_with_other_code_leaves_names_as_they_are(make_rig: Make) -> None:
    rig = make_rig()
    before = rig.packages.add("jobs.py", b"def f(records): return records\n")
    text = json.dumps({"jobs": [job("a", "t/1", "t/2", job_path="jobs.py", entry="jobs:f")]})
    put(rig, text)
    with rig.packages.incoming() as incoming:
        incoming.write(b"def f(records): return records.limit(1)\n")
        other = incoming.keep("jobs.py", named=False)
    shown = put(rig, text, dry_run=True, packages={"jobs.py": other.sha256})
    assert shown["text"] == "~ a changed"
    assert rig.store.aliases()["jobs.py"] == before
    assert put(rig, text, dry_run=True)["empty"]
    with pytest.raises(NotFoundError):
        put(rig, text, packages={"jobs.py": "0" * 64})


def brief(kind: str, **arguments: str) -> str:
    task = {"Type": kind} | ({"Arguments": arguments} if arguments else {})
    operation = {"Operation": {"OP-ID": "001", "task": task}}
    placement = {"Placement": [{"OP ID": "001", "P ID": "gate"}]}
    return json.dumps({"Computation": [operation, placement]})


def test_a_plan_need_not_repeat_what_it_does_not_change(make_rig: Make) -> None:
    rig = with_gateway(make_rig())
    deployed = json.dumps(AVERAGE)
    rig.service.put_pipeline("plan", deployed, "plan")
    before = rig.service.job("001@gate")["description"]

    def done(text: str, name: str = "plan") -> dict[str, Any]:
        rig.service.put_pipeline(name, text, "plan")
        found: dict[str, Any] = rig.service.job("001@gate")["description"]
        return found

    assert done(brief("stop")) == before | {"running": False}
    assert done(brief("start"), "another") == before
    rate = {"aggregate.window": 10}
    assert done(brief("update", **{"publish.rate": "10"})) == before | {"parameters": rate}
    assert rig.service.pipeline("plan")["text"] == deployed
    with pytest.raises(DataError, match="job 001@gate"):
        rig.service.put_pipeline("plan", brief("update", nonsense="1"), "plan")
    assert [p["name"] for p in rig.service.pipelines()] == ["plan"]
    rig.service.put_pipeline("plan", brief("uninstall"), "plan", dry_run=True)
    assert [p["name"] for p in rig.service.pipelines()] == ["plan"]
    told = rig.service.put_pipeline("plan", brief("uninstall"), "plan")
    assert (told["left"], told["text"]) == (0, "- 001@gate removed at gate")
    assert rig.service.pipelines() == []
