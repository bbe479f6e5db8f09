"""A site that fails is copied to one that does not, without anybody asking for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fogline.demo.world import SiteSpec, World
from tests.fabric_sites.conftest import STORED
from tests.fabric_sites.kit import counts, eventually, held, publish, states

SITES = ("calm", "shaky")


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


def _node(world: World, name: str) -> dict[str, int]:
    found: dict[str, int] = next(n for n in world.client.nodes() if n["name"] == name)
    return found
