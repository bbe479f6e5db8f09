"""Copies over a real control broker: nodes that tell what they store and do what they are told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.errors import ConflictError, DataError, NotFoundError, UnavailableError
from fogline.common.http.server import Server
from fogline.control import ControlledNode, ControlOptions, registry
from fogline.coordinator.api.rest import make_app
from fogline.coordinator.api.service import Service
from fogline.coordinator.api.tokens import Tokens
from fogline.coordinator.client import CoordinatorClient, find
from fogline.coordinator.config import ControlBrokerConfig, CoordinatorConfig
from fogline.coordinator.nodes import node_history
from fogline.coordinator.replication.config import ReplicaConfig
from fogline.coordinator.replication.loop import ReplicaLoop
from fogline.coordinator.wiring import Coordinator
from fogline.model.nodes import SITE, Node
from tests.coordinator.kit import Rig
from tests.waiting import wait_for

pytestmark = pytest.mark.site

TOKEN = "a-token-for-these-tests"
QUICK = ReplicaConfig(seconds=0.2, recent_hours=0)
SECONDS = 60.0


def until(condition: Callable[[], object]) -> None:
    wait_for(condition, SECONDS)


class Keeper:
    """A site with a made-up store, which keeps what it is told to keep."""

    def __init__(self, name: str, url: str, links: dict[str, float] | None = None) -> None:
        self.name, self.url = name, url
        self.links = links or {}
        self.held: dict[str, list[str] | None] = {}
        self.shares: dict[str, Any] = {}
        self.answer: Callable[[], Any] = self.report
        self.refuses = False
        self.told = 0
        self._lock = threading.Lock()
        self.control = self._connect()

    def _connect(self) -> ControlledNode:
        made = ControlledNode(
            self.url,
            lambda: Node(self.name, SITE, store="http://127.0.0.1:1"),
            {"store": lambda body: self.answer(), "copies": self._copies},
            lambda: {"links": {to: {"latency_ms": ms} for to, ms in self.links.items()}},
            ControlOptions(retry_longest=0.3),
        )
        made.start()
        return made

    def report(self) -> dict[str, Any]:
        with self._lock:
            copies = {
                origin: {"metrics": metrics, "until": int((time.time() - 2) * 1e6), "bytes": 1000}
                for origin, metrics in self.held.items()
            }
        told = {"id": self.name, "bytes": 5000, "metrics": {"cpu_user": 5000}, "copies": copies}
        return told | ({"shares": self.shares} if self.shares else {})

    def _copies(self, body: dict[str, Any]) -> dict[str, Any]:
        self.told += 1
        if self.refuses:
            raise DataError("the disk is full")
        with self._lock:
            self.held = dict(body["copies"])
            self.shares = body.get("shares", self.shares)
        return {}

    def crash(self) -> None:
        """Ends without a good-bye."""
        self.control._rhythm.stop()
        self.control._peer.close()

    def restart(self) -> None:
        self.control = self._connect()

    def cut(self) -> None:
        """Its connection breaks; it connects again by itself."""
        self.control._peer._connection._broker._link._client.buffered.abort()  # type: ignore[attr-defined]

    def close(self) -> None:
        self.control.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # A slow machine makes nobody silent, and no look late.
    monkeypatch.setattr(registry, "SILENT_SECONDS", 3600.0)
    monkeypatch.setattr(node_history, "PAUSE_SECONDS", 3600.0)
    made = World(tmp_path)
    yield made
    made.close()


class World:
    """A coordinator, and the nodes made at its broker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keepers: dict[str, Keeper] = {}
        self.coordinator: Coordinator
        self.broker = Mosquitto(folder / "broker", MosquittoOptions()).start()

    def begin(self, config: ReplicaConfig = QUICK, store: str | None = None) -> World:
        control = ControlBrokerConfig(url=self.broker.url)
        given = CoordinatorConfig(self.folder / "c", store=store, control=control, replicas=config)
        self.coordinator = Coordinator(given)
        self.coordinator.start()
        return self

    def add(self, *names: str, links: dict[str, float] | None = None) -> None:
        for name in names:
            self.keepers[name] = Keeper(name, self.broker.url, links)
        until(lambda: {n for n, seen in self.loop.seen.items() if seen.report} >= set(names))
        until(lambda: all(self._has_history(name) for name in names))

    def _has_history(self, name: str) -> bool:
        """Whoever fails before that was never seen."""
        try:
            return bool(self.service.history(name)["state"] == "present")
        except NotFoundError:
            return False

    def __getitem__(self, name: str) -> Keeper:
        return self.keepers[name]

    @property
    def service(self) -> Any:
        return self.coordinator.service

    @property
    def loop(self) -> ReplicaLoop:
        found = self.service._parts.replicas
        assert isinstance(found, ReplicaLoop)
        return found

    def counts(self, name: str) -> tuple[int, int]:
        told = next(node for node in self.service.nodes() if node["name"] == name)
        return told["failures"], told["restarts"]

    def cut_counts(self, name: str) -> bool:
        """Breaks a connection again and again: one that is back before a look is not noticed."""
        until(lambda: self[name].control.connected)
        self[name].cut()
        given = time.monotonic() + 2
        while time.monotonic() < given and not self.counts(name)[0]:
            time.sleep(0.01)
        return self.counts(name)[0] > 0

    def was_restarted(self, name: str, before: int) -> bool:
        return self.counts(name)[1] > before

    def copies(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {(c["origin"], c["holder"]): c for c in self.service.replicas.status()["copies"]}

    def rounds(self, more: int = 2) -> None:
        before = self.loop.rounds
        until(lambda: self.loop.rounds >= before + more)

    def close(self) -> None:
        for keeper in self.keepers.values():
            keeper.close()
        if hasattr(self, "coordinator"):
            self.coordinator.stop()
        self.broker.stop()


def test_an_unstable_node_is_found_and_its_values_are_copied(
    world: World, store_url: str, tmp_path: Path
) -> None:
    store = store_url if store_url.startswith("postgres") else None
    world.begin(store=store).add("bad", "good", "other")
    for _ in range(2):
        before = world.counts("bad")[1]
        world["bad"].crash()
        world["bad"].restart()
        until(partial(world.was_restarted, "bad", before))
    assert world.counts("bad") == (2, 2)
    until(lambda: {"bad": None} in (world["good"].held, world["other"].held))
    holder = "good" if world["good"].held else "other"
    until(lambda: world.copies()["bad", holder]["state"] == "held")
    copy = world.copies()["bad", holder]
    assert copy["reasons"][0]["reason"] == "stability"
    assert copy["reasons"][0]["instability"] > 0
    assert copy["behind_seconds"] >= 1
    assert world["bad"].held == {}
    world.rounds()
    assert world.loop.uncopied == {}
    history = world.service.history("bad")
    assert history["failures"] == 2
    assert [e["kind"] for e in history["events"]] == ["fail", "restart"] * 2
    assert any(event["kind"] == "copy" for event in world.service.events())


def test_the_reason_why_an_unstable_node_has_no_copy_is_shown(world: World) -> None:
    world.begin(replace(QUICK, capacity_megabytes=0.001)).add("bad", "good")
    before = world.counts("bad")[1]
    world["bad"].crash()
    world["bad"].restart()
    until(partial(world.was_restarted, "bad", before))
    until(lambda: "bad" in world.loop.uncopied)
    shown = {node["node"]: node for node in world.service.replicas.status()["nodes"]}
    until(lambda: "it stores 5,000 bytes" in world.loop.uncopied["bad"])
    assert shown["good"]["uncopied"] == ""


def test_wills_count_good_byes_do_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_history, "SETTLE_SECONDS", 0.5)
    monkeypatch.setattr(node_history, "SURE_SECONDS", 0.2)
    world.begin().add("a", "b")
    until(partial(world.cut_counts, "a"))
    world["b"].close()
    until(lambda: world.service.history("b")["state"] == "left")
    world["b"].restart()
    until(lambda: world.counts("b") == (0, 1))
    assert world.counts("a")[1] == 0


def test_a_copy_comes_near_a_query_and_goes_with_it(world: World) -> None:
    world.begin().add("near", links={"far": 80.0})
    world.add("far")
    until(lambda: world.service.nodes()[1]["links"])
    query = (
        'cpu = STREAM FROM storageFabric(metricID="cpu_%", nodeID="far");\n'
        "load = COMPUTE ARITHMETIC_MEAN(cpu, 10 s) EVERY 10 s;\n"
    )
    body = {"job_name": "load", "site": "near", "query": query}
    world.service.post_job(body)
    until(lambda: world["near"].held == {"far": ["cpu_%"]})
    copy = world.copies()["far", "near"]
    assert copy["reasons"][0]["job"] == "load"
    assert copy["reasons"][0]["home_latency_ms"] == pytest.approx(81.0)
    world.service.delete_job("load")
    until(lambda: world["near"].held == {})
    assert world["far"].held == {}


def test_less_is_sent_to_a_query_that_samples(world: World) -> None:
    world.begin(replace(QUICK, sampling=True, least_quality=0.5)).add("near", links={"far": 80.0})
    world.add("far")
    until(lambda: world.service.nodes()[1]["links"])
    query = (
        'cpu = STREAM FROM storageFabric(metricID="cpu_%", nodeID="far");\n'
        "load = COMPUTE ARITHMETIC_MEAN(cpu, 10 s) EVERY 10 s WITH SAMPLE 0.4;\n"
    )
    world.service.post_job({"job_name": "load", "site": "near", "query": query})
    until(lambda: world["near"].shares == {"load": {"cpu": {"far": pytest.approx(0.2)}}})
    until(lambda: world.loop.seen["near"].settled)
    assert world.service.replicas.status()["shares"] == world["near"].shares
    assert world["far"].shares == {}
    world["near"].crash()
    world["near"].shares = {}  # a site that starts again has none
    world["near"].restart()
    until(lambda: world["near"].shares)
    world.service.delete_job("load")
    until(lambda: world["near"].shares == {})


def test_wishes_refusals_and_what_must_not_be_lost(world: World) -> None:
    world.begin().add("a", "b")
    replicas = world.service.replicas
    assert (
        replicas.add_copy("a", "b", {"metrics": ["cpu_%", "cpu_user", "mem"]})["state"] == "wanted"
    )
    until(lambda: world["b"].held == {"a": ["cpu_%", "mem"]})
    replicas.add_copy("a", "b", {"metrics": None})
    until(lambda: world["b"].held == {"a": None})
    world["a"].close()
    until(lambda: not world.loop.seen["a"].online)
    world["b"].held["stranger"] = None
    assert not replicas.refuse("a", "b")["refused"]
    world.rounds()
    assert world["b"].held == {"a": None, "stranger": None}
    until(lambda: world.copies()["a", "b"]["state"] == "kept")
    world["a"].restart()
    until(lambda: world["b"].held == {"stranger": None})
    replicas.add_copy("a", "b", {})
    until(lambda: world["b"].held == {"a": None, "stranger": None})
    world["a"].close()
    until(lambda: not world.loop.seen["a"].online)
    world.service.forget_node("a")
    until(lambda: world["b"].held == {"stranger": None})


@pytest.mark.parametrize("body", [{"metrics": []}, {"metrics": "x"}, {"metric": ["x"]}])
def test_wishes_that_are_wrong(make_rig: Callable[..., Rig], body: dict[str, Any]) -> None:
    service = with_replicas(make_rig())
    with pytest.raises(DataError):
        service.replicas.add_copy("north", "south", body)


def test_wishes_that_cannot_be(world: World) -> None:
    world.begin(ReplicaConfig(seconds=0.2, capacity_megabytes=0.001)).add("a", "b")
    replicas = world.service.replicas
    for origin, holder in (("a", "c"), ("c", "a"), ("a/b", "b")):
        with pytest.raises(NotFoundError):
            replicas.add_copy(origin, holder, {})
        with pytest.raises(NotFoundError):
            replicas.refuse(origin, holder)
    with pytest.raises(ConflictError, match="own values"):
        replicas.add_copy("a", "a", {})
    with pytest.raises(ConflictError, match="has room for"):
        replicas.add_copy("a", "b", {})
    assert replicas.add_copy("a", "b", {"metrics": ["mem"]})["state"] == "wanted"


def test_a_holder_that_was_away_is_told_when_it_is_back(world: World) -> None:
    world.begin().add("a", "b")
    world["b"].close()
    until(lambda: not world.loop.seen["b"].online)
    world.service.replicas.add_copy("a", "b", {})
    world.rounds()
    assert world["b"].held == {}
    world["b"].restart()
    until(lambda: world["b"].held == {"a": None})
    world["b"].held = {}  # somebody else removed it
    until(lambda: world["b"].held == {"a": None})


HOSTILE: list[dict[str, Any]] = [
    {},
    {"id": 1, "bytes": "many", "metrics": [], "copies": 0},
    {"id": "x", "bytes": 10**40, "metrics": {}, "copies": {}},
    {"id": "x", "bytes": 1, "metrics": {"a": -5}, "copies": {}},
    {"id": "x", "bytes": 1, "metrics": {}, "copies": {"../../etc": {}}},
    {"id": "x", "bytes": 1, "metrics": {}, "copies": {"b": {"metrics": None, "until": "x"}}},
]


def test_nothing_a_node_answers_stops_the_others(world: World) -> None:
    world.begin().add("a", "b", "liar")
    answers: list[Callable[[], Any]] = [partial(dict, told) for told in HOSTILE]
    answers.append(str)
    for answer in answers:
        world["liar"].answer = answer
        world.rounds(1)
        until(lambda: world.loop.seen["liar"].problem)
    until(lambda: world.loop.seen["liar"].bad >= 3)
    world["a"].refuses = True
    world.service.replicas.add_copy("liar", "a", {})
    world.service.replicas.add_copy("liar", "b", {})
    until(lambda: world["b"].held == {"liar": None})
    until(lambda: "disk is full" in world.loop.seen["a"].problem)
    world.rounds()
    assert world.loop.failures == 0
    world["liar"].answer = world["liar"].report
    world["a"].refuses = False
    until(lambda: world["a"].held == {"liar": None})
    until(lambda: not world.loop.seen["liar"].problem)
    shown = {node["node"]: node for node in world.service.replicas.status()["nodes"]}
    assert shown["liar"]["bad_answers"] >= 3
    assert shown["b"]["bad_answers"] == 0


# ── without a broker ─────────────────────────────────────────────────────────────────────────────


def with_replicas(rig: Rig, config: ReplicaConfig = QUICK) -> Any:
    loop = ReplicaLoop(rig.control, rig.nodes, rig.planner, rig.store, config)
    rig.service = Service(replace(rig.service._parts, replicas=loop))
    return rig.service


def test_a_node_that_never_answers_delays_a_round_but_stops_nothing(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig("north", "south")
    rig.control.mute = {"south"}
    loop = with_replicas(rig)._parts.replicas
    for now in (0.0, 5.0, 11.0):
        loop.turn(now)
    assert loop.rounds == 0
    loop.turn(13.0)
    assert loop.rounds == 1
    loop.turn(14.0)
    loop.turn(14.1)
    assert "does not answer" in loop.seen["south"].problem
    assert loop.seen["north"].report is None  # its answer is empty: no report


def test_a_store_that_fails_is_told_and_goes_away(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    loop = with_replicas(rig)._parts.replicas
    with monkeypatch.context() as patch:
        patch.setattr(loop._nodes.history, "all", lambda: 1 / 0)
        loop.start()
        until(lambda: "ZeroDivisionError" in loop.problem)
    until(lambda: not loop.problem)
    assert loop.failures > 0
    assert loop.alive
    loop.stop()
    assert not loop.alive


def test_without_decisions_wishes_are_still_told(world: World) -> None:
    world.begin(ReplicaConfig(enabled=False, seconds=0.2)).add("a", "b", "c")
    world["a"].crash()
    world["a"].restart()
    until(lambda: world.counts("a") == (1, 1))
    world.service.replicas.add_copy("b", "c", {})
    until(lambda: world["c"].held == {"b": None})
    world.rounds()
    assert set(world.copies()) == {("b", "c")}


# ── the program: REST, commands, kill -9 ─────────────────────────────────────────────────────────


def test_rest_and_the_commands(
    world: World, fogline: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin().add("a", "b")
    server = Server("127.0.0.1", 0)
    server.start(make_app(world.service, Tokens([TOKEN])))
    try:
        client = CoordinatorClient(server.address, TOKEN)
        assert client.history("a")["failures"] == 0
        with pytest.raises(NotFoundError):
            client.history("nobody")
        with pytest.raises(NotFoundError):
            client.put_replica("a", "nobody")
        with pytest.raises(DataError):
            client.json("PUT", "/replicas/a/b", body={"metrics": [7]})
        assert client.put_replica("a", "b", ["cpu_%"])["metrics"] == ["cpu_%"]
        assert client.delete_replica("a", "b")["removed"]
        monkeypatch.setenv("FOGLINE_COORDINATOR", server.address)
        monkeypatch.setenv("FOGLINE_TOKEN", TOKEN)
        assert fogline("replicas", "add", "a", "b", "--metric", "cpu_%").code == 0
        until(lambda: world["b"].held == {"a": ["cpu_%"]})
        until(lambda: world.copies()["a", "b"]["state"] == "held")
        told = fogline("replicas")
        assert told.code == 0
        assert all(word in told.out for word in ("cpu_%", "manual", "held", "kB"))
        shown = json.loads(fogline("replicas", "--json").out)
        assert {node["node"] for node in shown["nodes"]} == {"a", "b"}
        assert shown["copies"][0]["state"] == "held"
        assert {node["uncopied"] for node in shown["nodes"]} == {""}
        world.loop.uncopied = {"a": "no copy: it is too large"}
        assert "a: no copy: it is too large" in fogline("replicas").err
        world.loop.sample_fractions = {"j": {"s": {"a": 0.25}}}
        assert "j: 25% of s is sent from a" in fogline("replicas").out
        assert fogline("replicas", "add", "a", "nobody").code == 1
        assert fogline("replicas", "remove", "a", "b").code == 0
        assert fogline("replicas", "remove", "a", "b").code == 1
        until(lambda: world["b"].held == {})
        world["b"].close()
        until(lambda: not world.loop.seen["b"].online)
        assert fogline("sites", "--forget", "b").code == 0
        assert [node["name"] for node in client.nodes()] == ["a"]
    finally:
        server.stop()


@contextmanager
def running(folder: Path, config: Path) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    code = (
        "import sys; from pathlib import Path; from fogline.coordinator.run import run_coordinator;"
        "run_coordinator(Path(sys.argv[1]))"
    )
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    (folder / "address").unlink(missing_ok=True)
    command = [sys.executable, "-c", code, str(config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            until(lambda: (folder / "address").exists() or process.poll() is not None)
            client = find(folder, {})
            until(lambda: is_up(client))
            yield process, client
        finally:
            process.kill()


def is_up(client: CoordinatorClient) -> bool:
    try:
        return bool(client.health()["ok"])
    except UnavailableError:
        return False


def test_a_coordinator_that_is_killed_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    config, folder = tmp_path / "c.yaml", tmp_path / "coordinator"
    config.write_text(
        f"port: 0\ncontrol: {{url: '{world.broker.url}'}}\n"
        "replicas: {seconds: 0.2, recent_hours: 0}\n"
    )
    for name in ("a", "b", "c"):
        world.keepers[name] = Keeper(name, world.broker.url)
    with running(folder, config) as (process, client):
        until(lambda: all_told(client, 3))
        world["a"].crash()
        world["a"].restart()
        until(lambda: {"a": None} in (world["b"].held, world["c"].held))
        client.put_replica("b", "a", ["cpu_%"])
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
    holder = "b" if "a" in world["b"].held else "c"
    world["a"].crash()  # while nobody looks
    world["a"].restart()
    with running(folder, config) as (process, client):
        until(lambda: world["a"].held == {"b": ["cpu_%"]})
        until(lambda: client.history("a")["failures"] >= 2)
        until(lambda: ("a", holder) in pairs(client))
        assert client.history("a")["restarts"] == 2
        assert client.history("b")["restarts"] == 0
        rounds = client.replicas()["rounds"]
        until(lambda: client.replicas()["rounds"] > rounds + 1)
        assert world[holder].held == {"a": None}


def all_told(client: CoordinatorClient, count: int) -> bool:
    return len([node for node in client.replicas()["nodes"] if node["bytes"]]) == count


def pairs(client: CoordinatorClient) -> set[tuple[str, str]]:
    return {(copy["origin"], copy["holder"]) for copy in client.replicas()["copies"]}
