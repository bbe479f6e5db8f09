"""Stores that are killed while values come in and while files are merged: every kind of question
has the same, exact answer at every site, also while one is stopped."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from fogline.demo.world import World
from tests.fabric_sites.conftest import SITES
from tests.fabric_sites.kit import Publisher, ask, eventually, kill_store, pages, store_client

pytestmark = pytest.mark.site

ENTITY = "killed"
"""Nobody else's values are about it."""
READINGS, KILLS = 2_000, 3
ORDERS = {"columns": {"id": "text", "site": "text"}, "key": ["id"]}
WORST = "north"
"""Whose store is killed."""


def test_every_question_after_kills_in_intake_and_compaction(world: World) -> None:
    for site in SITES:
        orders(world, site)
    kill_during_intake(world)
    posted = kill_during_compaction(world)
    expected = dict.fromkeys(SITES, READINGS)
    for site in SITES:
        eventually(lambda site=site: readings(world, site) == expected, f"all readings at {site}")
    check(world, SITES, posted)
    world.sites["south"].ask_to_end()
    world.sites["south"].wait(60)
    try:
        left = tuple(site for site in SITES if site != "south")
        for site in left:
            eventually(lambda site=site: set(readings(world, site)) == set(left), "south is away")
        check(world, left, posted)
    finally:
        world.sites["south"].start()
    for site in SITES:
        eventually(lambda site=site: readings(world, site) == expected, f"south, as {site} sees it")


def orders(world: World, site: str) -> None:
    """Rows of every site's own, and one that all have."""
    asked = store_client(world, site)
    asked.json("PUT", "/v1/spaces/orders", (), ORDERS)
    own = [{"id": f"{site}-{n}", "site": site, "time": n + 1} for n in range(20)]
    asked.json("POST", "/v1/spaces/orders/rows", (), {"rows": own})
    shared = {"id": "shared", "site": site, "time": 0}
    asked.json("POST", "/v1/spaces/orders/rows", (), {"rows": [shared]})


def kill_during_intake(world: World) -> None:
    publishers = [Publisher(world, site, range(READINGS), ENTITY) for site in SITES]
    for publisher in publishers:
        publisher.start()
    killed: set[int] = set()
    while any(publisher.is_alive() for publisher in publishers) or len(killed) < KILLS:
        killed.add(kill_store(world, WORST))
        eventually(lambda: readings(world, "south"), "an answer of south")
    for publisher in publishers:
        publisher.join()
        assert publisher.error is None


def kill_during_compaction(world: World) -> int:
    """Again and again at the moment when a merged file appears; how many values were stored.

    Every request leaves a file, eight of them are merged by the next round of upkeep. Nothing is
    put in while that is waited for, and what was put in before was confirmed.
    """
    data, posted = world.folder / WORST / "store" / "data", 0
    for _ in range(KILLS):
        eventually(lambda: ask(world, WORST, "/v1/state")["id"], "a store that answers")
        pid = int(world.status(WORST)["store"]["pid"])
        asked, found = store_client(world, WORST), set[str]()
        while not found:
            while len(names(data)) < 9:
                values = [
                    {"metric": "posted", "entity": ENTITY, "time": posted + n, "value": posted + n}
                    for n in range(5)
                ]
                asked.json("POST", "/v1/values", (), {"values": values})
                posted += 5
            found = new_file(data)
        psutil.Process(pid).kill()
        eventually(lambda pid=pid: world.status(WORST)["store"]["pid"] != pid, "another process")
    return posted


def names(data: Path) -> set[str]:
    return set(os.listdir(data))


def new_file(data: Path) -> set[str]:
    """The first file that comes, as soon as it is there."""
    before, deadline = names(data), time.monotonic() + 5
    while time.monotonic() < deadline:
        if found := names(data) - before:
            return found
    return set()


def readings(world: World, site: str) -> dict[str, int]:
    """How many there are of each node, as one site tells."""
    told = ask(world, site, "/v1/aggregate", metric="n", entity=ENTITY, bucket="1000000h",
               function="count")  # fmt: skip
    return {row["node"]: row["count"] for row in told["rows"]}


def check(world: World, sites: tuple[str, ...], posted: int) -> None:
    """Every kind of question at these sites; the others are stopped."""
    answers = {site: everything(world, site) for site in sites}
    first = answers[sites[0]]
    for site in sites:
        for name, answer in answers[site].items():
            assert answer == first[name], f"{name} at {site}"
    states = [{"node": s, "state": "answered" if s in sites else "away"} for s in sorted(SITES)]
    for name, (_, nodes) in first.items():
        assert nodes == states, name
    found = {name: rows for name, (rows, _) in first.items()}
    assert [(value["value"], value["node"]) for value in found["range"]] == [
        (n, site) for n in range(READINGS) for site in sorted(sites)
    ]
    assert found["range backwards"] == found["range"][::-1]
    newest = {(v["node"], v["metric"]): v["value"] for v in found["latest"]}
    wanted = {(site, "n"): READINGS - 1 for site in sites} | {(WORST, "posted"): posted - 1}
    assert newest == wanted
    assert {v["node"] for v in found["latest of a prefix"]} == {WORST}
    assert [row["count"] for row in found["aggregate"]] == [READINGS] * len(sites)
    assert [value["value"] for value in found["posted"]] == list(range(posted))
    assert found["sql"] == [{"n": READINGS * len(sites), "s": sum(range(READINGS)) * len(sites)}]
    assert [row["n"] for row in found["sql at each"]] == [READINGS] * len(sites)
    ids = {row["id"] for row in found["space"]}
    assert ids == {"shared"} | {f"{site}-{n}" for site in sites for n in range(20)}
    assert len(found["space"]) == len(ids)
    assert found["space"][0]["site"] == (SITES[-1] if SITES[-1] in sites else WORST)
    assert [space["at"] for space in found["spaces"]] == [sorted(sites)]
    assert ("posted", [WORST]) in [(m["metric"], m["nodes"]) for m in found["metrics"]]


def everything(world: World, site: str) -> dict[str, tuple[Any, Any]]:
    """Rows of each kind of question, and how the sites took part, without the reasons."""
    asked = store_client(world, site)
    of = {"entity": ENTITY}
    sql = "SELECT count(*) AS n, CAST(sum(value) AS BIGINT) AS s FROM history"
    where = f"WHERE metric = 'n' AND entity = '{ENTITY}'"
    sums = [("metric", "n"), ("entity", ENTITY)]
    told = {
        "latest": (ask(world, site, "/v1/latest", **of), "values"),
        "latest of a prefix": (ask(world, site, "/v1/latest", metric="post%", **of), "values"),
        "aggregate": (
            ask(
                world, site, "/v1/aggregate", metric="n", bucket="1000000h", function="count", **of
            ),
            "rows",
        ),
        "metrics": (ask(world, site, "/v1/metrics", prefix="po"), "metrics"),
        "spaces": (ask(world, site, "/v1/spaces"), "spaces"),
        "space": (ask(world, site, "/v1/spaces/orders/rows"), "rows"),
        "sql": (
            asked.json("POST", "/v1/sql", [("scope", "all"), *sums], {"sql": f"{sql} {where}"}),
            "rows",
        ),
        "sql at each": (
            asked.json("POST", "/v1/sql", [("scope", "each")], {"sql": f"{sql} {where}"}),
            "rows",
        ),
    }
    found = {name: (rows[key], rows["nodes"]) for name, (rows, key) in told.items()}
    nodes = found["latest"][1]
    for name, metric, order in (
        ("range", "n", "asc"),
        ("range backwards", "n", "desc"),
        ("posted", "posted", "asc"),
    ):
        found[name] = pages(world, site, 700, metric=metric, order=order, **of), nodes
    return {name: (rows, [_state(node) for node in nodes]) for name, (rows, nodes) in found.items()}


def _state(node: dict[str, Any]) -> dict[str, Any]:
    return {"node": node["node"], "state": node["state"]}
