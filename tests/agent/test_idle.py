"""A site in silence: streams that never speak, and the last windows of those that have."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.agent.kit import AgentProcess
from tests.waiting import wait_for

pytestmark = pytest.mark.site

BASE = 1_735_689_600_000
STREAMS = """
rooms = STREAM FROM mqtt(topic="rooms/+", time="t", schema="room string, x double", idle="3 s");
halls = STREAM FROM mqtt(topic="halls/+", time="t", schema="hall string, y double", idle="3 s");
high  = COMPUTE MAX(y, 5 s) EVERY 5 s;
"""
PANES = f"{STREAMS}level = COMPUTE SUM(x, 10 s) BY room EVERY 10 s;"
ROWS = f"{STREAMS}kinds = COMPUTE DISTINCT(room, 10 s) EVERY 10 s;"
PATIENT = """
rooms = STREAM FROM mqtt(topic="rooms/+", time="t", schema="room string, x double", idle="never");
level = COMPUTE SUM(x, 10 s) BY room EVERY 10 s;
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    queries = {"panes": PANES, "rows": ROWS, "patient": PATIENT}
    made = AgentProcess(tmp_path_factory.mktemp("site"), queries)
    made.start()
    try:
        made.wait_healthy()
        yield made
    finally:
        made.end()


def publish(agent: AgentProcess, *readings: tuple[float, int]) -> None:
    """As soon as the broker is there."""
    lines = [json.dumps({"room": "a", "x": x, "t": BASE + t}) for x, t in readings]
    command = ["mosquitto_pub", "-p", str(agent.mqtt_port), "-q", "1", "-t", "rooms/a", "-l"]
    text = "\n".join(lines)
    sent = partial(subprocess.run, command, input=text, text=True, timeout=30, check=False)
    wait_for(lambda: sent().returncode == 0, 30, "broker")


def values(agent: AgentProcess, log: str) -> list[Any]:
    return [record["value"] for record in agent.records(f"insights/{log}")]


def test_windows_close_though_a_stream_never_speaks_and_the_other_falls_silent(
    agent: AgentProcess,
) -> None:
    publish(agent, (1, 0), (2, 5000), (4, 12_000), (8, 25_000))
    wait_for(lambda: values(agent, "panes/level") == [3, 4, 8], 60, "all windows")
    wait_for(lambda: values(agent, "rows/kinds") == [1, 1, 1], 60, "all windows")
    assert values(agent, "patient/level") == [3, 4]
    assert values(agent, "panes/high") == values(agent, "rows/high") == []


def test_every_window_is_told_once_also_after_kills(agent: AgentProcess) -> None:
    """While nobody listens time stands still: the second reading is in time."""
    publish(agent, (16, 60_000))
    for what in ("spark", "ingest", "broker"):
        agent.kill(what)
    publish(agent, (32, 61_000))
    wait_for(lambda: values(agent, "panes/level") == [3, 4, 8, 48], 120, "window after the kills")
    wait_for(lambda: values(agent, "rows/kinds") == [1] * 4, 60, "window after the kills")
    assert agent.records("late/panes/rooms") == []
    publish(agent, (64, 100_000))
    wait_for(lambda: values(agent, "patient/level") == [3, 4, 8, 48], 60, "later windows")
    wait_for(lambda: values(agent, "panes/level") == [3, 4, 8, 48, 64], 60, "last window")
    assert values(agent, "patient/level") == [3, 4, 8, 48]
