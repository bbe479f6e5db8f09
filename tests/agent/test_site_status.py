"""The status of a site: as JSON, as text for Prometheus and as records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fogline.agent.broker.site_broker import BrokerStatus
from fogline.agent.contracts.engine import EngineJobStatus, EngineStatus
from fogline.agent.contracts.ingest import IngestStatus, SubscriptionStatus
from fogline.agent.contracts.publish import PublishStatus, TopicStatus
from fogline.agent.contracts.site_status import ChildStatus
from fogline.agent.damage.watch import DamageStatus
from fogline.agent.supervisor.metrics import (
    broker_metrics,
    job_metrics,
    node_metrics,
    prometheus,
)
from fogline.model.sites import QueryStatus
from tests.agent.kit import make_status

QUERY = QueryStatus("windows", "running", lag_bytes=7)
JOB = EngineJobStatus("j", (QUERY,), "running", 4, 3, 2, 1, "r")
STATUS = replace(
    make_status(
        IngestStatus(
            "running",
            2,
            subscriptions=(SubscriptionStatus("a/#", "a/#", "running", 5, 1, 99),),
            copies=(),
            bad_links=0,
        ),
        EngineStatus("running", 2, jobs=(JOB,)),
        PublishStatus(
            "running",
            2,
            topics=(TopicStatus("running", 2, 0, 1, topic="t"),),
            routes=(),
        ),
    ),
    site='no"rth',
    damage=DamageStatus(({},), {"a/#": 512}),
    broker=BrokerStatus("restarting", "127.0.0.1:1883"),
    broker_metrics={"site": "n", "clients_connected": 3.0},
)


def test_prometheus_text(tmp_path: Path) -> None:
    lines = prometheus(STATUS, node_metrics("north", tmp_path)).splitlines()
    assert 'fogline_healthy{site="no\\"rth"} 1' in lines
    assert 'fogline_ingest_messages{site="no\\"rth",pattern="a/#"} 5' in lines
    assert 'fogline_job_lag_bytes{site="no\\"rth",job="j",query="windows"} 7' in lines
    assert 'fogline_broker_clients_connected{site="no\\"rth"} 3.0' in lines
    assert 'fogline_publish_left_out{site="no\\"rth",topic="t"} 1' in lines
    assert 'fogline_process_up{site="no\\"rth",process="broker"} 0' in lines
    assert 'fogline_log_lost_records{site="no\\"rth",log="a/#"} 512' in lines
    assert 'fogline_log_damage_unacknowledged{site="no\\"rth"} 1' in lines
    assert any(line.startswith("fogline_node_cpu_percent{") for line in lines)


def test_metrics_are_flat_records(tmp_path: Path) -> None:
    (job,) = job_metrics(STATUS)
    assert (job["site"], job["job"], job["query"]) == ('no"rth', "j", "windows")
    assert job["lag_bytes"] == 7
    node = node_metrics("north", tmp_path)
    assert node["disk_free_bytes"] > 0
    assert broker_metrics("north", {}) is None
    seen = {"$SYS/broker/clients/connected": "3"}
    assert broker_metrics("north", seen)["clients_connected"] == 3.0  # type: ignore[index]


def test_json() -> None:
    """What people and machines read at `/status`."""
    starting = replace(STATUS, publish=ChildStatus("starting", 7, 1, "killed"))
    found = starting.as_json()
    (query,) = found["engine"]["jobs"][0].pop("queries")
    assert {key: query[key] for key in ("name", "state", "problem", "lag_bytes", "detail")} == {
        **{"name": "windows", "state": "running", "problem": ""},
        **{"lag_bytes": 7, "detail": ""},
    }
    counts = {"records_in": 4, "records_out": 3, "bad": 2, "late": 1}
    subscription = {"pattern": "a/#", "log": "a/#", "state": "running"}
    assert found == {
        "site": 'no"rth',
        "healthy": True,
        "ingest": {
            **{"state": "running", "revision": 2, "copies": [], "bad_links": 0},
            "subscriptions": [{**subscription, "messages": 5, "repeated": 1, "bytes": 99}],
            **{"pid": 0, "restarts": 0},
        },
        "engine": {
            **{"state": "running", "revision": 2, "pid": 0, "restarts": 0},
            "jobs": [{"name": "j", "state": "running", "run": "r", **counts}],
        },
        "publish": {"state": "starting", "pid": 7, "restarts": 1, "died": "killed"},
        "broker": {
            **{"state": "restarting", "address": "127.0.0.1:1883"},
            "metrics": {"site": "n", "clients_connected": 3.0},
        },
        "damage": {"unacknowledged": [{}], "lost_records": {"a/#": 512}},
    }


def test_what_is_not_there_is_left_out_of_the_json() -> None:
    report = EngineStatus("starting Spark")
    spark = replace(STATUS, engine=ChildStatus(report.state, report=report))
    assert spark.as_json()["engine"] == {"state": "starting Spark", "pid": 0, "restarts": 0}
    more = replace(STATUS, retention_problems=["p"], damaged_files=["f"], control="running")
    assert more.as_json()["retention"] == {"problems": ["p"]}
    assert more.as_json()["damaged"]["files"] == ["f"]
    assert more.as_json()["control"] == "running"
