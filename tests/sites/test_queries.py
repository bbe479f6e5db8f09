"""A query file over sites and a gateway gives what it gives at one place."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fogline.common.process.free_ports import free_port
from fogline.demo.world import Process, World
from fogline.log import SiteLog
from tests.agent.kit import Publisher, payloads
from tests.broker.subscriber import Subscriber
from tests.sites.kit import deployed
from tests.waiting import wait_for

pytestmark = pytest.mark.site

QUERY = """
s = STREAM FROM mqtt(topic="rooms", format="json", time="at", lateness="3 s"{nodes});

mean = COMPUTE AVG(x, 10 s) BY room EVERY 5 s;
most = COMPUTE MAX(mean, 20 s) BY room EVERY 20 s WITH ALLOW WHEN node_id == b;
"""
START = 1_700_000_000_000


def readings(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    made = [
        {"at": START + i * 50 + rng.randrange(900), "room": rng.choice("uvw"), "x": rng.random()}
        for i in range(2400)
    ]
    return [*made, {"at": START + 400_000, "room": "end", "x": 0.0}]


def in_one_place(folder: Path, rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    (folder / "q.ins").write_text(QUERY.format(nodes=""), encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "rows.json").write_text(lines, encoding="utf-8")
    command = [sys.executable, "-c", "from fogline.cli.main import main; main()", "run"]
    command += [str(folder / "q.ins"), "--input", str(folder / "rows.json"), "--batch", "--json"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, set[str]] = {"mean": set(), "most": set()}
    for line in out.splitlines():
        record = json.loads(line)
        if record["window"]["end"] < "2023-11-14T22:15:20":
            found[record["insight"]].add(rounded(record))
    return found


def rounded(record: dict[str, Any]) -> str:
    return json.dumps(record | {"value": round(record["value"], 9)}, sort_keys=True)


def results(world: World, site: str, job: str, insight: str) -> list[str]:
    with SiteLog(world.folder / site / "log").reader(f"insights/{job}/{insight}") as reader:
        found = [json.loads(payload) for payload in payloads(reader)]
    early = [r for r in found if r["window"]["end"] < "2023-11-14T22:15:20"]
    return [rounded(record) for record in early]


def publish(port: int, name: str, topic: str, rows: list[dict[str, Any]]) -> None:
    publisher = Publisher(port, name, topic)
    for row in rows:
        publisher.send(row)
    wait_for(lambda: publisher.confirmed == len(rows), 60, "confirmations")
    publisher.close()


def parts(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    ends = [row for row in rows if row["room"] == "end"]
    own = [row for row in rows if row["room"] != "end"]
    return [own[0::2] + ends, own[1::2] + ends]


def test_first_stages_at_the_edge(world: World, tmp_path: Path) -> None:
    rows = readings(1)
    expected = in_one_place(tmp_path, rows)
    assert len(expected["mean"]) > 50
    with deployed(world, "rooms", QUERY.format(nodes=""), "ins") as jobs:
        where = {job["name"]: job["node"] for job in jobs}
        assert where == {
            "rooms-mean@a": "a",
            "rooms-mean@b": "b",
            "rooms-mean": "d",
            "rooms-b": "b",
        }
        for site, own in zip("ab", parts(rows), strict=True):
            publish(world.ports[site], f"rooms-{site}", "rooms", own)

        def mean() -> list[str]:
            return results(world, "d", "rooms-mean", "mean")

        def most() -> list[str]:
            return results(world, "b", "rooms-b", "most")

        world.wait(lambda: len(mean()) >= len(expected["mean"]), 120, "all means at d")
        assert sorted(mean()) == sorted(expected["mean"])
        world.wait(lambda: len(most()) >= len(expected["most"]), 120, "all maxima at b")
        assert sorted(most()) == sorted(expected["most"])


def test_a_signed_insight_goes_from_site_to_site_unseen(world: World, tmp_path: Path) -> None:
    """Computed at d, read at b over a link: who has no key sees it at neither broker."""
    query = QUERY.replace("EVERY 5 s;", "EVERY 5 s WITH SIGNATURE 'plant-7';")
    with deployed(world, "closed", query.format(nodes=""), "ins") as jobs:
        where = {job["name"]: job["node"] for job in jobs}
        assert (where["closed-mean"], where["closed-b"]) == ("d", "b")
        seen = {site: Subscriber(world.ports[site], tmp_path) for site in "bd"}
        try:
            for site, own in zip("ab", parts(readings(3)), strict=True):
                publish(world.ports[site], f"closed-{site}", "rooms", own)
            topic = "insights/closed-b/most"
            wait_for(lambda: seen["b"].got(topic), 120, "what is made of it")
            wait_for(lambda: seen["d"].got("metrics/node"), 30, "messages at d")
            assert results(world, "d", "closed-mean", "mean")
            for client in seen.values():
                assert "insights/closed-mean/mean" not in client.text
        finally:
            for client in seen.values():
                client.close()


@pytest.fixture
def gateway(world: World, tmp_path: Path) -> Iterator[int]:
    """A gateway at site c; the port that devices publish to."""
    port = free_port()
    config = {
        "gateway": "gate",
        "site": "c",
        "folder": str(tmp_path / "gate"),
        "broker": {"port": port},
        "control": {"url": f"mqtt://127.0.0.1:{world.control_port}"},
        "min_free_megabytes": 1,
    }
    path = tmp_path / "gate.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    process = Process("gate", ["gateway", "--config", str(path)], tmp_path)
    process.start()

    def known() -> bool:
        nodes = {node["name"]: node["state"] for node in world.client.nodes()}
        return nodes.get("gate") == "online"

    world.wait(known, 60, "the gateway")
    yield port
    process.ask_to_end()
    process.wait(30)
    world.wait(lambda: not known(), 30, "the gateway's end")
    world.client.forget_node("gate")


def test_the_first_stage_on_a_gateway(world: World, gateway: int, tmp_path: Path) -> None:
    rows = readings(2)
    expected = in_one_place(tmp_path, rows)["mean"]
    query = QUERY.format(nodes=', nodes="gate"').partition("most")[0]
    with deployed(world, "gated", query, "ins") as jobs:
        assert {job["name"]: job["node"] for job in jobs} == {
            "gated-d-s@gate": "gate",
            "gated-d": "d",
        }
        publish(gateway, "gated", "rooms", rows)

        def mean() -> list[str]:
            return results(world, "d", "gated-d", "mean")

        world.wait(lambda: len(mean()) >= len(expected), 120, "all means at d")
        assert sorted(mean()) == sorted(expected)


NOW = """
s = STREAM FROM mqtt(topic="{topic}", format="json", time="at", nodes="a, b");

at_a = COMPUTE x * 2 BY room WITH ALLOW WHEN node_id == a;
at_b = COMPUTE x * 2 BY room WITH ALLOW WHEN node_id == b;
"""


def test_messages_that_travel_arrive_once(world: World) -> None:
    """Both sites send each other their messages, for two queries whose patterns meet."""
    one, two = (NOW.format(topic=topic) for topic in ("now/+", "now/#"))
    rows = [{"at": START + n, "room": "r", "x": n} for n in range(40)]
    logs = [(f"insights/{job}-{site}/at_{site}", site) for job in ("one", "two") for site in "ab"]

    def counts(room: str) -> list[int]:
        """How many messages of a room every insight has told."""
        found = []
        for name, site in logs:
            with SiteLog(world.folder / site / "log").reader(name) as reader:
                keys = [json.loads(payload)["keys"] for payload in payloads(reader)]
            found.append(sum(key["room"] == room for key in keys))
        return found

    with deployed(world, "one", one, "ins"), deployed(world, "two", two, "ins"):
        for site in "ab":
            publish(world.ports[site], f"now-{site}", "now/1", rows)
        world.wait(lambda: min(counts("r")) >= 80, 120, "every message at both sites")
        # Every way keeps the order: what comes a second time comes before what is sent after it.
        for end in ("end", "later"):
            for site in "ab":
                last = [{"at": START + 40, "room": end, "x": 0}]
                publish(world.ports[site], f"{end}-{site}", "now/1", last)
            world.wait(lambda end=end: min(counts(end)) >= 2, 60, "the last ones at both sites")
        assert counts("r") == [80] * 4
        assert counts("end") == [2] * 4
