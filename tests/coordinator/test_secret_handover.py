"""The coordinator hands the fabric's secret to its sites, whatever happens to either."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fogline.agent.coordination.fabric_secret import SiteSecret
from fogline.common.errors import FoglineError, SetupError
from fogline.common.fabric_secret import FILE, FabricSecret, load_secret, save_secret
from fogline.control.coordinator import OnOutcomes
from fogline.coordinator.api.rest import make_app
from fogline.coordinator.api.service import Service
from fogline.coordinator.api.tokens import Tokens
from fogline.coordinator.reconcile.secret_handover import SecretHandover
from fogline.model.nodes import GATEWAY, OFFLINE, ONLINE, SITE, Node, NodeView
from tests.coordinator.kit import FakeControl, Rig

TOKEN = "a-token-for-these-tests"


class Sites:
    """Made-up sites that keep what they are handed; the control broker of `SecretHandover`."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.now = 1_800_000_000.0
        self.folder = folder
        self.secrets = {name: self.made(name) for name in names}
        self.nodes = {
            name: NodeView(Node(name, SITE), ONLINE, 0.0, {}, instance="1") for name in names
        }
        self.old: set[str] = set()
        """Agents of before, which do not know the operation."""
        self.lost: set[str] = set()
        self.sent: list[str] = []

    def made(self, name: str, file: Path | None = None) -> SiteSecret:
        (self.folder / name).mkdir(exist_ok=True)
        return SiteSecret(self.folder / name, file, lambda: self.now)

    def handover(self, folder: Path | None = None) -> SecretHandover:
        made: Any = self
        return SecretHandover(folder or self.folder, made, lambda: self.nodes, lambda: self.now)

    def restart(self, name: str) -> None:
        self.secrets[name] = self.made(name)
        view = self.nodes[name]
        self.nodes[name] = replace(view, instance=f"{view.instance}1", state=ONLINE)

    def send_each(
        self, op: str, body: Any, parts: Mapping[str, Any], timeout: float, heard: OnOutcomes
    ) -> None:
        assert op == "secret"
        for name in parts:
            self.sent.append(name)
            if name in self.old:
                heard({name: FoglineError("no operation 'secret'")})
            elif name in self.lost:
                heard({name: SetupError("it does not answer")})
            else:
                secret = self.secrets[name]
                secret.take(FabricSecret.from_json(body))
                heard({name: {"version": secret.version, "own": secret.own}})

    def is_refusal(self, error: BaseException) -> bool:
        return type(error) is FoglineError

    def newest(self) -> dict[str, str]:
        return {name: secret.accepted_secrets()[0][0] for name, secret in self.secrets.items()}


def states(handover: SecretHandover) -> dict[str, str]:
    return {site["node"]: site["state"] for site in handover.status()["sites"]}


def settle(sites: Sites, *handovers: SecretHandover) -> None:
    """Turns until nobody is handed anything any more."""
    for _ in range(50):
        sites.sent.clear()
        for handover in handovers:
            handover.turn()
        if not sites.sent:
            return
    raise AssertionError("it goes on and on")


def test_all_sites_get_one_secret_once(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "east", "north")
    sites.nodes["gate"] = NodeView(Node("gate", GATEWAY), ONLINE, 0.0, {}, instance="1")
    handover = sites.handover()
    assert states(handover) == {"east": "waiting", "north": "waiting"}
    handover.turn()
    assert sorted(sites.sent) == ["east", "north"]
    handover.turn()
    assert len(sites.sent) == 2
    assert len(set(sites.newest().values())) == 1
    assert states(handover) == {"east": "current", "north": "current"}
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_it_stays_the_same_over_restarts(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "north")
    settle(sites, sites.handover())
    before = sites.newest()
    again = sites.handover()
    again.turn()
    sites.restart("north")
    again.turn()
    assert sites.newest() == before
    assert sites.sent == ["north", "north"]


def test_a_site_that_was_offline_catches_up(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "east", "north")
    handover = sites.handover()
    settle(sites, handover)
    sites.nodes["east"] = replace(sites.nodes["east"], state=OFFLINE)
    handover.rotate()
    settle(sites, handover)
    assert states(handover) == {"east": "offline", "north": "current"}
    newest = sites.newest()
    assert newest["east"] in [text for text, _ in sites.secrets["north"].accepted_secrets()]
    sites.restart("east")
    settle(sites, handover)
    assert set(sites.newest().values()) == {newest["north"]}


def test_what_is_lost_is_tried_again(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "north")
    sites.lost = {"north"}
    handover = sites.handover()
    handover.turn()
    handover.turn()
    assert sites.sent == ["north"]
    assert handover.status()["sites"][0]["problem"] == "it does not answer"
    sites.lost = set()
    sites.now += 60
    handover.turn()
    assert states(handover) == {"north": "current"}


def test_an_old_agent_is_named(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "east", "north")
    sites.old = {"east"}
    handover = sites.handover()
    settle(sites, handover)
    assert states(handover) == {"east": "refused", "north": "current"}


def test_a_file_in_the_configuration_wins(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "north")
    file = tmp_path / "own"
    file.write_text("a secret of our own\n", encoding="utf-8")
    sites.secrets["north"] = sites.made("north", file)
    handover = sites.handover()
    settle(sites, handover)
    handover.rotate()
    settle(sites, handover)
    assert states(handover) == {"north": "own file"}
    assert sites.newest() == {"north": "a secret of our own"}


def test_a_coordinator_that_was_reset_or_damaged(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "east", "north")
    settle(sites, sites.handover())
    for spoil in (Path.unlink, lambda file: file.write_text("{")):
        before = sites.newest()["north"]
        spoil(tmp_path / FILE)
        sites.now += 10
        again = sites.handover()
        settle(sites, again)
        assert len(set(sites.newest().values())) == 1
        assert before in [text for text, _ in sites.secrets["east"].accepted_secrets()[1:]]


def test_a_coordinator_from_an_old_backup(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "east", "north")
    handover = sites.handover()
    settle(sites, handover)
    backup = load_secret(tmp_path)
    assert backup is not None
    handover.rotate()
    settle(sites, handover)
    save_secret(tmp_path, backup)
    again = sites.handover()
    settle(sites, again)
    assert states(again) == {"east": "current", "north": "current"}
    assert len(set(sites.newest().values())) == 1
    assert backup.secret not in sites.newest().values()


def test_two_coordinators_end_with_one_secret(tmp_path: Path) -> None:
    sites = Sites(tmp_path, "east", "north")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = sites.handover(tmp_path / "a"), sites.handover(tmp_path / "b")
    settle(sites, one, other)
    for site in ("east", "north"):
        sites.restart(site)
        settle(sites, one, other)
        assert len(set(sites.newest().values())) == 1


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Callable[[SecretHandover], TestClient]]:
    rig = Rig(tmp_path, FakeControl("north"))

    def make(handover: SecretHandover) -> TestClient:
        service = Service(replace(rig.parts, secret=handover))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return TestClient(make_app(service, Tokens([TOKEN])), headers=headers)

    yield make
    rig.end()


def test_rest_shows_how_far_it_is_and_never_the_secret(
    rest: Callable[[SecretHandover], TestClient], tmp_path: Path
) -> None:
    sites = Sites(tmp_path, "north")
    handover = sites.handover()
    settle(sites, handover)
    client = rest(handover)
    told = [client.get("/fabric")]
    told.append(client.post("/fabric/rotate-secret"))
    settle(sites, handover)
    told += [client.get("/fabric"), client.get("/events")]
    told += [client.get("/openapi.json"), client.get("/nodes")]
    assert [reply.status_code for reply in told] == [200] * 6
    assert told[0].json()["old_accepted_until"] is None
    assert told[2].json()["old_accepted_until"] == sites.now + 3600
    assert told[2].json()["sites"] == [{"node": "north", "state": "current", "problem": ""}]
    known = [text for text, _ in sites.secrets["north"].accepted_secrets()]
    assert len(known) == 2
    assert not any(text in reply.text for text in known for reply in told)


def test_rest_refuses_nonsense(
    rest: Callable[[SecretHandover], TestClient], tmp_path: Path
) -> None:
    client = rest(Sites(tmp_path).handover())
    for wrong in ("-1", "nan", "inf", "1e99", "soon", ""):
        told = client.post(f"/fabric/rotate-secret?accept_old_seconds={wrong}")
        assert told.status_code == 400
    assert client.post("/fabric/rotate-secret", headers={"Authorization": ""}).status_code == 401
