"""A site that fails is copied to one that does not, without anybody asking for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fogline.demo.world import SiteSpec, World
from tests.fabric_sites.conftest import STORED
from tests.fabric_sites.kit import ask, counts, eventually, held, publish, states

pytestmark = pytest.mark.site

SITES = ("calm", "shaky")
QUERY = """
all = STREAM FROM storageFabric(metricID="n");
count_n = COMPUTE COUNT("n" FROM (all), 10 s) EVERY 10 s;
"""
SAMPLED = """
all = STREAM FROM storageFabric(metricID="n", nodeID="far");
mean_n = COMPUTE AVG("n" FROM (all), 10 s) EVERY 10 s WITH SAMPLE 0.6;
"""


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    specs = [SiteSpec(name, more={"engine": "none", "store": STORED}) for name in SITES]
    quick = {"replicas": {"seconds": 1}}
    with World(tmp_path_factory.mktemp("placement"), specs, coordinator=quick) as made:
        yield made


def test_an_unstable_site_is_copied_to_a_stable_one(pair: World) -> None:
    eventually(lambda: set(states(pair, "calm").values()) == {"answered"}, "both sites")
    publish(pair, "shaky", range(500))
    eventually(lambda: counts(pair, "calm").get("shaky") == 500, "500 values")
    assert pair.client.replicas()["copies"] == []

    pair.sites["shaky"].kill()
    eventually(lambda: _node(pair, "shaky")["failures"] == 1, "a failure that is noticed", 180)
    pair.sites["shaky"].start()

    def copied() -> bool:
        found = pair.client.replicas()["copies"]
        return [(c["origin"], c["holder"]) for c in found] == [("shaky", "calm")]

    eventually(copied, "a decision", 180)
    publish(pair, "shaky", range(500, 700))
    eventually(lambda: held(pair, "calm", "shaky") == 700, "700 values in the copy")
    pair.sites["shaky"].kill()
    eventually(lambda: states(pair, "calm")["shaky"] == "copy", "an answer from the copy", 180)
    eventually(lambda: counts(pair, "calm").get("shaky") == 700, "all values from the copy", 180)


@pytest.fixture(scope="module")
def query_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Where being up to date hardly counts, a query's metrics are worth a copy on any link."""
    specs = [
        SiteSpec("far", more={"engine": "none", "store": STORED}),
        SiteSpec("near", more={"store": {"metrics": False}}),
    ]
    more = {"sampling": True, "least_quality": 0.5}
    eager = {"replicas": {"seconds": 1, "beta": 100_000, **more}}
    with World(tmp_path_factory.mktemp("query"), specs, coordinator=eager) as made:
        yield made


def test_what_a_query_reads_is_copied_to_where_it_runs(query_world: World) -> None:
    world = query_world
    eventually(lambda: set(states(world, "near").values()) == {"answered"}, "both sites")
    publish(world, "far", range(100))
    eventually(lambda: counts(world, "near").get("far") == 100, "100 values")
    world.client.put_pipeline("hot", QUERY, "ins")
    (job,) = world.wait_running("hot")
    assert job["node"] == "near"

    def copied() -> bool:
        found = world.client.replicas()["copies"]
        return [(c["origin"], c["holder"], c["metrics"]) for c in found] == [("far", "near", ["n"])]

    eventually(copied, "a decision", 180)
    publish(world, "far", range(100, 200))
    eventually(lambda: held(world, "near", "far") == 200, "200 values in the copy")

    def read_there() -> bool:
        logs = world.status("near")["store"]["fabric_logs"]
        return [log["copies"] for log in logs] == [{"far": "near"}]

    eventually(read_there, "a job that reads the copy", 180)
    publish(world, "far", [10_000])
    eventually(lambda: sum(counts(world, "near", "count_n").values()) > 0, "an insight")
    told = ask(world, "near", "/v1/range", metric="count_n", limit=100)["values"]
    assert 0 < sum(value["value"] for value in told) <= 101
    world.client.delete_pipeline("hot")
    eventually(lambda: world.client.replicas()["copies"] == [], "the copy goes with the job", 180)
    eventually(lambda: not (world.folder / "near" / "copies" / "far").exists(), "its files gone")


def test_less_is_sent_to_a_query_that_samples(query_world: World) -> None:
    """Both steps in force: a copy beside the query, and of that a half of what it asks for."""
    world = query_world
    eventually(lambda: set(states(world, "near").values()) == {"answered"}, "both sites")
    there = counts(world, "near").get("far", 0)
    publish(world, "far", range(20_000, 20_010))
    eventually(lambda: counts(world, "near").get("far") == there + 10, "10 values more")
    world.client.put_pipeline("some", SAMPLED, "ins")
    world.wait_running("some")

    def log() -> dict[str, Any]:
        told = world.status("near")["store"]["fabric_logs"]
        return dict(told[0]) if told else {"shares": None}

    eventually(lambda: log()["shares"] == {"far": 0.3}, "less of far", 180)
    eventually(lambda: log()["copies"] == {"far": "near"}, "a job that reads the copy", 180)
    before = log()
    publish(world, "far", range(21_000, 23_000))
    eventually(lambda: held(world, "near", "far") == there + 2_010, "all values in the copy")
    last = ask(world, "near", "/v1/state")["copies"]["far"]["last"]
    eventually(lambda: log()["nodes"]["far"] >= last, "everything looked at")
    assert 450 < log()["values"] - before["values"] < 750, "about 0.3 of 2,000"
    world.client.delete_pipeline("some")


def _node(world: World, name: str) -> dict[str, int]:
    found: dict[str, int] = next(n for n in world.client.nodes() if n["name"] == name)
    return found
