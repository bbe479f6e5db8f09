"""Three sites and a coordinator, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fogline.demo.world import SiteSpec, World
from tests.fabric_sites.kit import ask, eventually

SITES = ("east", "north", "south")
STORED = {"topics": [{"topic": "plant/#", "entity": "id", "time": "t"}], "metrics": False}

SETTLED = [{"node": name, "state": "answered"} for name in SITES]
"""All are there, and none looks for lost values any more."""


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    specs = [SiteSpec(name, more={"engine": "none", "store": STORED}) for name in SITES]
    by_hand = {"replicas": {"enabled": False}}
    with World(tmp_path_factory.mktemp("fabric"), specs, coordinator=by_hand) as made:
        for site in SITES:
            eventually(
                lambda site=site: not ask(made, site, "/v1/state")["restoring"],
                f"a store at {site}",
            )
        for site in SITES:
            eventually(
                lambda site=site: ask(made, site, "/v1/latest")["nodes"] == SETTLED,
                f"all sites known at {site}",
            )
        yield made
