"""A query over rooms, readings for it, and its results."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tests.agent.kit import AgentProcess
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


class Reached(Protocol):
    """A site whose broker listens there."""

    @property
    def mqtt_port(self) -> int: ...


def publish(agent: Reached, topic: str, *payloads: str, login: Sequence[str] = ()) -> None:
    """With Mosquitto's own client, one message a line."""
    command = ["mosquitto_pub", "-p", str(agent.mqtt_port), "-q", "1", "-t", topic, "-l", *login]
    subprocess.run(command, input="\n".join(payloads), text=True, check=True, timeout=30)


def reading(room: str, x: float, t: int) -> str:
    return json.dumps({"room": room, "x": x, "t": BASE + t})


def results(agent: AgentProcess, insight: str, room: str) -> list[dict[str, Any]]:
    return [r for r in agent.records(f"insights/q/{insight}") if r["keys"].get("room") == room]


class Subscriber:
    """`mosquitto_sub` in the background."""

    def __init__(self, agent: Reached, topic: str, folder: Path) -> None:
        self.output = folder / "sub.txt"
        with self.output.open("wb") as output:
            command = [
                "mosquitto_sub",
                "-p",
                str(agent.mqtt_port),
                "-t",
                topic,
                "-q",
                "1",
                "-v",
                "-d",
            ]
            self._process = subprocess.Popen(["stdbuf", "-oL", *command], stdout=output)
        wait_for(lambda: "SUBACK" in self.output.read_text(), 10, "subscription")

    def has(self, beginning: str) -> bool:
        lines = self.output.read_text(encoding="utf-8").splitlines()
        return any(line.startswith(beginning) for line in lines)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
