"""A whole site from outside: real clients, real Spark, one process after the other killed."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from fogline.agent.config.site import read_config
from fogline.agent.supervisor.site import Site
from fogline.common.errors import UsageError
from tests.agent.kit import AgentProcess
from tests.agent.rooms import BASE, QUERY, Subscriber, publish, reading, results
from tests.conftest import Fogline
from tests.waiting import wait_for

pytestmark = pytest.mark.site

METRICS = """
node = STREAM FROM mqtt(topic="metrics/node", format="json", time="time");
load = COMPUTE MAX(memory_percent, 2 s) BY site EVERY 2 s;
"""
PACKS = """
packs = STREAM FROM mqtt(topic="packs", format="senml", entity="device");
warm = COMPUTE AVG(":t1" FROM (packs), 10 s) BY device;
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    made = AgentProcess(tmp_path_factory.mktemp("site"), {"q": QUERY, "m": METRICS, "p": PACKS})
    made.start()
    try:
        made.wait_healthy()
        yield made
    finally:
        made.end()


def test_windows_values_and_commands_come_back(agent: AgentProcess, tmp_path: Path) -> None:
    subscriber = Subscriber(agent, "#", tmp_path)
    publish(agent, "rooms/a", reading("a", 10, 0), reading("a", 20, 5000), reading("a", 95, 12_000))
    wait_for(lambda: len(results(agent, "now", "a")) >= 3, 60, "real-time values")
    assert [r["value"] for r in results(agent, "now", "a")] == [10.0, 15.0, 57.5]
    publish(agent, "rooms/a", reading("a", 1, 60_000))
    wait_for(lambda: len(results(agent, "level", "a")) >= 2, 60, "windows")
    assert [r["value"] for r in results(agent, "level", "a")] == [15.0, 95.0]
    for topic in ("cmd/a ", "insights/q/level ", "insights/q/now "):
        told = partial(subscriber.has, topic)
        wait_for(told, 30, f"message on {topic}")
    subscriber.close()


def test_bad_and_late_messages_are_told(agent: AgentProcess) -> None:
    publish(agent, "rooms/b", "rubbish", reading("b", 1, 100_000))
    wait_for(lambda: agent.records("bad/q/rooms"), 60, "bad message")
    (bad,) = agent.records("bad/q/rooms")
    assert bad["record"] == "rubbish"
    assert bad["topic"] == "rooms/b"
    assert "not JSON" in bad["reason"]
    publish(agent, "rooms/b", reading("b", 2, 50))
    wait_for(lambda: agent.records("late/q/rooms"), 60, "late record")
    (late,) = agent.records("late/q/rooms")
    assert json.loads(late["record"])["x"] == 2
    assert late["topic"] == "rooms/b"
    assert len(agent.records("bad/q/rooms")) == 1


def test_every_reading_counts_once(agent: AgentProcess) -> None:
    """Three queries of the job read them."""
    late = len(agent.records("late/q/rooms"))
    wait_for(lambda: job_counts(agent)["late"] == late, 60, "counts of what came before")
    before, latencies = job_counts(agent), live_latencies(agent)
    readings = [reading("d", 1, 100_000 + n) for n in range(50)]
    publish(agent, "rooms/d", *readings, "rubbish", reading("d", 99, 100_050))
    wait_for(lambda: len(results(agent, "now", "d")) == 51, 60, "real-time values")
    wait_for(lambda: results(agent, "fan", "d"), 60, "command")
    wait_for(lambda: job_counts(agent)["records_in"] >= before["records_in"] + 51, 60, "counts")
    changed = partial(_all_differ, agent, latencies)
    wait_for(changed, 60, lambda: f"count in real time: {job_counts(agent)['queries']}")
    counts = job_counts(agent)
    found = {name: counts[name] - before[name] for name in ("records_in", "bad", "late")}
    assert found == {"records_in": 51, "bad": 1, "late": 0}
    assert len(agent.records("bad/q/rooms")) == counts["bad"]
    assert sum(prometheus(agent, "fogline_job_bad", "q")) == counts["bad"]


def job_counts(agent: AgentProcess) -> dict[str, Any]:
    (job,) = [job for job in agent.status()["engine"]["jobs"] if job["name"] == "q"]
    return dict(job)


def live_latencies(agent: AgentProcess) -> list[int]:
    """They change with every record that is counted."""
    queries = job_counts(agent)["queries"]
    return [q["latency_ms"] for q in queries if q["name"].startswith("live")]


def _all_differ(agent: AgentProcess, before: list[int]) -> bool:
    return all(a != b for a, b in zip(live_latencies(agent), before, strict=True))


def prometheus(agent: AgentProcess, name: str, job: str) -> list[float]:
    """The values of a metric of a job, one for each query."""
    address = f"http://127.0.0.1:{agent.http_port}/metrics"
    with urllib.request.urlopen(address, timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return [
        float(line.split()[-1])
        for line in lines
        if line.startswith(f"{name}{{") and f'job="{job}"' in line
    ]


def test_metrics_are_a_stream(agent: AgentProcess) -> None:
    found = wait_for(lambda: agent.records("insights/m/load"), 60, "insight over metrics")
    assert found[0]["keys"] == {"site": "test"}
    assert 0 < found[0]["value"] <= 100


def test_what_is_stored_is_what_an_insight_sees(agent: AgentProcess, fogline: Fogline) -> None:
    """SenML with a base value: 20 and 1.5 are 21.5."""
    pack = [{"bn": "dev", "bt": BASE // 1000, "bv": 20, "n": ":t1", "v": 1.5}]
    publish(agent, "packs", json.dumps(pack))
    insights = wait_for(lambda: agent.records("insights/p/warm"), 60, "insight of the pack")
    assert [(record["keys"], record["value"]) for record in insights] == [({"device": "dev"}, 21.5)]
    asked = ("query", ":t1", "--json", "--url", agent.status()["store"]["address"])
    token = ("--token-file", agent.folder / "test" / "store" / "token")

    def stored() -> str:
        answer = fogline(*asked, *token)
        assert answer.code == 0, answer.err
        return answer.out

    value = json.loads(wait_for(stored, 60, "stored value"))
    assert (value["entity"], value["value"]) == ("dev", 21.5)


def test_health_status_and_metrics_over_http(agent: AgentProcess) -> None:
    address = f"http://127.0.0.1:{agent.http_port}"
    with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
        assert json.load(answer) == {"healthy": True}
    with urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    assert 'fogline_healthy{site="test"} 1' in text
    assert "fogline_job_lag_bytes" in text
    jobs = {job["name"]: job for job in agent.status()["engine"]["jobs"]}
    assert {q["name"] for q in jobs["q"]["queries"]} == {"windows", "live", "live-records"}


def test_who_moves_messages_goes_before_who_computes_and_stores(agent: AgentProcess) -> None:
    assert agent.process
    below = psutil.Process(agent.process.pid).children(True)
    [java] = [process for process in below if process.name() == "java"]
    assert os.sched_getscheduler(java.pid) == os.SCHED_BATCH
    nice = {process.cmdline()[-1]: process.nice() for process in below}
    store, engine = nice["fogline.fabric.process"], nice["fogline.agent.engine.process"]
    assert store > engine == java.nice() > nice["fogline.agent.ingest.process"]


def test_a_second_agent_in_the_folder_is_refused(agent: AgentProcess) -> None:
    site = Site(read_config(agent.config))
    with pytest.raises(UsageError, match="another agent"):
        site.start()


def test_hostile_topics_and_payloads_stop_nothing(agent: AgentProcess) -> None:
    publish(agent, "rooms/é ü", "{}", "[]", "null", '{"t": "soon"}', "x" * 100_000)
    publish(agent, "rooms/$x", '{"room": "c", "x": "NaN", "t": 1e300}', "\x01\x02")
    before = len(results(agent, "now", "c"))
    publish(agent, "rooms/c", reading("c", 5, 200_000))
    wait_for(lambda: len(results(agent, "now", "c")) > before, 60, "value after rubbish")
    assert agent.status()["healthy"]


def test_sigterm_ends_it_in_order_and_it_goes_on_later(agent: AgentProcess) -> None:
    """Last in this module. Values in real time may come again; windows do not."""
    assert agent.stop() == 0
    agent.start()
    agent.wait_healthy()
    publish(agent, "rooms/a", reading("a", 7, 300_000))
    wait_for(
        lambda: [r["value"] for r in results(agent, "now", "a")[-1:]] == [7.0],
        60,
        "value after the restart",
    )
    windows = [r["window"]["end"] for r in results(agent, "level", "a")]
    assert len(windows) == len(set(windows))
