"""Sites with nothing but `control` know each other's values: the coordinator hands the secret over.

The fixture's sites have no `secret_file`; that they all answer for all is the first proof.
"""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fogline.common.errors import FoglineError
from fogline.common.fabric_secret import FILE, load_secret
from fogline.demo.world import World
from fogline.fabric.errors import NodeRefused
from fogline.fabric.http.store_client import StoreClient
from tests.fabric_sites.conftest import SITES
from tests.fabric_sites.kit import ask, eventually, states
from tests.fabric_sites.test_fabric import run_fogline

pytestmark = pytest.mark.site

ALL = dict.fromkeys(SITES, "answered")


def secret_at(folder: Path) -> str:
    found = load_secret(folder)
    assert found is not None
    return found.secret


def current(world: World) -> bool:
    """Whether every site has said that it has the secret of the coordinator."""
    told = world.client.fabric()["sites"]
    return {site["node"]: site["state"] for site in told} == dict.fromkeys(SITES, "current")


def all_answer(world: World) -> None:
    for site in SITES:
        eventually(lambda site=site: states(world, site) == ALL, f"all sites at {site}")


def all_have_it(world: World) -> None:
    eventually(lambda: current(world), "the secret at all sites")
    secrets = {secret_at(world.folder / name) for name in ("coordinator", *SITES)}
    assert len(secrets) == 1


def shown_as_node(world: World, site: str, secret: str) -> dict[str, Any]:
    """What a site answers who shows a secret of the fabric."""
    return StoreClient(world.status(site)["store"]["address"], secret).json("GET", "/v1/state")


@contextmanager
def asked_all_the_time(world: World) -> Iterator[list[str]]:
    """What was not an answer of all sites, while this goes on."""
    wrong: list[str] = []
    stop = threading.Event()

    def go_on(site: str) -> None:
        while not stop.is_set():
            try:
                found = states(world, site)
                if found != ALL:
                    wrong.append(f"{site}: {found}")
            except FoglineError as error:
                wrong.append(f"{site}: {error}")

    threads = [threading.Thread(target=go_on, args=(site,)) for site in SITES]
    for thread in threads:
        thread.start()
    try:
        yield wrong
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_it_is_private_and_nobody_tells_it(world: World) -> None:
    all_have_it(world)
    secret = secret_at(world.folder / "coordinator")
    for name in ("coordinator", *SITES):
        assert stat.S_IMODE((world.folder / name / FILE).stat().st_mode) == 0o600
    told = [json.dumps(world.status(site)) for site in SITES]
    told += [json.dumps(ask(world, site, path)) for site in SITES for path in ("/v1/nodes",)]
    told += [json.dumps(world.client.fabric()), json.dumps(world.client.events(1000))]
    told += [json.dumps(world.client.nodes()), run_fogline(world, "fabric")]
    told += [run_fogline(world, "fabric", "--json"), run_fogline(world, "sites", "--json")]
    told += [file.read_text(errors="replace") for file in world.folder.rglob("*.log")]
    assert not any(secret in text for text in told)


def test_a_rotation_while_all_are_asked_has_no_gap(world: World) -> None:
    all_answer(world)
    before = secret_at(world.folder / "coordinator")
    with asked_all_the_time(world) as wrong:
        for _ in range(3):
            assert "the secret was created at" in run_fogline(world, "fabric", "rotate-secret")
            all_have_it(world)
        all_answer(world)
    assert wrong == []
    assert secret_at(world.folder / "coordinator") != before
    for site in SITES:
        assert shown_as_node(world, site, before)["node"] == site


def test_who_knows_a_secret_that_was_ended_is_a_stranger(world: World) -> None:
    all_have_it(world)
    before = secret_at(world.folder / "coordinator")
    run_fogline(world, "fabric", "rotate-secret", "--accept-old", "0")
    all_have_it(world)
    for site in SITES:

        def refused(site: str = site) -> bool:
            try:
                return not shown_as_node(world, site, before)
            except NodeRefused:
                return True

        eventually(refused, f"{site} refuses the secret of before")
        with pytest.raises(NodeRefused):
            shown_as_node(world, site, "a stranger's own secret")
    all_answer(world)


def test_a_site_that_is_killed_during_a_rotation_catches_up(world: World) -> None:
    all_have_it(world)
    world.sites["south"].kill()
    others = {"north": "answered", "east": "answered", "south": "away"}
    for site in ("north", "east"):
        eventually(lambda site=site: states(world, site) == others, "one that is away")
    run_fogline(world, "fabric", "rotate-secret", "--accept-old", "0")
    told = lambda: {site["node"]: site["state"] for site in world.client.fabric()["sites"]}  # noqa: E731
    eventually(lambda: [told()[site] for site in ("east", "north")] == ["current"] * 2, "the rest")
    world.sites["south"].start()
    all_answer(world)
    all_have_it(world)


def test_a_site_that_starts_without_its_coordinator_keeps_the_secret(world: World) -> None:
    all_have_it(world)
    before = secret_at(world.folder / "north")
    world.coordinator.kill()
    try:
        world.sites["north"].kill()
        world.sites["north"].start()
        all_answer(world)
        assert secret_at(world.folder / "north") == before
    finally:
        world.coordinator.start()
    all_have_it(world)


def test_a_coordinator_that_was_reset_makes_another(world: World) -> None:
    all_have_it(world)
    before = secret_at(world.folder / "coordinator")
    world.coordinator.kill()
    (world.folder / "coordinator" / FILE).unlink()
    with asked_all_the_time(world) as wrong:
        world.coordinator.start()
        all_have_it(world)
        all_answer(world)
    assert wrong == []
    assert secret_at(world.folder / "north") != before
