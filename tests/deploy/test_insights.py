"""Query files over nodes: which jobs they become, where, and what they read and write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fogline.common import settings
from fogline.common.errors import DataError, PipelineError, QueryError
from fogline.deploy.diff.diff import REMOVED, UNCHANGED, diff
from fogline.deploy.query.insights import deploy_query
from fogline.deploy.resolve.assign import assignments
from fogline.deploy.resolve.flow import Flow, find_cycle
from fogline.deploy.resolve.topology import Topology
from fogline.gateway.jobs.chain import Chain
from fogline.model.jobs import FIRST, SECOND, WHOLE, Job, Pipeline, Query, Steps
from fogline.model.nodes import NO_ENGINE, OFFLINE, ONLINE, Node, NodeView
from fogline.plan.analysis.query_file import check_text

STREAM = 's = STREAM FROM mqtt(topic="city/+", format="json", time="at");\n'
MEAN = "mean = COMPUTE AVG(x, 60 s) BY room EVERY 10 s"


def topology(*nodes: Node) -> Topology:
    return Topology.of(NodeView(node, ONLINE, 0.0) for node in nodes)


def site(name: str, tier: str = "", memory: int = 1000) -> Node:
    port = 1883 + sum(name.encode())
    labels = {"tier": tier} if tier else {}
    return Node(name, "site", f"mqtt://10.0.0.1:{port}", memory_mb=memory, labels=labels)


EDGES = (site("e1", "edge"), site("e2", "edge"))
CLOUD = site("cloud", "cloud")
GATEWAY = Node("gw", "gateway", "mqtt://10.0.0.9:1", site="e1")


def jobs(text: str, *nodes: Node) -> dict[str, Job]:
    made = deploy_query(STREAM + text, "p", topology(*nodes))
    assert assignments([made], topology(*nodes)).keys() == {job.name for job in made.jobs}
    for job in made.jobs:
        if isinstance(job.work, Query):
            check_text(job.work.text, settings.load())
    return {job.name: job for job in made.jobs}


def stage(job: Job) -> str:
    assert isinstance(job.work, Query)
    return job.work.stage


def text_of(job: Job) -> str:
    assert isinstance(job.work, Query)
    return job.work.text


def test_one_site_computes_everything() -> None:
    (job,) = jobs(MEAN, site("only")).values()
    assert (job.name, job.node, stage(job)) == ("p-only", "only", WHOLE)
    assert [str(place) for place in job.reads] == ["city/+ at only"]


def test_a_site_without_an_engine_takes_no_part() -> None:
    store = replace(site("store", memory=9000), engine=NO_ENGINE)
    (job,) = jobs(MEAN, site("only"), store).values()
    assert job.node == "only"
    with pytest.raises(PipelineError, match="there is no site to run it"):
        jobs(MEAN, store)


def test_the_first_stage_stays_at_the_edge() -> None:
    made = jobs(MEAN, *EDGES, CLOUD)
    assert {(j.name, j.node, stage(j)) for j in made.values()} == {
        ("p-cloud@e1", "e1", FIRST),
        ("p-cloud@e2", "e2", FIRST),
        ("p-cloud", "cloud", SECOND),
    }
    assert made["p-cloud@e1"].writes == (made["p-cloud"].reads[0],)
    assert [place.topic for place in made["p-cloud"].reads] == [
        "panes/p-cloud/e1",
        "panes/p-cloud/e2",
    ]


def test_a_site_that_also_has_data_is_an_origin_like_the_others() -> None:
    made = jobs(MEAN, site("x"), site("y", memory=5000))
    assert {name: job.node for name, job in made.items()} == {
        "p-y@x": "x",
        "p-y@y": "y",
        "p-y": "y",
    }


def test_gateways_make_the_panes() -> None:
    made = jobs(MEAN + ' WITH ALLOW WHEN node_id == "e2"', *EDGES, GATEWAY)
    first = made["p-e2-s@gw"]
    assert isinstance(first.work, Steps)
    assert [step["op"] for step in first.work.steps] == ["decode", "panes"]
    Chain(first.work.steps, {}, {})
    assert made["p-e2"].node == "e2"
    assert [place.topic for place in made["p-e2"].reads] == ["panes/p-e2/gw/s"]
    told = assignments([Pipeline("p", tuple(made.values()))], topology(*EDGES, GATEWAY))
    assert [route.mode for route in told["p-e2-s@gw"][1].routes] == ["link"]


@pytest.mark.parametrize(
    "insight",
    [
        "now = COMPUTE AVG(x, 60 s) BY room",
        "kinds = COMPUTE DISTINCT(x, 60 s) BY room EVERY 10 s",
        "some = COMPUTE AVG(x, 60 s) BY room EVERY 10 s WITH SAMPLE 0.5",
        "raw = COMPUTE x * 2 BY room",
        "roots = COMPUTE AVG(SQRT(x), 60 s) BY room EVERY 10 s",
    ],
)
def test_where_the_first_stage_cannot_stand_alone_messages_travel(insight: str) -> None:
    made = jobs(insight, *EDGES, CLOUD)
    assert stage(made["p-cloud"]) == WHOLE
    assert made["p-cloud-s@e1"].work == Steps(())
    assert [str(place) for place in made["p-cloud-s@e1"].writes] == [
        "messages/p-cloud/s/e1 at cloud"
    ]
    assert [str(place) for place in made["p-cloud"].reads] == ["messages/p-cloud/s/+ at cloud"]
    assert 'topic="messages/p-cloud/s/+"' in text_of(made["p-cloud"])
    told = assignments([Pipeline("p", tuple(made.values()))], topology(*EDGES, CLOUD))
    assert [route.mode for route in told["p-cloud-s@e2"][1].routes] == ["link"]


def checked(steps: Any, given: Any, parameters: Any) -> str | None:
    try:
        Chain(steps, given, parameters)
    except DataError as error:
        return str(error)
    return None


@pytest.mark.parametrize("format", ["json", "ndjson", "senml", "xml", "cbor"])
def test_a_gateway_reads_every_format(format: str) -> None:
    text = STREAM.replace("json", format) + MEAN
    made = deploy_query(text, "p", topology(*EDGES, CLOUD, GATEWAY), checked)
    (work,) = [job.work for job in made.jobs if job.node == "gw"]
    assert isinstance(work, Steps)
    assert [step["op"] for step in work.steps] == ["decode", "panes"]


def test_what_a_gateway_refuses_travels_as_it_is() -> None:
    def refused(*_: Any) -> str:
        return "no"

    made = deploy_query(STREAM + MEAN, "p", topology(*EDGES, CLOUD, GATEWAY), refused)
    assert [job.work for job in made.jobs if job.node == "gw"] == [Steps(())]
    assert [stage(job) for job in made.jobs if job.node != "gw"] == [WHOLE]


def test_messages_that_travel_both_ways_do_not_go_round() -> None:
    text = (
        "a = COMPUTE AVG(x, 60 s) BY room WITH ALLOW WHEN site == e1;\n"
        "b = COMPUTE AVG(x, 60 s) BY room WITH ALLOW WHEN site == e2"
    )
    made = jobs(text, *EDGES)
    assert find_cycle(Flow.of(made.values())) == ()
    assert {name: job.node for name, job in made.items() if isinstance(job.work, Steps)} == {
        "p-e1-s@e1": "e1",
        "p-e1-s@e2": "e2",
        "p-e2-s@e1": "e1",
        "p-e2-s@e2": "e2",
    }


def test_queries_with_patterns_that_meet_do_not_get_each_others_messages() -> None:
    found = [
        job
        for name, pattern in (("one", "city/+"), ("two", "city/#"))
        for job in deploy_query(
            STREAM.replace("city/+", pattern) + "now = COMPUTE AVG(x, 60 s) BY room",
            name,
            topology(*EDGES, CLOUD),
        ).jobs
    ]
    flow = Flow.of(found)
    for job in found:
        readers = {name for key in flow.written[job.name] for name in flow.read_by(key)}
        assert {name.partition("-")[0] for name in readers} <= {job.name.partition("-")[0]}


def test_a_query_that_reads_everything_and_so_itself_is_refused() -> None:
    text = (
        "a = COMPUTE AVG(x, 60 s) BY room WITH ALLOW WHEN site == e1;\n"
        "b = COMPUTE AVG(x, 60 s) BY room WITH ALLOW WHEN site == e2"
    )
    with pytest.raises(PipelineError, match="in a circle"):
        deploy_query(STREAM.replace("city/+", "#") + text, "p", topology(*EDGES))


def test_an_insight_fed_by_one_elsewhere_reads_its_results() -> None:
    text = (
        "inner = COMPUTE AVG(x, 10 s) BY room, floor EVERY 10 s WITH ALLOW WHEN node_id == e1;\n"
        "outer = COMPUTE MAX(inner, 60 s) EVERY 60 s WITH ALLOW WHEN tier == cloud"
    )
    made = jobs(text, *EDGES, CLOUD)
    assert made["p-inner"].node == "e1"
    assert made["p-cloud"].node == "cloud"
    assert stage(made["p-cloud"]) == WHOLE
    (written,) = made["p-inner"].writes
    assert str(written) == "insights/p-inner/inner at cloud"
    work = made["p-cloud"].work
    assert isinstance(work, Query)
    assert 'format="insight"' in work.text
    plan = check_text(work.text, settings.load()).plan
    assert [emit.name for emit in plan.emits] == ["outer"]
    assert [key.name for key in plan.emit("outer").input.keys] == ["room", "floor"]  # type: ignore[union-attr]
    told = assignments([Pipeline("p", tuple(made.values()))], topology(*EDGES, CLOUD))
    assert [route.mode for route in told["p-inner"][1].routes] == ["link"]


def test_an_insight_in_the_place_of_a_name_is_computed_anew() -> None:
    text = (
        "a = COMPUTE AVG(x, 10 s) BY room EVERY 10 s WITH ALLOW WHEN node_id == e1;\n"
        "b = COMPUTE a * 2 WITH ALLOW WHEN tier == cloud"
    )
    made = jobs(text, *EDGES, CLOUD)
    assert made["p-e1"].node == "e1"
    work = made["p-cloud"].work
    assert isinstance(work, Query)
    assert work.insights == ("b",)
    assert "AVG(x" in work.text


def test_jobs_stay_what_they_are_when_another_site_gets_an_insight() -> None:
    mean = f"{MEAN} WITH ALLOW WHEN tier == cloud"
    more = f"{mean};\nown = COMPUTE AVG(x, 60 s) EVERY 10 s WITH ALLOW WHEN site == e1"
    old, new = (tuple(jobs(text, *EDGES, CLOUD).values()) for text in (mean, more))
    found = diff(Pipeline("p", old), Pipeline("p", new))
    assert set(found.of(UNCHANGED)) == {job.name for job in old}
    assert found.of(REMOVED) == ()


def test_an_insight_called_like_a_site_has_a_job_of_its_own() -> None:
    text = (
        "cloud = COMPUTE AVG(x, 60 s) BY room EVERY 10 s WITH ALLOW WHEN site == e1;\n"
        "z = COMPUTE MAX(cloud, 60 s) EVERY 60 s WITH ALLOW WHEN tier == cloud"
    )
    made = deploy_query(STREAM + text, "p", topology(*EDGES, CLOUD))
    names = [job.name for job in made.jobs]
    assert len(names) == len(set(names))
    assert {"p-e1-cloud", "p-cloud"} <= set(names)


def test_streams_that_name_their_nodes() -> None:
    text = 's = STREAM FROM mqtt(topic="t", format="json", time="at", nodes="e2");\n' + MEAN
    made = deploy_query(text, "p", topology(*EDGES, CLOUD))
    assert {(job.name, job.node) for job in made.jobs} == {("p-e2", "e2")}


@pytest.mark.parametrize("nodes", ["e3", "e1, e3", "e1, store"])
def test_nodes_that_nobody_knows_are_refused(nodes: str) -> None:
    store = replace(site("store"), engine=NO_ENGINE)
    text = f's = STREAM FROM mqtt(topic="t", format="json", time="at", nodes="{nodes}");\n{MEAN}'
    with pytest.raises(PipelineError, match=r"nodes: cloud, e1, e2$") as refused:
        deploy_query(text, "p", topology(*EDGES, CLOUD, store))
    assert [problem.line for problem in refused.value.problems] == [1]


def test_of_the_sites_that_may_run_it_one_that_is_there_is_chosen() -> None:
    nodes = (*EDGES, CLOUD, site("spare", "cloud", 500))
    there = Topology.of(NodeView(n, OFFLINE if n == CLOUD else ONLINE, 0.0) for n in nodes)
    made = deploy_query(f"{STREAM}{MEAN} WITH ALLOW WHEN tier == cloud", "p", there)
    assert made.jobs[-1].node == "spare"
    gone = Topology.of(NodeView(n, OFFLINE, 0.0) for n in nodes)
    assert deploy_query(STREAM + MEAN, "p", gone).jobs[-1].node == "cloud"


def test_what_no_site_may_run_is_refused() -> None:
    text = (
        f"{MEAN} WITH ALLOW WHEN node_id == nobody;\n"
        "more = COMPUTE AVG(x, 60 s) EVERY 10 s WITH ALLOW WHEN tier == moon"
    )
    with pytest.raises(PipelineError) as refused:
        jobs(text, *EDGES)
    assert [problem.line for problem in refused.value.problems] == [2, 3]
    assert "sites: e1, e2" in str(refused.value)
    with pytest.raises(PipelineError, match="no site"):
        jobs(MEAN, GATEWAY)
    with pytest.raises(QueryError):
        jobs("wrong = COMPUTE", *EDGES)
