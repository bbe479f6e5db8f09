"""A job over the storage fabric at a site: which log it reads, and what Spark makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.agent.jobs.job import AgentJob, fabric_logs, make_job, subscriptions
from fogline.common import settings
from fogline.common.errors import UsageError
from fogline.common.process.contract import from_json, to_json
from fogline.deploy.query.insights import deploy_query
from fogline.deploy.resolve.assign import assignments
from fogline.deploy.resolve.topology import Topology
from fogline.fabric.contract import FabricLog
from fogline.fabric.federation.sources import OwnChanges
from fogline.fabric.streams.fabric_log import FeedLog
from fogline.log import SiteLog
from fogline.model.jobs import WHOLE, Assignment, Query
from fogline.model.nodes import ONLINE, Node, NodeView
from fogline.model.question import Question
from fogline.model.sites import fabric_log
from fogline.model.times import iso_micros
from fogline.plan.analysis.query_file import check_text
from fogline.plan.lowering.fabric_query import question_of
from fogline.plan.lowering.look_back import look_back_ms
from fogline.plan.lowering.program import lower
from fogline.plan.operators import Plan
from fogline.plan.rules import optimise
from fogline.spark.jobs.site_job import JobSpec, SiteJob, stream_input
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, from_values
from tests.agent.kit import AgentProcess, Publisher, payloads
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

NOON = 1_767_268_800_000_000
SECOND = 1_000_000
STREAM = 'cpu = STREAM FROM storageFabric(metricID="cpu_%", nodeID="north", zone="a");\n'
LOAD = "load = COMPUTE AVG(cpu, 10 s) BY entityID EVERY 10 s;\n"
QUESTION = Question(("cpu_%",), None, ("north",))


def _no_append(*_: Any) -> None:
    raise AssertionError("nothing here adapts")


SPEC = JobSpec("j", Plan(()), "c", Path("j"), Path("log"), Path, _no_append)


def job(text: str, name: str = "j") -> AgentJob:
    return make_job(Assignment(name, "", Query(text)), settings.load())


# ── which log, for whom ──────────────────────────────────────────────────────────────────────────


def test_the_log_is_that_of_the_question() -> None:
    made = job(STREAM + LOAD)
    assert made.logs() == [fabric_log(QUESTION)]
    assert made.logs()[0].startswith("fabric/")
    assert subscriptions([made]) == []


def test_of_jobs_with_the_same_question_what_the_most_needs_is_sent() -> None:
    jobs = [job(STREAM + LOAD), job(STREAM + LOAD, "k")]
    both = {"j": {"cpu": {"a": 0.2, "b": 0.3}}, "k": {"cpu": {"a": 0.4}}}
    (log,) = fabric_logs(jobs, both)
    assert log.shares == {"a": 0.4}
    assert fabric_logs(jobs[:1], both)[0].shares == {"a": 0.2, "b": 0.3}
    for none in ({}, {"j": {"cpu": {"a": 0.2}}}, {"other": {"cpu": {"a": 0.2}}}):
        assert fabric_logs(jobs, none) == fabric_logs(jobs)
    assert fabric_logs(jobs)[0].shares == {}


def test_equal_questions_share_a_log_others_do_not() -> None:
    again = job(STREAM.replace('zone="a"', 'zone="b"') + LOAD, "again")
    other = job('s = STREAM FROM storageFabric(entityID="x"); i = COMPUTE COUNT(s) EVERY 1 s;', "o")
    plain = job('t = STREAM FROM mqtt(topic="t"); i = COMPUTE x;', "plain")
    found = fabric_logs([job(STREAM + LOAD), again, other, plain])
    assert found == [FabricLog(fabric_log(q), q) for q in (QUESTION, Question(None, ("x",)))]
    assert to_json(found[0]) == {
        "log": fabric_log(QUESTION),
        "question": {"metrics": ["cpu_%"], "entities": None, "nodes": ["north"], "share": 1.0},
        "shares": {},
    }
    assert [from_json(FabricLog, json.loads(json.dumps(to_json(log)))) for log in found] == found
    assert [item.log for item in subscriptions([again, plain])] == ["t"]


def test_what_no_site_can_read_is_refused() -> None:
    with pytest.raises(UsageError, match="storageFabric"):
        job('s = STREAM FROM memory(name="s"); i = COMPUTE x;')


@pytest.mark.parametrize(
    ("declared", "asked"),
    [("a", "a"), ("a%", "a%"), ("%", "%"), ("a\\\\%", "a%")],
)
def test_names_in_declarations(declared: str, asked: str) -> None:
    text = f's = STREAM FROM storageFabric(metricID="{declared}"); i = COMPUTE COUNT(s) EVERY 1 s;'
    (log,) = fabric_logs([job(text)])
    assert log.question.metrics == (asked,)


# ── what a plan asks for ─────────────────────────────────────────────────────────────────────────


def program(text: str) -> Any:
    return lower(optimise(check_text(text, settings.load()).plan)[0])


@pytest.mark.parametrize(
    ("insights", "question"),
    [
        ("i = COMPUTE COUNT(s) EVERY 1 s;", Question(("m_%",))),
        ("i = COMPUTE value WHEN entityID == e;", Question(("m_%",), ("e",))),
        ('i = COMPUTE value WHEN entityID == "e%";', Question(("m_%",), ("e\\%",))),
        ("i = COMPUTE value WHEN entityID IN (a, b);", Question(("m_%",), ("a", "b"))),
        ("i = COMPUTE value WHEN entityID == a OR nodeID == b;", Question(("m_%",))),
        ("i = COMPUTE value WHEN entityID != a;", Question(("m_%",))),
        ("i = COMPUTE value WHEN nodeID == n AND zone == z;", Question(("m_%",), None, ("n",))),
        (
            "i = COMPUTE value WHEN entityID == a; k = COMPUTE value WHEN entityID == b;",
            Question(("m_%",), ("a", "b")),
        ),
        ("i = COMPUTE value WHEN entityID == a; k = COMPUTE value;", Question(("m_%",))),
    ],
)
def test_the_question_holds_all_that_some_scan_takes(insights: str, question: Question) -> None:
    made = program('s = STREAM FROM storageFabric(metricID="m_%");' + insights)
    asked = question_of((*made.scans, *made.record_scans))
    assert (asked.metrics, asked.nodes) == (question.metrics, question.nodes)
    assert set(asked.entities or ()) == set(question.entities or ())


@pytest.mark.parametrize(
    ("insights", "reach"),
    [
        ("i = COMPUTE AVG(x, 30 s) EVERY 10 s;", 30_000),
        ("i = COMPUTE COUNT(x, 1 m, 2 s) EVERY 2 s;", 62_000),
        ("i = COMPUTE AVG(x, 30 s) EVERY 10 s; k = COMPUTE MAX(i, 1 m) EVERY 1 m;", 90_000),
        ("i = COMPUTE AVG(x, 5 s);", 5_000),
        ("i = COMPUTE RUNNING_MAX(x) EVERY 1 m;", 0),
        ("i = COMPUTE AVG(x, 5 EVENTS);", 0),
        ("i = COMPUTE x;", 0),
    ],
)
def test_how_far_back_records_matter(insights: str, reach: int) -> None:
    assert look_back_ms(program('s = STREAM FROM mqtt(topic="t");' + insights)) == reach


@pytest.mark.parametrize(
    ("insights", "share"),
    [
        ("i = COMPUTE COUNT(s) EVERY 1 s WITH SAMPLE 0.2;", 0.2),
        ("i = COMPUTE value BY entityID WITH SAMPLE 0.2;", 0.2),
        (
            "i = COMPUTE COUNT(s) EVERY 1 s WITH SAMPLE 0.2; k = COMPUTE value WITH SAMPLE 0.2;",
            0.2,
        ),
        ("i = COMPUTE COUNT(s) EVERY 1 s;", 1.0),
        ("i = COMPUTE COUNT(s) EVERY 1 s WITH SAMPLE 0.2; k = COMPUTE value;", 1.0),
        (
            "i = COMPUTE COUNT(s) EVERY 1 s WITH SAMPLE 0.2;"
            "k = COMPUTE COUNT(s) EVERY 1 s WITH SAMPLE 0.3;",
            1.0,
        ),
        ("i = COMPUTE AVG(value, 5 s) EVERY 5 s WITH MAX_ERROR 0.1 AND CONFIDENCE 0.95;", 1.0),
    ],
)
def test_what_all_readers_sample_is_asked_for_only_so_far(insights: str, share: float) -> None:
    text = 's = STREAM FROM storageFabric(metricID="m_%");' + insights
    (found,) = fabric_logs([job(text)])
    assert found.question == Question(("m_%",), share=share)
    assert (found.log == fabric_log(Question(("m_%",)))) == (share == 1)
    made = program(text)
    scans = (*made.scans, *made.record_scans)
    assert question_of(scans).share == share
    assert {stream_input(SPEC, scan.stream).sampled for scan in scans} == {share < 1}


def test_other_streams_are_sampled_where_they_are_read() -> None:
    (scan,) = program(
        's = STREAM FROM mqtt(topic="t"); i = COMPUTE COUNT(s) EVERY 1 s WITH SAMPLE 0.2;'
    ).scans
    assert (scan.stream.share, scan.sampling.fraction) == (1.0, 0.2)
    assert not stream_input(SPEC, scan.stream).sampled


# ── many sites ───────────────────────────────────────────────────────────────────────────────────


def test_it_runs_whole_at_one_site() -> None:
    nodes = [Node(name, "site", f"mqtt://10.0.0.{n}:1883") for n, name in enumerate(("a", "b"), 1)]
    topology = Topology.of(NodeView(node, ONLINE, 0.0) for node in nodes)
    made = deploy_query(STREAM + LOAD, "p", topology)
    (only,) = made.jobs
    assert isinstance(only.work, Query)
    assert (only.work.stage, only.reads) == (WHOLE, ())
    ((_, assignment),) = assignments([made], topology).values()
    placed = make_job(assignment, settings.load())
    assert fabric_logs([placed]) == fabric_logs([job(STREAM + LOAD)])


# ── Spark ────────────────────────────────────────────────────────────────────────────────────────


def test_spark_reads_the_log_that_the_feed_writes(tmp_path: Path, spark: SparkSession) -> None:
    logs = SiteLog(tmp_path / "log", min_free_bytes=1)
    feed = FeedLog(logs, fabric_log(QUESTION), QUESTION)
    with SiteStore(tmp_path / "store") as store:
        own = OwnChanges(store, "north")
        store.ingest(from_values([Value("cpu_0", "pod", NOON, 1_000.0, {"zone": "a"})]))
        store.flush()
        assert not feed.step("north", own, dict)  # from now on
        values = [
            Value(
                f"cpu_{n % 2}", f"pod-{n % 3}", NOON + n * SECOND, float(n), {"zone": "ab"[n % 2]}
            )
            for n in range(60)
        ]
        store.ingest(from_values([*values, Value("memory", "pod", NOON, 9.0, {"zone": "a"})]))
        store.flush()
        assert not feed.step("north", own, dict)
        assert not feed.step("south", own, dict)
    feed.close()

    plan, _ = optimise(check_text(STREAM + LOAD, settings.load()).plan)
    place = JobSpec("j", plan, "c", tmp_path / "j", logs.root, logs.folder, _no_append)
    running = SiteJob(spark, place)
    expected = {
        (f"pod-{k}", end): sum(taken) / len(taken)
        for end in (10, 20, 30, 40, 50)
        for k in range(3)
        if (taken := [n for n in range(end - 10, end) if n % 2 == 0 and n % 3 == k])
    }
    try:

        def found() -> dict[tuple[str, int], float]:
            running.keep_running()
            assert running.status().state != "failed", running.status()
            with logs.reader("insights/j/load") as reader:
                return dict(_result(json.loads(p)) for p in payloads(reader))

        wait_for(lambda: len(found()) >= len(expected), 120, "results")
        assert found() == expected
        assert set(running.needed_positions()) == {fabric_log(QUESTION)}
    finally:
        running.stop()


def _result(record: dict[str, Any]) -> tuple[tuple[str, int], float]:
    end = record["window"]["end"]
    return (record["keys"]["entityID"], int(end[14:16]) * 60 + int(end[17:19])), record["value"]


# ── all of it ────────────────────────────────────────────────────────────────────────────────────

LIVE = """
t = STREAM FROM mqtt(topic="plant/+", time="time", entity="sensor", lateness="2 s");
mean = COMPUTE AVG(x, 20 s) BY sensor EVERY 10 s;
"""
KEPT = """
s = STREAM FROM storageFabric(metricID="x");
mean = COMPUTE AVG("x" FROM (s), 20 s) BY entityID EVERY 10 s;
"""
FOLLOWED = KEPT.replace("mean", "again")
SOME = """
s = STREAM FROM storageFabric(metricID="x");
some = COMPUTE COUNT("x" FROM (s), 20 s) BY entityID EVERY 10 s WITH SAMPLE 0.5;
"""


def iso(second: int) -> str:
    return iso_micros(NOON + second * SECOND)


def means(records: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """By key and end; whole numbers in, so that their means are exact."""
    found = {(*r["keys"].values(), r["window"]["end"]): r["value"] for r in records}
    assert len(found) == len(records)
    return found


def test_history_is_what_the_site_computed(
    tmp_path: Path, spark: SparkSession, fogline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the site's logs and over the fabric; a job that followed the fabric says the same, also
    one that has only a share sent to it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    site = AgentProcess(tmp_path, {"live": LIVE, "followed": FOLLOWED, "sampled": SOME})
    try:
        site.start()
        site.wait_healthy()
        wait_for(lambda: following(site), 120, "feed of the fabric's log")
        sender = Publisher(site.mqtt_port, "sender", "plant/a")
        for second in range(121):
            for sensor in range(3):
                reading = {"time": iso(second), "sensor": f"s{sensor}", "x": second * sensor}
                sender.send(reading)
        wait_for(lambda: sender.confirmed == 363, 120, "confirmations")
        sender.close()
        last = iso(110)[:23] + "Z"
        for log in ("insights/live/mean", "insights/followed/again", "insights/sampled/some"):
            wait_for(lambda log=log: ends(site, log).count(last) == 3, 120, f"all of {log}")  # type: ignore[misc]
        streamed = means(site.records("insights/live/mean"))
        assert means(site.records("insights/followed/again")) == streamed
        wanted = {key: mean for key, mean in streamed.items() if iso(30)[:23] < key[1][:23] <= last}
        assert len(wanted) == 8 * 3
        sampled = site.records("insights/sampled/some")
        assert {record["sampled"] for record in sampled} == {0.5}
        some = {key: n for key, n in means(sampled).items() if key in wanted}
        assert all(0 < n < 40 and n % 2 == 0 for n in some.values())
        assert len(set(some.values())) > 1
        for text, expected in ((LIVE, wanted), (KEPT, wanted), (SOME, some)):
            (tmp_path / "query.ins").write_text(text, encoding="utf-8")
            told = fogline(
                "run", tmp_path / "query.ins", "--from", iso(30), "--to", iso(110), "--json"
            )
            assert told.code == 0, told.err
            found = [json.loads(line) for line in told.out.splitlines()]
            assert means([r for r in found if "insight" in r]) == expected
    finally:
        site.end()


def following(site: AgentProcess) -> bool:
    told = site.status().get("store", {}).get("fabric_logs") or []
    return len(told) == 2 and all(log.get("nodes") for log in told)


def ends(site: AgentProcess, log: str) -> list[str]:
    return [record["window"]["end"] for record in site.records(log)]
