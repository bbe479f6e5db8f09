"""What a site's store is fed with, from its jobs and its configuration."""

from __future__ import annotations

from fogline import settings
from fogline.agent.jobs import AgentJob, make_job
from fogline.agent.store_config import StoreConfig, StoredTopic
from fogline.agent.store_feeds import feeds, topics
from fogline.model.jobs import FIRST, SECOND, Assignment, Query

TEXT = """
rooms = STREAM FROM mqtt(topic="rooms/#", time="t", entity="room");
grid = STREAM FROM mqtt(topic="grid", broker="mqtt://127.0.0.1:1", format="senml");
warm = COMPUTE AVG("x" FROM (rooms), 10 s) BY room EVERY 10 s;
load = COMPUTE MAX("p" FROM (grid), 10 s) EVERY 10 s;
"""
QUIET = StoreConfig(metrics=False)


def job(text: str = TEXT, stage: str = "whole", name: str = "job") -> AgentJob:
    return make_job(Assignment(name, "1", Query(text, stage)), settings.load())


def test_readings_and_insights_of_a_job() -> None:
    found = {feed["log"]: feed for feed in feeds([job()], QUIET)}
    assert set(found) == {
        "rooms/#",
        "127.0.0.1:1/grid",
        "insights/job/warm",
        "insights/job/load",
    }
    assert found["insights/job/warm"] == {"log": "insights/job/warm", "kind": "insights"}
    rooms = found["rooms/#"]
    assert (rooms["kind"], rooms["format"]) == ("readings", "json")
    assert (rooms["time"], rooms["entity"]) == ("t", "room")


def test_a_log_is_read_once_however_many_jobs_read_it() -> None:
    logs = [feed["log"] for feed in feeds([job(), job(name="other")], QUIET)]
    assert len(logs) == len(set(logs)) == 6


def test_stages_keep_what_arises_where_they_run() -> None:
    first = {feed["log"] for feed in feeds([job(stage=FIRST)], QUIET)}
    second = {feed["log"] for feed in feeds([job(stage=SECOND)], QUIET)}
    assert first == {"rooms/#", "127.0.0.1:1/grid"}
    assert second == {"insights/job/warm", "insights/job/load"}


def test_insights_of_other_sites_are_kept_there() -> None:
    text = """
s = STREAM FROM mqtt(topic="i", format="insight");
a = COMPUTE AVG(value, 10 s) EVERY 10 s;
"""
    assert [feed["log"] for feed in feeds([job(text)], QUIET)] == ["insights/job/a"]


def test_what_is_not_wanted_is_not_kept() -> None:
    no_readings = StoreConfig(metrics=False, readings=False)
    assert all(feed["kind"] == "insights" for feed in feeds([job()], no_readings))
    no_insights = StoreConfig(metrics=False, insights=False)
    assert all(feed["kind"] == "readings" for feed in feeds([job()], no_insights))
    assert topics(StoreConfig(enabled=False)) == []


def test_topics_of_the_configuration_come_first() -> None:
    mine = StoredTopic("rooms/#", entity="sensor", fields=("x",))
    config = StoreConfig(topics=(mine,))
    found = {feed["log"]: feed for feed in feeds([job()], config)}
    assert found["rooms/#"]["entity"] == "sensor"
    assert found["metrics/node"]["prefix"] == "node."
    wanted = {item["pattern"]: item["deduplicate"] for item in topics(config)}
    assert wanted == {
        "rooms/#": False,
        "metrics/node": True,
        "metrics/job": True,
        "metrics/broker": True,
    }
