"""What a site's store is fed with, from its jobs and its configuration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cbor2
import pytest

from fogline.agent.config.site import read_config
from fogline.agent.config.store import StoreConfig, StoredTopic
from fogline.agent.jobs.job import AgentJob, make_job
from fogline.agent.supervisor.store_config import feeds, topics
from fogline.common import settings
from fogline.common.errors import UsageError
from fogline.common.process.contract import from_json, to_json
from fogline.fabric.contract import StoreFeed
from fogline.fabric.streams.stored_log import FedLog
from fogline.log import SiteLog
from fogline.model.jobs import FIRST, SECOND, Assignment, Code, Place, Query, Steps
from fogline.storage.store import SiteStore
from fogline.storage.values import Value
from tests.storage.kit import START, everything

TEXT = """
rooms = STREAM FROM mqtt(topic="rooms/#", time="t", entity="room");
grid = STREAM FROM mqtt(topic="grid", broker="mqtt://127.0.0.1:1", format="senml");
warm = COMPUTE AVG("x" FROM (rooms), 10 s) BY room EVERY 10 s;
load = COMPUTE MAX("p" FROM (grid), 10 s) EVERY 10 s;
"""
QUIET = StoreConfig(metrics=False)


def job(text: str = TEXT, stage: str = "whole", name: str = "job") -> AgentJob:
    return make_job(Assignment(name, "1", Query(text, stage)), settings.load())


def sent_over(feed: StoreFeed) -> StoreFeed:
    """As the store process gets it."""
    return from_json(StoreFeed, json.loads(json.dumps(to_json(feed))))


def test_readings_and_insights_of_a_job() -> None:
    found = {feed.log: feed for feed in feeds([job()], QUIET)}
    assert set(found) == {
        "rooms/#",
        "127.0.0.1:1/grid",
        "insights/job/warm",
        "insights/job/load",
    }
    assert found["insights/job/warm"] == StoreFeed("insights/job/warm", "insights")
    rooms = found["rooms/#"]
    assert (rooms.kind, rooms.format) == ("readings", "json")
    assert (rooms.time, rooms.entity) == ("t", "room")


def test_a_log_is_read_once_however_many_jobs_read_it() -> None:
    logs = [feed.log for feed in feeds([job(), job(name="other")], QUIET)]
    assert len(logs) == len(set(logs)) == 6


def test_a_message_that_several_patterns_take_is_stored_once(tmp_path: Path) -> None:
    config = StoreConfig(metrics=False, topics=(StoredTopic("hall/#"), StoredTopic("hall/+/temp")))
    logs = SiteLog(tmp_path / "log", min_free_bytes=0)
    sent = [("hall/a/temp", b'{"x": 1}'), ("hall/b/temp", b'{"x": 2}')]
    for log in ("hall/#", "hall/+/temp"):
        with logs.writer(log) as writer:
            writer.append(sent)
            writer.commit()
    with SiteStore(tmp_path / "store") as store:
        for feed in feeds([], config):
            fed = FedLog(store, logs, sent_over(feed))
            assert fed.turn(0.0) == 2
            assert fed.status.state == "running"
            fed.close()
        assert [value.value for value in everything(store)] == [1.0, 2.0]


def test_patterns_of_other_brokers_and_of_other_topics_are_stored_apart() -> None:
    text = """
a = STREAM FROM mqtt(topic="hall/#");
b = STREAM FROM mqtt(topic="hall/#", broker="mqtt://127.0.0.1:1");
c = STREAM FROM mqtt(topic="yard/+");
d = STREAM FROM mqtt(topic="+/x");
i = COMPUTE AVG(x FROM (a, b, c, d), 10 s) EVERY 10 s;
"""
    found = {feed.log: feed.leave_out for feed in feeds([job(text)], QUIET)}
    assert found.pop("insights/job/i") == ()
    assert found == {
        "hall/#": (),
        "127.0.0.1:1/hall/#": (),
        "yard/+": (),
        "+/x": ("hall/#", "yard/+"),
    }


def test_stages_keep_what_arises_where_they_run() -> None:
    first = {feed.log for feed in feeds([job(stage=FIRST)], QUIET)}
    second = {feed.log for feed in feeds([job(stage=SECOND)], QUIET)}
    assert first == {"rooms/#", "127.0.0.1:1/grid"}
    assert second == {"insights/job/warm", "insights/job/load"}


def test_insights_of_other_sites_are_kept_there() -> None:
    text = """
s = STREAM FROM mqtt(topic="i", format="insight");
a = COMPUTE AVG(value, 10 s) EVERY 10 s;
"""
    assert [feed.log for feed in feeds([job(text)], QUIET)] == ["insights/job/a"]


def test_what_is_not_wanted_is_not_kept() -> None:
    no_readings = StoreConfig(metrics=False, readings=False)
    assert all(feed.kind == "insights" for feed in feeds([job()], no_readings))
    no_insights = StoreConfig(metrics=False, insights=False)
    assert all(feed.kind == "readings" for feed in feeds([job()], no_insights))
    assert topics(StoreConfig(enabled=False)) == []


def test_topics_of_the_configuration_come_first() -> None:
    mine = StoredTopic("rooms/#", entity="sensor", fields=("x",))
    config = StoreConfig(topics=(mine,))
    found = {feed.log: feed for feed in feeds([job()], config)}
    assert found["rooms/#"].entity == "sensor"
    assert found["metrics/node"].prefix == "node."
    wanted = {item.pattern: item.deduplicate for item in topics(config)}
    assert wanted == {
        "rooms/#": False,
        "metrics/node": True,
        "metrics/job": True,
        "metrics/broker": True,
    }


FORMATS = """
lines = STREAM FROM mqtt(topic="lines", format="csv", header="t, s,x,note", time="t", entity="s");
trees = STREAM FROM mqtt(topic="trees", format="xml", time="head.t", entity="s");
items = STREAM FROM mqtt(topic="items", format="cbor", time="t", entity="s");
a = COMPUTE AVG("x" FROM (lines), 10 s) EVERY 10 s;
b = COMPUTE AVG("x" FROM (trees), 10 s) EVERY 10 s;
c = COMPUTE AVG("x" FROM (items), 10 s) EVERY 10 s;
"""


def test_a_csv_stream_has_the_names_of_its_columns() -> None:
    found = {
        feed.log: feed.header for feed in feeds([job(FORMATS)], QUIET) if feed.kind == "readings"
    }
    assert found == {"lines": ("t", "s", "x", "note"), "trees": None, "items": None}


def test_csv_xml_and_cbor_come_into_the_store(tmp_path: Path) -> None:
    time, logs = START // 1000, SiteLog(tmp_path / "log", min_free_bytes=0)
    sent = {
        "lines": [b"%d,7,1.5,on" % time, b"rubbish", b'%d,7,2,"a, b"' % time],
        "trees": [b'<r s="7"><head t="%d"/><x>1.5</x></r>' % time, b"<r>", b"<!DOCTYPE r><r/>"],
        "items": [cbor2.dumps([{"t": time, "s": 7, "x": 1.5}] * 2), b"\xff", b"{}"],
    }
    for log, payloads in sent.items():
        with logs.writer(log) as writer:
            writer.append([(log, payload) for payload in payloads])
            writer.commit()
    declared = [feed for feed in feeds([job(FORMATS)], QUIET) if feed.log in sent]
    with SiteStore(tmp_path / "store") as store:
        told = {}
        for feed in declared:
            fed = FedLog(store, logs, sent_over(feed))
            assert fed.turn(0.0) == 3
            told[feed.log] = (fed.status.state, fed.status.rejected)
            fed.close()
        assert told == {
            "lines": ("running", {"not csv": 1}),
            "trees": ("running", {"not xml": 2}),
            "items": ("running", {"not cbor": 2}),
        }
        x, y = Value("x", "7", START, 1.5), Value("x", "7", START, 2.0)
        assert [value for value in everything(store) if value.metric == "x"] == [x, y, x, x, x]
        assert [value.value for value in everything(store, metrics="note")] == ["on", "a, b"]


def test_a_csv_stream_without_names_is_told_as_not_kept(tmp_path: Path) -> None:
    (feed,) = [feed for feed in feeds([job(FORMATS)], QUIET) if feed.log == "lines"]
    with SiteStore(tmp_path / "store") as store:
        logs = SiteLog(tmp_path / "log", min_free_bytes=0)
        told = FedLog(store, logs, replace(feed, header=None)).status
    assert told.state == "not kept"
    assert "header" in told.why


@pytest.mark.parametrize("form", ["json", "ndjson", "senml", "csv", "xml", "cbor"])
def test_a_topic_may_have_any_format(tmp_path: Path, form: str) -> None:
    topic = {"topic": "a", "format": form} | ({"header": ["t", "x"]} if form == "csv" else {})
    path = tmp_path / "site.yaml"
    path.write_text(f"site: north\nstore: {json.dumps({'topics': [topic]})}\n", encoding="utf-8")
    (read,) = read_config(path).store.topics
    (feed,) = feeds([], StoreConfig(topics=(read,), metrics=False))
    assert (feed.format, list(feed.header)) == (form, topic.get("header", []))


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("{topic: a, format: csv}", "a is csv without"),
        ("{topic: a, format: csv, header: []}", "a is csv without"),
        ("{topic: a, format: csv, header: 't,x'}", "not a list of texts"),
        ("{topic: a, format: insight}", "'insight'"),
        ("{topic: a, format: raw}", "'raw'"),
        ("{topic: a, format: 7}", "not a text"),
    ],
)
def test_a_topic_that_cannot_be_kept_is_told_at_the_start(
    tmp_path: Path, topic: str, why: str
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(f"site: north\nstore: {{topics: [{topic}]}}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=why):
        read_config(path)


# ── the user's own code ──────────────────────────────────────────────────────────────────────────

JSON_INPUT = {"format": "json", "time": "t", "entity": "room", "schema": "room string, x double"}


def code(*topics: str, made: tuple[str, ...] = (), given: dict[str, str] | None = None) -> AgentJob:
    reads = tuple(Place(topic) for topic in topics)
    work = Code("m:f", "1", "m.py")
    told = Assignment("mine", "p", work, reads, input=given or {}, made=made)
    return make_job(told, settings.load())


def test_what_code_reads_and_computes() -> None:
    found = {feed.log: feed for feed in feeds([code("rooms/#", given=JSON_INPUT)], QUIET)}
    assert set(found) == {"rooms/#", "out/mine"}
    rooms = found["rooms/#"]
    assert (rooms.kind, rooms.format) == ("readings", "json")
    assert (rooms.time, rooms.entity, rooms.header) == ("t", "room", None)
    assert found["out/mine"] == StoreFeed(
        "out/mine", "results", job="mine", entity="room", time="t"
    )
    (line,) = feeds([code("l", given={"format": "csv", "header": "t, x"})], NO_RESULTS)
    assert (line.format, line.header) == ("csv", ("t", "x"))
    (raw,) = feeds([code("l")], NO_RESULTS)
    assert raw.format == "json"


NO_RESULTS = StoreConfig(metrics=False, insights=False)


def test_what_other_jobs_compute_is_kept_where_they_run() -> None:
    assert feeds([code("mid", made=("mid",))], NO_RESULTS) == []
    (feed,) = feeds([code("plant/#", made=("plant/mean",))], NO_RESULTS)
    assert feed.leave_out == ("plant/mean",)
    mine = StoreConfig(metrics=False, insights=False, topics=(StoredTopic("plant/a"),))
    found = {feed.log: feed for feed in feeds([code("plant/#", made=("plant/mean",))], mine)}
    assert found["plant/#"].leave_out == ("plant/mean", "plant/a")


def test_jobs_that_only_pass_on_have_no_results() -> None:
    passing = make_job(Assignment("g", "p", Steps(()), (Place("t"),)), settings.load())
    assert feeds([passing], QUIET) == []


def test_results_of_code_come_into_the_store(tmp_path: Path) -> None:
    logs, at = SiteLog(tmp_path / "log", min_free_bytes=0), "2026-01-01T00:00:0%d.000Z"
    records: list[object] = [
        {"room": "a", "mean": 1.5, "ok": True, "time": at % 1},
        {"mean": 2, "road": "r", "lane": "l", "window": {"start": at % 0, "end": at % 2}},
        {"note": "only a text", "t": at % 3},
        {"room": "b", "nothing": None, "list": [1]},
        {"room": "a", "mean": 1, "time": "soon"},
    ]
    with logs.writer("out/mine") as writer:
        payloads = [json.dumps(record).encode() for record in records]
        writer.append([("out/mine", payload) for payload in (*payloads, b"\xff raw")])
        writer.commit()
    (feed,) = [f for f in feeds([code("rooms/#", given=JSON_INPUT)], QUIET) if f.job]
    with SiteStore(tmp_path / "store") as store:
        fed = FedLog(store, logs, sent_over(feed))
        assert fed.turn(0.0) == 6
        told = fed.status
        fed.close()
        assert told.state == "running"
        assert told.rejected == {"no value": 1, "no time": 1, "not json": 1}
        keys = {"road": "r", "lane": "l"}
        assert sorted(everything(store), key=lambda value: (value.time, value.metric)) == [
            Value("mine.mean", "a", START + 1_000_000, 1.5),
            Value("mine.ok", "a", START + 1_000_000, 1.0),
            Value("mine.mean", "road=r,lane=l", START + 2_000_000, 2.0, keys),
            Value("mine.note", "mine", START + 3_000_000, "only a text"),
        ]
