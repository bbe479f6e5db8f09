"""ALLOW WHEN over nodes, and the baseline scheduler."""

from __future__ import annotations

import pytest

from fogline.language.parser import parse
from fogline.model.nodes import Node
from fogline.placement import Task, scheduler_named
from fogline.placement.allow import allows

NODE = Node(
    "edge-1",
    "site",
    engine="local[*]",
    cores=4,
    memory_mb=2048,
    latitude=54.9,
    labels={"tier": "edge", "floor": "3", "owner": "city works"},
)


def allowed(condition: str) -> bool:
    query = parse(f"x = COMPUTE AVG(v, 5 s) EVERY 5 s WITH ALLOW WHEN {condition}")
    return allows(query.insights[0].options.allow, NODE)


@pytest.mark.parametrize(
    "condition",
    [
        "node_id IN (edge-1, edge-2)",
        'node_id == "edge-1"',
        "kind == site",
        "tier == edge",
        "tier != cloud",
        "cores >= 4 AND memory_mb > 1000",
        "floor < 4",
        "tier == cloud OR latitude > 50",
        "NOT (tier == cloud)",
        'owner == "city works"',
    ],
)
def test_what_is_true_of_a_node(condition: str) -> None:
    assert allowed(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "node_id IN (edge-2)",
        "cores > 4",
        "nothing == edge",
        "nothing != edge",
        "tier > 3",
        "cores == four",
        "longitude < 10",
        "tier == edge AND floor == 4",
    ],
)
def test_what_is_not(condition: str) -> None:
    assert not allowed(condition)


def test_without_a_condition_every_node_may() -> None:
    assert allows(None, NODE)


def test_the_baseline_stays_with_the_data_or_goes_to_the_cloud() -> None:
    cloud = Node("cloud", "site", memory_mb=100, labels={"tier": "cloud"})
    large = Node("large", "site", memory_mb=9000)
    schedule = scheduler_named(None)
    assert schedule(Task(("i",), ("large",)), [cloud, large]) is large
    assert schedule(Task(("i",), ("large", "edge-1")), [cloud, large]) is cloud
    assert schedule(Task(("i",), ("edge-1",)), [NODE, large]) is NODE
    assert schedule(Task(("i",), ("other",)), [NODE, large]) is large
    assert scheduler_named("perf") is schedule
