"""Writes the records that the queries in this folder run over; the same every time.

    python examples/rainbow/make_data.py

Each record names its metric, as a monitoring agent on a cluster sends them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

FOLDER = Path(__file__).parent
START = 1_767_225_600_000  # 2026-01-01T00:00:00Z


def record(seconds: float, metric: str, value: float, entity: str, **more: str) -> dict[str, Any]:
    return {
        "metricID": metric,
        "value": round(value, 3),
        "timestamp": START + round(seconds * 1000),
        "entityID": entity,
        **more,
    }


def cpu(random: Random) -> Iterator[dict[str, Any]]:
    """A pod that gets busy in its second minute, and the host below it."""
    for second in range(0, 180, 2):
        busy = 35 + 45 / (1 + math.exp((70 - second) / 6))
        value = busy + random.uniform(-4, 4)
        yield record(second, "cpu_ptc", value, "web-0", entityType="POD", podNamespace="shop",
                     podName="web-0", nodeID="edge-1")  # fmt: skip
        yield record(second, "cpu_ptc", value / 3, "edge-1", entityType="HOST", nodeID="edge-1")


def temperature(random: Random) -> Iterator[dict[str, Any]]:
    """The fan of a drone that runs hot near the end."""
    for second in range(0, 900, 5):
        hot = 25 if second >= 780 else 0
        value = 42 + hot + random.gauss(0, 1.5)
        yield record(second, "temperature", value, "drone-7", entityType="DRONE")


def queues(random: Random) -> Iterator[dict[str, Any]]:
    """Rates of two message queues; the robots' service falls behind after half a minute."""
    for second in range(60):
        robots, walkers = 100 + random.uniform(-5, 5), 40 + random.uniform(-3, 3)
        served = robots * (0.6 if second >= 30 else 1.0)
        for metric, value in (
            ("robot_publish_rate", robots),
            ("robot_deliver_rate", served),
            ("walker_publish_rate", walkers),
            ("walker_deliver_rate", walkers),
        ):
            yield record(second, metric, value, metric.split("_")[0], entityType="QUEUE")


def joints(random: Random) -> Iterator[dict[str, Any]]:
    """Moves of a robot's joint around one value, with one stray move and a small group of them."""
    for step in range(300):
        stray = {120: 14.0, 200: 16.0, 201: 16.2, 202: 16.1}.get(step)
        value = stray if stray is not None else 10 + random.gauss(0, 0.3)
        yield record(step * 0.1, "robot_joints_moves", value, "arm-1", entityType="ROBOT")


def events(random: Random) -> Iterator[dict[str, Any]]:
    """Dangerous events at three crossings; one of them has a bad half minute."""
    for second in range(90):
        for node, chance in (("crossing-1", 0.1), ("crossing-2", 0.1), ("crossing-3", 0.05)):
            bad = node == "crossing-2" and 40 <= second < 60
            if random.random() < (0.8 if bad else chance):
                level = random.choice([0.5, 1.0, 2.0])
                yield record(second, "dangerous_event", level, node, node_id=node)


def resources(random: Random) -> Iterator[dict[str, Any]]:
    """CPU, network and GPU memory of one node, and the CPU that a cluster has left."""
    for second in range(0, 120, 2):
        node = {"entityType": "HOST", "nodeID": "edge-1"}
        yield record(second, "cpu_ptc", 50 + random.uniform(-10, 10), "edge-1", **node)
        for metric in ("network_in", "network_out"):
            yield record(second, metric, 800 + random.uniform(-200, 200), "edge-1", **node)
        yield record(second, "gpu_memory", 6000 + random.uniform(-50, 50), "edge-1", **node)
        free = 40 + random.uniform(-8, 8)
        yield record(second, "SYSTEM_CPU_VISIBLETOTAL", free, "cluster", entityType="CLUSTER")


def energy(random: Random) -> Iterator[dict[str, Any]]:
    """Power draw of two nodes."""
    for second in range(60):
        for node, usual in (("edge-1", 120.0), ("edge-2", 80.0)):
            value = usual + random.uniform(-5, 5)
            yield record(second, "energy_consumption", value, node, node_id=node)


def write(name: str, records: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(entry) + "\n" for entry in records)
    (FOLDER / f"{name}.ndjson").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for make in (cpu, temperature, queues, joints, events, resources, energy):
        write(make.__name__, make(Random(make.__name__)))
