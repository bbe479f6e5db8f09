"""A whole site from outside: real clients, real Spark, one process after the other killed."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.config import read_config
from fogline.agent.site import Site
from fogline.broker.mosquitto import Mosquitto, MosquittoOptions
from fogline.errors import UsageError
from tests.agent import kill_matrix
from tests.agent.kit import AgentProcess, free_port
from tests.waiting import wait_for

BASE = 1_735_689_600_000
QUERY = """
rooms = STREAM FROM mqtt(topic="rooms/+", format="json", time="t", lateness="2 s",
                         schema="room string, x double");
level = COMPUTE AVG(x, 10 s) BY room EVERY 10 s;
now   = COMPUTE AVG(x, 10 s) BY room;
fan   = COMPUTE x BY room WHEN > 90 TO mqtt(topic="cmd/{room}");
over  = COMPUTE MAX(level, 20 s) EVERY 20 s WITH SALIENCE 5;
"""
METRICS = """
node = STREAM FROM mqtt(topic="metrics/node", format="json", time="time");
load = COMPUTE MAX(memory_percent, 2 s) BY site EVERY 2 s;
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    made = AgentProcess(tmp_path_factory.mktemp("site"), {"q": QUERY, "m": METRICS})
    made.start()
    try:
        made.wait_healthy()
        yield made
    finally:
        made.end()


def publish(agent: AgentProcess, topic: str, *payloads: str, login: Sequence[str] = ()) -> None:
    """With Mosquitto's own client, one message a line."""
    command = ["mosquitto_pub", "-p", str(agent.mqtt_port), "-q", "1", "-t", topic, "-l", *login]
    subprocess.run(command, input="\n".join(payloads), text=True, check=True, timeout=30)


def reading(room: str, x: float, t: int) -> str:
    return json.dumps({"room": room, "x": x, "t": BASE + t})


def results(agent: AgentProcess, insight: str, room: str) -> list[dict[str, Any]]:
    return [r for r in agent.records(f"insights/q/{insight}") if r["keys"].get("room") == room]


class Subscriber:
    """`mosquitto_sub` in the background."""

    def __init__(self, agent: AgentProcess, topic: str, folder: Path) -> None:
        self.output = folder / "sub.txt"
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                ["mosquitto_sub", "-p", str(agent.mqtt_port), "-t", topic, "-q", "1", "-v", "-d"],
                stdout=output,
            )
        wait_for(lambda: "SUBACK" in self.output.read_text(), 10, "subscription")

    def has(self, beginning: str) -> bool:
        lines = self.output.read_text(encoding="utf-8").splitlines()
        return any(line.startswith(beginning) for line in lines)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


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


def test_metrics_are_a_stream(agent: AgentProcess) -> None:
    found = wait_for(lambda: agent.records("insights/m/load"), 60, "insight over metrics")
    assert found[0]["keys"] == {"site": "test"}
    assert 0 < found[0]["value"] <= 100


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


def test_an_existing_broker_with_a_password(tmp_path: Path) -> None:
    """Over a subscription then, because a broker that is not ours has no journal."""
    options = MosquittoOptions(user="fog", password="s3cret line")
    (tmp_path / "secret").write_text("s3cret line\n", encoding="utf-8")
    with Mosquitto(tmp_path / "broker", options) as broker:
        more = f"{{url: 'mqtt://127.0.0.1:{broker.port}', user: fog, password_file: secret}}"
        agent = AgentProcess(tmp_path, {"q": QUERY}, broker=more)
        agent.mqtt_port = broker.port
        agent.start()
        try:
            agent.wait_healthy()
            publish(agent, "rooms/a", reading("a", 1, 0), login=["-u", "fog", "-P", "s3cret line"])
            wait_for(lambda: results(agent, "now", "a"), 60, "value")
            everything = [f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()]
            kept = [text for text in everything if b"s3cret line" in text]
            assert len(kept) == 1, "only the password file holds the password"
            assert "s3cret" not in json.dumps(agent.status())
        finally:
            agent.end()


def test_without_space_the_site_says_so_and_confirms_nothing(tmp_path: Path) -> None:
    config = tmp_path / "site.yaml"
    port = free_port()
    text = f"site: full\nbroker: {{port: {port}}}\nmin_free_megabytes: 1000000000000\n"
    config.write_text(text, encoding="utf-8")
    site = Site(read_config(config))
    site.start()
    try:
        assert "no space" in site.status()["broker"]["state"]
        command = ["mosquitto_pub", "-p", str(port), "-q", "1", "-t", "a", "-m", "1"]
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(command, timeout=3, check=True)
    finally:
        site.stop()


def test_kill_matrix(tmp_path: Path) -> None:
    """A short one; the full one is `make kill-matrix`."""
    outcome = kill_matrix.run(
        tmp_path, 20_000, 500, ["ingest", "spark", "broker", "all"], int(time.time()), print
    )
    assert outcome.problems() == []
