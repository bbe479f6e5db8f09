"""Any site answers for all, whoever is away, and what was confirmed is counted once."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fogline.demo.world import World
from fogline.fabric.errors import NodeRefused
from fogline.fabric.http.store_client import StoreClient
from tests.fabric_sites.conftest import SITES
from tests.fabric_sites.kit import (
    Publisher,
    ask,
    counts,
    eventually,
    held,
    kill_store,
    pages,
    publish,
    states,
    store_client,
)

pytestmark = pytest.mark.site

_numbers = itertools.count(0, 1_000_000)


@pytest.fixture
def base() -> int:
    """Numbers that no other test uses, so that tests need not know of each other."""
    return next(_numbers)


def total(world: World, site: str) -> dict[str, int]:
    return {name: counts(world, site).get(name, 0) for name in SITES}


def taken_in(world: World, before: dict[str, int], more: dict[str, int]) -> None:
    """Waits until each site has so many more, as every site tells."""
    wanted = {name: before[name] + more.get(name, 0) for name in SITES}
    for site in SITES:
        eventually(lambda site=site: total(world, site) == wanted, f"{wanted} at {site}")


def test_every_question_has_the_same_answer_everywhere(world: World, base: int) -> None:
    before = total(world, "north")
    for place, site in enumerate(SITES):
        publish(world, site, range(base + place, base + 300, 3), entity=f"m{place % 2}")
    taken_in(world, before, dict.fromkeys(SITES, 100))

    def answers(site: str) -> list[Any]:
        span = {"from": f"{(1_700_000_000 + base) * 10**6}"}
        told = [
            ask(world, site, "/v1/latest", metric="n"),
            ask(world, site, "/v1/latest", metric="n%", entity=["m0", "mx"]),
            ask(world, site, "/v1/aggregate", metric="n", bucket="60s", **span),
            ask(world, site, "/v1/metrics", prefix="n"),
        ]
        ranges = [
            pages(world, site, limit, metric="n", order=order, **span)
            for limit, order in ((7, "asc"), (1000, "asc"), (50, "desc"))
        ]
        return [json.dumps(item, sort_keys=True) for item in (*told, *ranges)]

    first = answers("north")
    assert answers("south") == first
    assert answers("east") == first
    whole = pages(world, "north", 7, metric="n", **{"from": f"{(1_700_000_000 + base) * 10**6}"})
    assert [value["value"] for value in whole] == list(range(base, base + 300))


def test_what_one_site_knows_about_a_metric_all_know(world: World) -> None:
    told = {"unit": "kW", "description": "power of a machine"}
    store_client(world, "south").json("PUT", "/v1/metadata/n", (), told)
    for site in SITES:

        def known(site: str = site) -> bool:
            found = ask(world, site, "/v1/metadata/n")
            return json.dumps(found).count("power of a machine") == 1

        eventually(known, f"metadata at {site}")


def test_a_stopped_site_is_named_and_back_when_it_returns(world: World, base: int) -> None:
    before = total(world, "north")
    publish(world, "south", range(base, base + 50))
    taken_in(world, before, {"south": 50})
    world.sites["south"].ask_to_end()
    world.sites["south"].wait(60)
    try:
        others = {"north": "answered", "east": "answered"}
        for site in others:
            eventually(lambda site=site: states(world, site) == others | {"south": "away"}, "away")
            assert set(counts(world, site)) <= set(others)
            eventually(lambda site=site: _reachable(world, site, "south") == 0, "noted as away")
    finally:
        world.sites["south"].start()
    taken_in(world, before, {"south": 50})


def test_killed_while_values_come_in(world: World, base: int) -> None:
    """The store process again and again, and once the whole site."""
    before = total(world, "north")
    count, random_ = 4_000, random.Random(7)
    publishers = {site: Publisher(world, site, range(base, base + count)) for site in SITES}
    for publisher in publishers.values():
        publisher.start()
    killed: set[int] = set()
    while any(publisher.is_alive() for publisher in publishers.values()) or len(killed) < 6:
        killed.add(kill_store(world, random_.choice(["north", "east"])))
        eventually(lambda: counts(world, "south"), "an answer of south")
    for publisher in publishers.values():
        publisher.join()
        assert publisher.error is None
    world.sites["east"].kill()
    world.sites["east"].start()
    taken_in(world, before, dict.fromkeys(SITES, count))


def node_told(world: World, site: str, name: str) -> dict[str, Any]:
    """How a node took part in an answer of another one."""
    told: list[dict[str, Any]] = ask(world, site, "/v1/latest")["nodes"]
    return next(node for node in told if node["node"] == name)


def test_a_copy_answers_for_a_dead_site(world: World, base: int) -> None:
    before = total(world, "north")
    publish(world, "east", range(base, base + 500))
    taken_in(world, before, {"east": 500})
    run_fogline(world, "replicas", "add", "east", "south")
    publish(world, "east", range(base + 500, base + 700))
    wanted = total(world, "north")["east"]

    eventually(lambda: held(world, "south", "east") == before["east"] + 700, "old and new values")
    # Values may be there before the copy knows that they are all of them.
    eventually(lambda: ask(world, "south", "/v1/state")["copies"]["east"]["until"], "a whole copy")
    world.sites["east"].kill()
    try:
        for site in ("north", "south"):
            eventually(lambda site=site: states(world, site)["east"] == "copy", "a copy")
            eventually(
                lambda site=site: "until" in node_told(world, site, "east"), "how late it is"
            )
            east = node_told(world, site, "east")
            assert east["at"] == "south"
            assert east["until"] > "2023"
            assert counts(world, site)["east"] == before["east"] + 700
    finally:
        world.sites["east"].start()
    publish(world, "east", range(base + 700, base + 800))
    for site in SITES:
        eventually(lambda site=site: states(world, site)["east"] == "answered", "east is back")
    eventually(lambda: counts(world, "north")["east"] == before["east"] + 800, "all of it")
    assert wanted >= before["east"] + 500
    run_fogline(world, "replicas", "remove", "east", "south")
    eventually(lambda: not (world.folder / "south" / "copies" / "east").exists(), "the copy gone")


def test_a_site_that_lost_its_store_takes_its_values_back(world: World, base: int) -> None:
    before = total(world, "south")
    publish(world, "north", range(base, base + 300))
    taken_in(world, before, {"north": 300})
    run_fogline(world, "replicas", "add", "north", "east")
    eventually(lambda: held(world, "east", "north") == before["north"] + 300, "a copy at east")
    world.sites["north"].ask_to_end()
    world.sites["north"].wait(60)
    for name in ("store", "log"):
        subprocess.run(["rm", "-rf", str(world.folder / "north" / name)], check=True)
    world.sites["north"].start()
    publish(world, "north", range(base + 300, base + 400))
    for site in SITES:
        eventually(
            lambda site=site: (
                counts(world, site)["north"] == before["north"] + 400
                and states(world, site)["north"] == "answered"
            ),
            f"old and new values at {site}",
        )
    eventually(lambda: held(world, "east", "north") == before["north"] + 400, "the copy follows")
    run_fogline(world, "replicas", "remove", "north", "east")


def test_health_and_routes_are_metrics_too(world: World) -> None:
    told = ask(world, "south", "/v1/latest", metric=["fabric.%"], scope="node")["values"]
    found = {(value["metric"], value["entity"]) for value in told}
    for metric, other in itertools.product(("reachable", "latency_ms", "via"), ("north", "east")):
        assert (f"fabric.{metric}", other) in found
    assert _reachable(world, "south", "east") == 1


def _reachable(world: World, site: str, other: str) -> Any:
    """What a site has stored last about the way to another."""
    told = ask(world, site, "/v1/latest", metric="fabric.reachable", entity=other, node=site)
    return told["values"][0]["value"] if told["values"] else None


def test_only_authorised_callers(world: World) -> None:
    address = world.status("north")["store"]["address"]
    for token in ("", "wrong", "x" * 43):
        with pytest.raises(NodeRefused):
            StoreClient(address, token).json("GET", "/v1/latest")
    token_file = str(world.folder / "north" / "store" / "token")
    told = run_fogline(
        world, "query", "nodes", "--json", "--url", address, "--token-file", token_file
    )
    assert {json.loads(line)["node"] for line in told.splitlines()} == set(SITES)


def run_fogline(world: World, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from fogline.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        env=world.environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        cwd=Path.cwd(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_whose_values_can_be_said(world: World) -> None:
    told = ask(world, "south", "/v1/latest", node=["nor%", "east"])
    assert {node["node"] for node in told["nodes"]} == {"north", "east"}
    assert {value["node"] for value in told["values"]} <= {"north", "east"}
    assert ask(world, "south", "/v1/latest", node="nobody") == {"values": [], "nodes": []}
