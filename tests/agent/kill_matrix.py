"""Numbered readings at QoS 1 while processes are killed with -9; in the end each counts once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.agent.kit import AgentProcess, Publisher
from tests.waiting import wait_for

VICTIMS = ("ingest", "spark", "broker", "agent", "all")
CLIENTS = 4
BASE_MS = 1_735_689_600_000
QUERY = """
r = STREAM FROM mqtt(topic="readings/+", format="json", time="t", lateness="1 h",
                     schema="client string, n double");
counts = COMPUTE COUNT(n, 1 s) BY client EVERY 1 s;
total = COMPUTE RUNNING_COUNT(n) BY client;
"""


@dataclass(frozen=True)
class Outcome:
    """What came out: all of it must be as `problems` wants it."""

    readings: int
    counted: int
    windows: int
    twice: int
    totals: dict[str, float]
    bad: int
    late: int
    seconds: float

    def problems(self) -> list[str]:
        each = self.readings // CLIENTS
        found = []
        if self.counted != self.readings:
            found.append(f"{self.counted} of {self.readings} readings are in windows")
        if self.twice:
            found.append(f"{self.twice} windows are there twice")
        if self.totals != {f"c{i}": float(each) for i in range(CLIENTS)}:
            found.append(f"real time ends on {self.totals}, not on {each} each")
        if self.bad or self.late:
            found.append(f"{self.bad} bad, {self.late} late")
        return found


def run(
    folder: Path,
    readings: int,
    per_second: float,
    victims: Sequence[str],
    seed: int,
    tell: Callable[[str], None],
) -> Outcome:
    """One run: all victims in turn, at random moments."""
    agent = AgentProcess(folder, {"m": QUERY}, "trigger_ms: 500\n")
    begun = time.monotonic()
    agent.start()
    try:
        agent.wait_healthy()
        tell("the site runs")
        clients = [Publisher(agent.mqtt_port, f"c{i}", f"readings/c{i}") for i in range(CLIENTS)]
        each = readings // CLIENTS
        threads = [
            threading.Thread(target=_send, args=(c, each, per_second / CLIENTS), daemon=True)
            for c in clients
        ]
        for thread in threads:
            thread.start()
        _kill_in_turn(agent, victims, readings / per_second, random.Random(seed), tell)
        _join(threads, clients, each, tell)
        for client in clients:
            client.close()
        agent.wait_healthy()
        _close_windows(agent)
        return _outcome(agent, readings, begun, tell)
    finally:
        agent.end()


def _send(client: Publisher, count: int, per_second: float) -> None:
    begun = time.monotonic()
    for n in range(count):
        ahead = begun + n / per_second - time.monotonic()
        if ahead > 0.01:
            time.sleep(ahead)
        client.send({"client": client.name, "n": n, "t": BASE_MS + 10 * n})


def _kill_in_turn(
    agent: AgentProcess,
    victims: Sequence[str],
    seconds: float,
    rng: random.Random,
    tell: Callable[[str], None],
) -> None:
    share = seconds / (len(victims) + 1)
    for victim in victims:
        time.sleep(share * rng.uniform(0.4, 1.0))
        agent.wait_healthy()
        agent.kill(victim)
        tell(f"killed {victim}")


def _join(
    threads: list[threading.Thread],
    clients: list[Publisher],
    each: int,
    tell: Callable[[str], None],
) -> None:
    for thread in threads:
        thread.join(600)
    wait_for(lambda: all(c.confirmed >= each for c in clients), 120, "confirmation of everything")
    tell(f"all {len(clients) * each} readings are confirmed")


def _close_windows(agent: AgentProcess) -> None:
    """A reading far in the future: every window before it is complete."""
    closing = Publisher(agent.mqtt_port, "closing", "readings/closing")
    closing.send({"client": "closing", "n": 0, "t": BASE_MS + 100 * 3_600_000})
    wait_for(lambda: closing.confirmed == 1, 60, "confirmation of the closing reading")
    closing.close()


def _outcome(
    agent: AgentProcess, readings: int, begun: float, tell: Callable[[str], None]
) -> Outcome:
    def counted() -> int:
        return sum(r["count"] for r in _windows(agent))

    try:
        wait_for(lambda: counted() >= readings, 120, "complete count")
    except AssertionError:
        tell("the count stays incomplete")
    each = readings // CLIENTS
    try:
        wait_for(lambda: set(_totals(agent).values()) == {float(each)}, 60, "right totals")
    except AssertionError:
        tell("the totals stay wrong")
    windows = Counter((r["keys"]["client"], r["window"]["end"]) for r in _windows(agent))
    return Outcome(
        readings=readings,
        counted=counted(),
        windows=len(windows),
        twice=sum(1 for n in windows.values() if n > 1),
        totals=_totals(agent),
        bad=len(agent.records("bad/m/r")),
        late=len(agent.records("late/m/r")),
        seconds=time.monotonic() - begun,
    )


def _windows(agent: AgentProcess) -> list[dict[str, object]]:
    found = agent.records("insights/m/counts")
    return [r for r in found if r["keys"]["client"] != "closing"]


def _totals(agent: AgentProcess) -> dict[str, float]:
    """The last value of every client."""
    found = agent.records("insights/m/total")
    return {r["keys"]["client"]: r["value"] for r in found if r["keys"]["client"] != "closing"}
