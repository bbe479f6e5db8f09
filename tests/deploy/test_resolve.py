"""Compositions that are right: where everything is, and what is worth a note."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fogline.common.errors import PipelineError
from fogline.deploy.manifest.composition import read_composition
from fogline.deploy.resolve.resolve import Package, resolve
from fogline.deploy.resolve.topology import Topology, broker_address, endpoint
from fogline.deploy.resolve.workloads import wrong_input
from fogline.model.jobs import Code, Job, Place, Query, Scalar, Steps
from tests.deploy.kit import SITES, AnyCode, gateway, no_complaint, resolved, site, topology

CODE_JOB = 'entry: "m:f", job_path: m.py'


def only(text: str, nodes: Topology = SITES) -> Job:
    (job,) = resolved(text, nodes).pipeline.jobs
    return job


def test_our_own_fields() -> None:
    job = only("""
        name: city
        jobs:
          - name: warm
            site: b
            entry: package.module:main
            job_path: code/job.whl
            source_topics: [one, {topic: two, site: a}, {topic: three, broker: "tcp://10.0.0.3"}]
            sink_topics: [{topic: out, site: c}]
            parameters: {limit: 3, share: 0.5, name: hot, on: true, code: "007", zero: 007}
            input: {format: json, time: at, schema: "x double"}
            publish: true
            running: false
    """)
    assert job == Job(
        name="warm",
        node="b",
        work=Code("package.module:main", "sha-code/job.whl", "job.whl"),
        reads=(Place("one", "b"), Place("two", "a"), Place("three", "c")),
        writes=(Place("out", "c"),),
        parameters={
            "limit": 3,
            "share": 0.5,
            "name": "hot",
            "on": True,
            "code": "007",
            "zero": "007",
        },
        input={"format": "json", "time": "at", "schema": "x double"},
        publish=True,
        running=False,
    )
    assert Job.from_json(job.as_json()) == job


def test_anchors_and_merged_fields() -> None:
    text = """
        jobs:
          - &first {name: A, site: a, source_topic: t, entry: "m:f", job_path: m.py}
          - {<<: *first, name: B, site: b}
    """
    a, b = resolved(text).pipeline.jobs
    assert (a.work, a.node, b.node) == (b.work, "a", "b")


def test_several_ways_to_write_an_address() -> None:
    ways = ("tcp://LOCALHOST:1883/", "mqtt://127.0.0.1", "localhost:1883", "mqtt://u:p@localhost")
    assert {endpoint(way) for way in ways} == {"127.0.0.1:1883"}
    assert endpoint("http://localhost:8081/") == endpoint("http://127.0.0.1:8081")
    assert endpoint("mqtt://[::1]:1900") == "::1:1900"
    assert broker_address("ssl://x") == "mqtts://x:8883"
    for wrong in ("", "mqtt://", "ftp://x:1", "mqtt://x:99999", "mqtt://a b:1", "http://[x"):
        assert endpoint(wrong) is None
    assert broker_address("http://x:80") is None


def test_a_foreign_broker_is_named_first() -> None:
    job = only(f"""
        brokers: ["tcp://10.9.9.9:1883/"]
        jobs:
          - {{name: A, site: a, source_topic: t, source_broker: "mqtt://10.9.9.9", {CODE_JOB}}}
    """)
    assert job.reads == (Place("t", broker="mqtt://10.9.9.9:1883"),)


def test_a_broker_that_two_sites_share_is_the_jobs_own() -> None:
    shared = topology(site("x", "10.0.0.1"), site("y", "10.0.0.1"), site("z", "10.0.0.3"))
    text = f"""
        jobs:
          - {{name: A, site: NODE, source_topic: t, source_broker: "tcp://10.0.0.1", {CODE_JOB}}}
    """
    assert only(text.replace("NODE", "y"), shared).reads == (Place("t", "y"),)
    with pytest.raises(PipelineError, match="is the broker of x, y"):
        only(text.replace("NODE", "z"), shared)


def test_gateways_forward_to_their_site() -> None:
    text = """
        jobs:
          - {name: A, site: gw, source_topic: t, sink_topic: u, steps: [{op: sample, fraction: 1}]}
          - {name: B, site: gw2, source_topic: t, sink_topic: u, steps: []}
          - {name: C, site: gw, source_topics: [{topic: t, site: gw}], steps: []}
    """
    a, b, c = resolved(text).pipeline.jobs
    assert a.work == Steps(({"op": "sample", "fraction": 1},))
    assert (a.reads, a.writes) == ((Place("t", "a"),), (Place("u", "a"),))
    assert (b.reads, b.writes) == ((Place("t", "gw2"),), (Place("u", "a"),))
    assert c.reads == (Place("t", "gw"),)


def test_a_gateway_may_keep_the_name_of_a_topic() -> None:
    made = resolved("""
        jobs:
          - {name: A, site: gw2, source_topic: t, sink_topic: t, steps: []}
          - {name: B, site: a, source_topic: t, sink_topic: u, entry: "m:f", job_path: m.py}
    """)
    assert made.notes == ("t at gw2 is written by no job: devices must publish it",)


def test_steps_are_checked_by_who_runs_them() -> None:
    text = "jobs: [{name: A, site: gw, source_topic: t, sink_topic: u, steps: [{op: fly}]}]"
    with pytest.raises(PipelineError, match="STEP: no operator fly"):
        resolve(
            read_composition(text),
            SITES,
            {},
            no_complaint,
            {},
            check_steps=lambda steps, given, parameters: f"no operator {steps[0]['op']}",
        )


QUERY = """
jobs:
  - name: hot
    site: b
    SOURCE
    query: |
      # How hot?
      s = STREAM FROM mqtt(topic="city/#", format="senml");
      x = COMPUTE AVG(v, 10 s) EVERY 10 s;
"""


def test_a_query_names_its_topics() -> None:
    job = only(QUERY.replace("SOURCE", ""))
    assert job.reads == (Place("city/#", "b"),)
    assert isinstance(job.work, Query)
    assert job.work.text.startswith("# How hot?\n")


def test_the_topic_of_a_query_with_one_stream_can_be_given() -> None:
    job = only(QUERY.replace("SOURCE", "source_topic: town"))
    assert job.reads == (Place("town", "b"),)
    assert isinstance(job.work, Query)
    assert 'mqtt(topic="town", format="senml")' in job.work.text.replace(" = ", "=")
    far = only(QUERY.replace("SOURCE", "source_topics: [{topic: town, site: a}]"))
    assert far.reads == (Place("town", "a"),)
    assert isinstance(far.work, Query)
    assert '"mqtt://10.0.0.1:1883"' in far.work.text


def test_a_query_from_a_file() -> None:
    text = "jobs: [{name: hot, site: a, query: dir/hot.ins}]"
    assert read_composition(text).query_files == ("dir/hot.ins",)
    query = 's = STREAM FROM mqtt(topic="t");\nx = COMPUTE AVG(v, 10 s) EVERY 10 s;'
    (job,) = resolved(text, files={"dir/hot.ins": query}).pipeline.jobs
    assert job.work == Query(query)


def test_what_a_query_tells_can_be_read() -> None:
    made = resolved(f"""
        inputs: [city/#]
        jobs:
          - name: hot
            site: a
            query: |
              s = STREAM FROM mqtt(topic="city/#");
              x = COMPUTE AVG(v, 9 s) BY k EVERY 9 s TO mqtt(topic="cmd/{{k}}");
          - {{name: next, site: a, source_topic: insights/hot/x, sink_topic: y, {CODE_JOB}}}
          - {{name: last, site: a, source_topic: cmd/7, sink_topic: z, {CODE_JOB}}}
    """)
    assert made.notes == ()


def test_wildcards_take_what_is_written() -> None:
    made = resolved(f"""
        inputs: [in]
        jobs:
          - {{name: A, site: a, source_topic: in, sink_topic: rooms/1/t, {CODE_JOB}}}
          - {{name: B, site: a, source_topic: rooms/+/t, sink_topic: out, {CODE_JOB}}}
    """)
    assert made.notes == ()


def test_notes() -> None:
    nodes = topology(site("a", "10.0.0.1"), gateway("gw", "a"), gone=("a",))
    made = resolved(f"jobs: [{{name: A, site: a, source_topic: t, {CODE_JOB}}}]", nodes)
    assert made.notes == (
        "a is not online: A begins when it is back",
        "A writes to no topic: its results stay at a",
        "t at a is written by no job: devices must publish it",
    )


def test_what_devices_publish_at_many_places_is_one_note() -> None:
    names = [f"s{number}" for number in range(7)]
    nodes = topology(*(site(name, f"10.0.0.{at}") for at, name in enumerate(names, 1)))
    jobs = "".join(
        f"\n  - {{name: A-{name}, site: {name}, source_topic: t, sink_topic: u, {CODE_JOB}}}"
        for name in names
    )
    assert resolved(f"jobs:{jobs}", nodes).notes == (
        "t at s0, s1, s2, s3, s4 and 2 more is written by no job: devices must publish it",
    )


def test_a_job_of_the_same_pipeline_is_no_conflict() -> None:
    text = f"name: p\njobs: [{{name: A, site: a, source_topic: t, {CODE_JOB}}}]"
    assert resolved(text, existing={"A": "p"}).pipeline.name == "p"
    with pytest.raises(PipelineError, match="in pipeline q"):
        resolved(text, existing={"A": "q"})


def test_the_check_sees_package_and_entry() -> None:
    seen: list[tuple[Package, str]] = []
    text = f"jobs: [{{name: A, site: a, source_topic: t, {CODE_JOB}}}]"

    def check(package: Package, entry: str, parameters: Mapping[str, Scalar]) -> str | None:
        seen.append((package, entry))
        return None

    resolved(text, code=AnyCode(), check=check)
    assert seen == [(Package("sha-m.py", "m.py"), "m:f")]
    assert read_composition(text).code_files == ("m.py",)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"format": "json", "schema": "a banana"},
            "'a banana' in the schema must be a name and a type",
        ),
        ({"format": "json", "schema": "a double, a long"}, "a is given twice in the schema"),
        ({"format": "json", "schema": "a", "lateness": "soon"}, "invalid lateness 'soon'"),
        ({"format": "json", "schema": "a double, b Integer, c", "lateness": "2 s"}, ""),
    ],
)
def test_input_that_a_site_could_not_read_is_refused(given: dict[str, str], problem: str) -> None:
    assert wrong_input(given).startswith(problem)
    assert bool(wrong_input(given)) == bool(problem)
