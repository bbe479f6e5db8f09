"""A query file that is deployed again: what goes on, what is muted, what begins beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fogline.deploy.diff.diff import ADDED, CHANGED, REMOVED, UNCHANGED, UNMUTED, Diff, diff
from fogline.deploy.query.insights import deploy_query
from fogline.deploy.resolve.flow import Flow, all_written
from fogline.model.jobs import Job, Pipeline, Query
from fogline.model.nodes import Node
from tests.deploy.test_insights import CLOUD, EDGES, GATEWAY, STREAM, site, topology

A = "a = COMPUTE AVG(x, 60 s) BY room EVERY 10 s"
B = "b = COMPUTE MAX(x, 60 s) BY room EVERY 10 s"
C = "c = COMPUTE MIN(x, 60 s) BY room EVERY 10 s"
A2 = A.replace("AVG", "SUM")
ONE = (site("one"),)


def told(*insights: str, stream: str = STREAM) -> str:
    return stream + ";\n".join(insights)


class Deployed:
    """A pipeline through its versions; `change` deploys the next one."""

    def __init__(self, text: str, *nodes: Node) -> None:
        self.nodes = nodes
        self.pipeline = deploy_query(text, "p", topology(*nodes))
        assert self.pipeline == deploy_query(text, "p", topology(*nodes), before=None)

    def change(self, text: str, *nodes: Node) -> Diff:
        self.nodes = nodes or self.nodes
        before, self.pipeline = self.pipeline, self._planned(text, self.pipeline)
        assert self._planned(text, self.pipeline) == self.pipeline, "deploying it again changes it"
        return diff(before, self.pipeline)

    def _planned(self, text: str, before: Pipeline) -> Pipeline:
        stored = Pipeline("p", tuple(Job.from_json(job.as_json()) for job in before.jobs))
        return deploy_query(text, "p", topology(*self.nodes), before=stored)

    def job(self, name: str) -> Job:
        found = self.pipeline.job(name)
        assert found is not None, [job.name for job in self.pipeline.jobs]
        return found

    @property
    def names(self) -> set[str]:
        return {job.name for job in self.pipeline.jobs}


def insights(job: Job) -> tuple[str, ...]:
    assert isinstance(job.work, Query)
    return job.work.insights


def topics(job: Job) -> set[str]:
    return {topic for topic, _ in all_written(job)}


def test_an_insight_that_is_added_gets_a_job_beside_the_one_that_goes_on() -> None:
    made = Deployed(told(A), *EDGES, CLOUD)
    before = made.names
    found = made.change(told(A, B))
    assert set(found.of(UNCHANGED)) == before
    assert set(found.of(ADDED)) == {"p-cloud-2", "p-cloud-2@e1", "p-cloud-2@e2"}
    assert len(found.changes) == 6
    assert insights(made.job("p-cloud-2")) == ("b",)
    assert topics(made.job("p-cloud-2")) == {"insights/p-cloud/b"}
    assert "+ p-cloud-2 added at cloud: b" in str(found).splitlines()


def test_an_insight_that_changes_is_muted_where_it_was_and_keeps_its_topic() -> None:
    made = Deployed(told(A, B), *ONE)
    found = made.change(told(A2, B))
    assert str(found) == "~ p-one muted a\n+ p-one-2 added at one: a"
    assert made.job("p-one").muted == ("a",)
    assert topics(made.job("p-one")) == {"insights/p-one/b"}
    assert topics(made.job("p-one-2")) == {"insights/p-one/a"}


def test_an_insight_that_is_removed_is_muted_while_others_need_its_job() -> None:
    made = Deployed(told(A, B), *EDGES, CLOUD, GATEWAY)
    before = made.names
    found = made.change(told(B))
    assert str(found).splitlines().count("~ p-cloud muted a") == 1
    assert set(found.of(UNCHANGED)) == before - {"p-cloud"}
    assert set(made.change(told(C)).of(CHANGED)) >= {"p-cloud"}
    assert made.names == before
    assert made.job("p-cloud").muted == ()


def test_an_insight_that_is_changed_back_goes_on_where_it_was_muted() -> None:
    made = Deployed(told(A, B), *ONE)
    first = made.pipeline
    made.change(told(A2, B))
    assert str(made.change(told(A, B))) == "~ p-one unmuted a\n- p-one-2 removed at one: a"
    assert made.pipeline == first


def test_a_job_that_nobody_needs_goes_with_what_feeds_it() -> None:
    made = Deployed(told(A), *EDGES, CLOUD)
    made.change(told(A, B))
    first = {"p-cloud", "p-cloud@e1", "p-cloud@e2"}
    found = made.change(told(B))
    assert set(found.of(REMOVED)) == first
    assert len(found.of(UNCHANGED)) == 3
    found = made.change(told(B, C))
    assert set(found.of(ADDED)) == first
    assert topics(made.job("p-cloud")) == {"insights/p-cloud/c"}


def test_numbers_are_used_again_and_a_job_without_a_reason_is_changed_in_place() -> None:
    made = Deployed(told(A, B), *ONE)
    made.change(told(A2, B))
    found = made.change(told(A.replace("AVG", "COUNT"), B))
    assert (found.of(UNCHANGED), found.of(CHANGED)) == (("p-one",), ("p-one-2",))
    made.change(told(A.replace("AVG", "COUNT"), B, C))
    assert made.names == {"p-one", "p-one-2", "p-one-3"}
    found = made.change(told(A2, B.replace("MAX", "SUM")))
    assert set(found.of(CHANGED)) == {"p-one"}
    assert made.names == {"p-one"}


def test_when_nothing_is_as_it_was_it_is_as_if_it_were_new() -> None:
    made = Deployed(told(A, B), *EDGES, CLOUD)
    made.change(told(A2, B))
    text = told(A, B, stream=STREAM.replace('time="at"', 'time="when"'))
    made.change(text)
    assert made.pipeline == deploy_query(text, "p", topology(*EDGES, CLOUD))


OTHER = 't = STREAM FROM mqtt(topic="other", format="json", time="at");\n'
OF_S, OF_T = (
    "a = COMPUTE AVG(x FROM (s), 60 s) EVERY 10 s",
    "b = COMPUTE MAX(y FROM (t), 60 s) EVERY 10 s",
)


@pytest.mark.parametrize(
    "changed", [("other", "others"), ('time="at"', 'time="at", lateness="5 s"'), ("json", "cbor")]
)
@pytest.mark.parametrize("nodes", [ONE, (*EDGES, CLOUD)])
def test_every_insight_of_a_stream_that_changes_has_changed(
    changed: tuple[str, str], nodes: tuple[Node, ...]
) -> None:
    made = Deployed(told(OF_S, OF_T, stream=STREAM + OTHER), *nodes)
    made.change(told(OF_S, OF_T, stream=STREAM + OTHER.replace(*changed)))
    home = nodes[-1].name
    assert made.job(f"p-{home}").muted == ("b",)
    assert insights(made.job(f"p-{home}-2")) == ("b",)


def test_what_is_only_written_otherwise_has_not_changed() -> None:
    made = Deployed(told(A, B), *ONE)
    text = f"# the same\n{STREAM}{B.lower().replace('compute max', 'COMPUTE   MAX')};\n\n{A}"
    assert made.change(text).empty


def test_messages_that_travel_go_on_with_the_job_they_travel_to() -> None:
    now = "now = COMPUTE AVG(x, 60 s) BY room"
    made = Deployed(told(now, A), *EDGES, CLOUD)
    before = made.names
    assert before == {"p-cloud", "p-cloud-s@e1", "p-cloud-s@e2"}
    found = made.change(told(now, A, B))
    assert set(found.of(UNCHANGED)) == before
    found = made.change(told(now, A2, B))
    assert made.job("p-cloud").muted == ("a",)
    assert set(found.of(UNCHANGED)) > before - {"p-cloud"}


@pytest.mark.parametrize("insight", [A, "now = COMPUTE AVG(x, 60 s) BY room"])
def test_when_messages_come_from_elsewhere_it_has_changed(insight: str) -> None:
    made = Deployed(told(insight), *EDGES, CLOUD)
    found = made.change(told(insight), *EDGES, site("e3", "edge"), CLOUD)
    assert "p-cloud" in (*found.of(CHANGED), *found.of(UNCHANGED))
    assert any(name.endswith("@e3") for name in found.of(ADDED))
    assert made.names == {
        job.name for job in deploy_query(told(insight), "p", topology(*made.nodes)).jobs
    }


def test_an_insight_made_from_another_of_its_site_is_computed_with_it() -> None:
    made = Deployed(told(A, B), *EDGES, CLOUD)
    top = "top = COMPUTE MAX(a, 60 s) EVERY 60 s"
    made.change(told(A, B, top))
    beside = made.job("p-cloud-2")
    assert insights(beside) == ("top",)
    assert isinstance(beside.work, Query)
    assert "AVG(x" in beside.work.text
    assert "p-cloud-2@e1" in made.names
    found = made.change(told(A2, B, top))
    assert made.job("p-cloud").muted == ("a",)
    assert found.of(CHANGED) == ("p-cloud-2@e1", "p-cloud-2@e2", "p-cloud-2")
    assert insights(made.job("p-cloud-2")) == ("a", "top")


INNER = "inner = COMPUTE AVG(x, 10 s) BY room EVERY 10 s WITH ALLOW WHEN node_id == e1"
BESIDE = "beside = COMPUTE MAX(x, 10 s) BY room EVERY 10 s WITH ALLOW WHEN node_id == e1"
OUTER = "outer = COMPUTE MAX(inner, 60 s) EVERY 60 s WITH ALLOW WHEN tier == cloud"
ALONE = "alone = COMPUTE MIN(x, 60 s) EVERY 60 s WITH ALLOW WHEN tier == cloud"


def test_who_reads_an_insight_from_elsewhere_goes_on_when_it_changes() -> None:
    made = Deployed(told(INNER, OUTER, ALONE), *EDGES, CLOUD)
    found = made.change(told(INNER.replace("AVG", "SUM"), OUTER, ALONE))
    assert set(found.of(CHANGED)) == {"p-inner", "p-inner@e1", "p-inner@e2"}
    assert "p-cloud" in found.of(UNCHANGED)
    assert [str(place) for place in made.job("p-inner").writes] == [
        "insights/p-inner/inner at cloud"
    ]


def test_an_insight_that_others_begin_to_read_only_sends_its_results_there_too() -> None:
    made = Deployed(told(INNER, BESIDE), *EDGES, CLOUD)
    found = made.change(told(INNER, BESIDE, OUTER))
    assert "~ p-e1 redirected from nowhere to insights/p-e1/inner at cloud" in str(found)
    assert set(found.of(ADDED)) == {"p-cloud"}
    assert [str(place) for place in made.job("p-cloud").reads] == ["insights/p-e1/inner at cloud"]
    assert topics(made.job("p-e1")) == {"insights/p-e1/inner", "insights/p-e1/beside"}
    made.change(told(INNER.replace("AVG", "SUM"), BESIDE, OUTER))
    assert made.job("p-e1").writes == ()
    assert [str(place) for place in made.job("p-e1-2").writes] == ["insights/p-e1/inner at cloud"]
    assert set(Flow.of(made.pipeline.jobs).read_by(("insights/p-e1/inner", "cloud"))) == {"p-cloud"}
    made.change(told(INNER.replace("AVG", "SUM"), BESIDE))
    assert made.job("p-e1-2").writes == ()


def test_what_is_muted_still_gets_what_it_is_made_from() -> None:
    made = Deployed(told(INNER, OUTER, ALONE), *EDGES, CLOUD)
    found = made.change(told(INNER, ALONE))
    assert str(found).count("muted") == 1
    assert "p-inner" in found.of(UNCHANGED)
    assert made.change(told(INNER, OUTER, ALONE)).of(UNMUTED) == ("p-cloud",)


def test_a_number_is_never_that_of_another_site() -> None:
    nodes = (*EDGES, CLOUD, site("cloud-2", "edge"))
    made = Deployed(told(A), *nodes)
    made.change(told(A, B))
    assert {name for name in made.names if "@" not in name} == {"p-cloud", "p-cloud-3"}


def test_an_insight_that_goes_elsewhere_is_muted_where_it_was() -> None:
    here = " WITH ALLOW WHEN site == {}"
    made = Deployed(told(A + here.format("e1"), B + here.format("e1")), *EDGES)
    made.change(told(A + here.format("e2"), B + here.format("e1")))
    assert made.job("p-e1").muted == ("a",)
    assert topics(made.job("p-e2")) == {"insights/p-e2/a"}


def test_a_job_that_was_stopped_is_started_again() -> None:
    made = Deployed(told(A, B), *ONE)
    stopped = tuple(replace(job, running=False) for job in made.pipeline.jobs)
    made.pipeline = Pipeline("p", stopped)
    assert str(made.change(told(A, B))) == "~ p-one started"


def test_jobs_of_a_composition_are_none_of_a_query_file() -> None:
    made = Deployed(told(A, B), *ONE)
    composed = Job("p-one", "one", Query(told(A)), made.job("p-one").reads)
    made.pipeline = Pipeline("p", (composed,))
    assert made.change(told(A)).of(CHANGED) == ("p-one",)
