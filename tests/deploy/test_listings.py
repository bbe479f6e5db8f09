"""SpecK's two listings and the thesis's deployment plan."""

from __future__ import annotations

import pytest

from fogline.common.errors import PipelineError
from fogline.deploy.diff.diff import ADDED, REDIRECTED, REMOVED, UNCHANGED, UPDATED, diff
from fogline.deploy.diff.order import downstream_first
from fogline.deploy.manifest.deployment_plan import read_deployment_plan
from fogline.deploy.resolve.assign import assignments
from fogline.deploy.resolve.flow import Flow
from fogline.deploy.resolve.resolve import JobAction, Package, Resolved, resolve
from fogline.model.jobs import Assignment, Code, Job, Pipeline, Place, Route, Steps
from tests.deploy.kit import SITES, gateway, no_complaint, resolved, sample, site, topology

CLOUD = topology(
    gateway("PI-1", "ActiveMQ", "mqtt://10.1.0.1:1883"),
    gateway("PI-2", "ActiveMQ"),
    site("ActiveMQ", "10.1.0.9"),
    *(site(f"VM-{number}", f"10.1.1.{number}") for number in (1, 2, 3)),
)
FORECAST = {"timeseries-forecast.jar": Package("abc", "forecast.py")}


def plan(text: str, existing: dict[str, str] | None = None) -> Resolved:
    known = existing or {}
    return resolve(read_deployment_plan(text), CLOUD, FORECAST, no_complaint, known, name="temp")


def test_the_first_listing() -> None:
    made = resolved(sample("listing-1.1.yaml"))
    a, b, c, d = made.pipeline.jobs
    assert [job.node for job in (a, b, c, d)] == ["a", "b", "c", "d"]
    assert a.work == Code("package:ExampleJob", "sha-code/test_1.py", "test_1.py")
    assert a.reads == (Place("T-1", "a"),)
    assert a.writes == b.writes == c.reads == (Place("T-C-filter", "c"),)
    assert made.notes == (
        "T-1 at a is written by no job: devices must publish it",
        "T-2 at b is written by no job: devices must publish it",
    )


def test_line_ends_of_another_system() -> None:
    text = sample("listing-1.1.yaml")
    assert resolved(text.replace("\n", "\r\n")) == resolved(text)


def test_the_routes_of_the_first_listing() -> None:
    told = assignments([resolved(sample("listing-1.1.yaml")).pipeline], SITES)
    assert {name: node for name, (node, _) in told.items()} == {
        "A": "a",
        "B": "b",
        "C": "c",
        "D": "d",
    }
    assert told["A"][1].routes == (Route("link", "T-C-filter", "mqtt://10.0.0.3:1883", "c"),)
    assert told["C"][1].routes == (Route("link", "T-D-merger", "mqtt://10.0.0.4:1883", "d"),)
    assert told["D"][1].routes == (Route("publish", "T-D-total"),)
    assert told["D"][1].reads == (Place("T-D-merger"),)


def test_what_changes_between_the_listings() -> None:
    old = resolved(sample("listing-1.1.yaml")).pipeline
    new = resolved(sample("listing-1.2.yaml")).pipeline
    found = diff(old, new)
    assert {change.job: change.kinds for change in found.changes} == {
        "A": (UNCHANGED,),
        "B": (REMOVED,),
        "C": (REDIRECTED,),
        "C2": (ADDED,),
        "D": (UNCHANGED,),
    }
    assert str(found).splitlines() == [
        "= A unchanged",
        "~ C redirected from T-D-merger at d to T-C2-filter at c",
        "+ C2 added at c",
        "= D unchanged",
        "- B removed at b",
    ]
    assert assignments([new], SITES)["C"][1].routes == (Route("log", "T-C2-filter"),)
    before, after = (assignments([version], SITES)["C"][1] for version in (old, new))
    assert before.computation == after.computation


def test_the_order_of_the_second_listing() -> None:
    jobs = resolved(sample("listing-1.2.yaml")).pipeline.jobs
    assert downstream_first(Flow.of(jobs)) == (("D",), ("C2",), ("C",), ("A",))


def test_the_deployment_plan() -> None:
    made = plan(sample("listing-a.1.json"))
    jobs = {job.name: job for job in made.pipeline.jobs}
    assert list(jobs) == ["001@PI-1", "001@PI-2", "003@VM-1", "003@VM-2", "003@VM-3"]
    assert jobs["001@PI-1"].work == Steps(({"op": "throttle"},))
    assert jobs["001@PI-1"].parameters == {"throttle.seconds": 5}
    assert jobs["001@PI-1"].reads == (Place("sensors", "PI-1"),)
    assert jobs["001@PI-2"].reads == (Place("sensors", "ActiveMQ"),)
    assert jobs["001@PI-2"].writes == (Place("temp-readings", "ActiveMQ"),)
    assert jobs["003@VM-2"].work == Code("forecast:Main", "abc", "forecast.py")
    assert jobs["003@VM-2"].reads == (Place("temp-readings", "ActiveMQ"),)
    assert jobs["003@VM-2"].parameters == {"rdd.bachsize": 1, "spark.workers": 5}
    assert "003@VM-1 writes to no topic: its results stay at VM-1" in made.notes
    assert made.actions == ()


def test_readers_from_afar_get_the_plans_records_from_the_broker() -> None:
    told = assignments([plan(sample("listing-a.1.json")).pipeline], CLOUD)
    assert told["001@PI-1"][1].routes == (
        Route("publish", "temp-readings", "mqtt://10.1.0.9:1883"),
    )
    assert told["003@VM-1"][1].reads == (
        Place("temp-readings", "ActiveMQ", "mqtt://10.1.0.9:1883"),
    )


def test_an_update_changes_only_parameters() -> None:
    text = sample("listing-a.1.json")
    old = plan(text).pipeline
    existing = {job.name: "temp" for job in old.jobs}
    gateways = text.replace('"publish.rate":"5"', '"publish.rate":"10"')
    asked = plan(gateways.replace('"Type":"deploy"', '"Type":"update"', 1), existing)
    assert asked.actions == (
        JobAction("update", "001@PI-1", {"throttle.seconds": 10}),
        JobAction("update", "001@PI-2", {"throttle.seconds": 10}),
    )
    found = diff(old, asked.pipeline)
    assert found.of(UPDATED) == ("001@PI-1", "001@PI-2")
    assert found.counts() == {"updated": 2, "unchanged": 3}


@pytest.mark.parametrize("kind", ["uninstall", "start", "stop"])
def test_actions_of_a_plan(kind: str) -> None:
    text = sample("listing-a.1.json").replace('"Type":"deploy"', f'"Type":"{kind}"', 1)
    asked = plan(text, {"001@PI-1": "temp", "001@PI-2": "temp"})
    assert [(action.kind, action.job) for action in asked.actions] == [
        (kind, "001@PI-1"),
        (kind, "001@PI-2"),
    ]
    jobs = {job.name: job.running for job in asked.pipeline.jobs}
    assert len(jobs) == (3 if kind == "uninstall" else 5)
    assert jobs.get("001@PI-1") == {"uninstall": None, "start": True, "stop": False}[kind]


def test_an_update_of_nothing() -> None:
    text = sample("listing-a.1.json").replace('"Type":"deploy"', '"Type":"update"', 1)
    with pytest.raises(PipelineError, match="there is no job 001@PI-1 to update"):
        plan(text)


def test_uninstalling_nothing_is_a_note() -> None:
    text = sample("listing-a.1.json").replace('"Type":"deploy"', '"Type":"uninstall"', 1)
    made = plan(text)
    assert made.actions == ()
    assert "001@PI-1 is not there: nothing to uninstall" in made.notes


def test_plain_objects_say_the_same_as_lists_of_objects() -> None:
    text = """{"Computation": {"Operations": [
        {"OP_ID": "001", "source": "sensors", "target": "002", "node": {"metadata": {"ID": "GW"}},
         "task": {"Type": "install", "binary": "average.dp",
                  "Arguments": {"publish.topic": "t", "publish.rate": 5, "fields": "temp"}}},
        {"OP ID": "002", "source": "001", "node": {"metadata": {"ID": "DI"}},
         "task": {"type": "Ingestion", "arguments": {"topic": "t"}}}],
        "Placement": {"001": ["PI-1"], "002": "PI-2"}}}"""
    (job,) = plan(text).pipeline.jobs
    assert job.name == "001@PI-1"
    assert job.work == Steps(({"op": "aggregate", "functions": ["avg"], "fields": ["temp"]},))
    assert job.parameters == {"aggregate.window": 5}
    assert job.writes == (Place("t", "ActiveMQ"),)


def test_operations_that_name_one_another() -> None:
    text = """{"Operations": [
        {"OP-ID": "1", "source": "s", "target": "2",
         "task": {"Type": "deploy", "binary": "filter.dp",
                  "Arguments": {"publish.topic": "t", "condition": "x > 3"}}},
        {"OP-ID": "2", "source": "1",
         "task": {"Type": "deploy", "binary": "q.ins", "Arguments": {}}}],
        "Placement": {"1": "PI-1", "2": "VM-1"}}"""
    files = {"q.ins": 's = STREAM FROM mqtt(topic="x");\na = COMPUTE AVG(v, 9 s) EVERY 9 s;'}
    composition = read_deployment_plan(text)
    assert composition.query_files == ("q.ins",)
    made = resolve(composition, CLOUD, {}, no_complaint, {}, files=files)
    first, second = made.pipeline.jobs
    assert first.work == Steps(({"op": "filter"},))
    assert first.parameters == {"filter.when": "x > 3"}
    assert first.writes == second.reads == (Place("t", "VM-1"),)


def problems_of(text: str) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        plan(text)
    return [f"{p.line}:{p.column} {p.code} {p.message}" for p in caught.value.problems]


def test_what_cannot_be_read_of_a_plan_hides_nothing_of_the_rest() -> None:
    text = """{"Operations": [
        {"OP-ID": "1", "colour": "red", "source": "s", "task": {"Type": "deploy"}},
        {"OP-ID": "2", "source": "1", "task": {"Type": "deply", "binary": "filter.dp"}},
        {"OP-ID": "3", "source": "nobody",
         "task": {"Type": "deploy", "binary": "filtr.dp", "Arguments": {"publish.topic": "t"}}}],
        "Placement": {"1": "PI-1", "2": "VM-7", "3": ["PI-1", "VM-7"]}}"""
    assert [told.split(" ", 2)[:2] for told in problems_of(text)] == [
        ["2:19", "MISSING"],
        ["2:24", "FIELD"],
        ["3:56", "ACTION"],
        ["5:47", "STEP"],
        ["6:63", "SITE"],
    ]


def test_what_is_wrong_with_a_plan_is_told_with_its_place() -> None:
    text = sample("listing-a.1.json")
    assert problems_of(text.replace("PI-2", "PI-7")) == [
        "95:32 SITE there is no node 'PI-7'",
    ]
    assert problems_of(text.replace('"spark.workers":"5"', '"spark.workers"5"')) == [
        "88:33 SYNTAX invalid JSON: expected ':'",
    ]
    assert problems_of(text.replace('"Type":"ingestion"', '"Type":"ingest"')) == [
        "54:21 ACTION operation 002 has no task type 'ingest'",
    ]
    assert problems_of(text.replace("filter.dp", "fliter.dp"))[0] == (
        "26:23 STEP a gateway has no 'fliter.dp'"
    )
    assert problems_of(text.replace('"OP ID":"003"', '"OP ID":"004"')) == [
        "97:32 PLACEMENT 004 is placed, but there is no such operation",
    ]
    assert problems_of("{}") == ["1:1 MISSING a deployment plan has operations"]


def test_the_parts_of_a_pipeline_survive_json() -> None:
    made = plan(sample("listing-a.1.json")).pipeline
    again = Pipeline(made.name, tuple(Job.from_json(job.as_json()) for job in made.jobs))
    assert again == made
    for _, assignment in assignments([made], CLOUD).values():
        assert Assignment.from_json(assignment.as_json()) == assignment


def test_names_of_nodes_alone_with_commas_and_as_numbers() -> None:
    text = (
        '{"Operation": {"OP-ID": "r", "source": "x", "task": {"Type": "deploy", "binary": "b"}},\n'
        ' "Placement": {"r": ["PI-1", " PI-2 ,VM-1", "", 7, "PI-1"]}}'
    )
    jobs = read_deployment_plan(text).jobs
    assert [job.name.text for job in jobs] == ["r@PI-1", "r@PI-2", "r@VM-1", "r@7"]
    assert all(job.site is not None and not job.site.plain for job in jobs)
    assert [job.name.at.column for job in jobs] == [52, 30, 30, 49]
