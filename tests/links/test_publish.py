"""Publishing to several brokers: routes come, go and are redirected, brokers die and return."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from fogline.agent.broker import connections
from fogline.agent.contracts.ingest import Subscription
from fogline.agent.contracts.publish import OutgoingRoute, PublishConfig
from fogline.agent.ingest.intake import SubscriptionIntake
from fogline.agent.publish import process as module
from fogline.agent.publish.process import Publishing
from fogline.broker import Broker, BrokerOptions, DeliveryFuture, Message, open_broker
from fogline.broker.memory import MemoryBroker, hub
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.links import Copier, Copy, sender
from fogline.links.inlet import Inlet
from fogline.log import SiteLog, get_position
from tests.links.kit import Process, contents, eventually, ingest_config, numbers, site, write


@pytest.fixture
def near(tmp_path: Path) -> SiteLog:
    return site(tmp_path / "near")


class Site:
    """A site that others send to: a broker in memory and its intake."""

    def __init__(self, folder: Path) -> None:
        self.url = f"memory://{uuid4()}"
        self.hub = hub(self.url.removeprefix("memory://"))
        self.logs = site(folder)
        self._broker = open_broker(self.url, BrokerOptions(client_id="ingest", persistent=True))
        self._broker.connect()
        self._intake = SubscriptionIntake(Subscription("#", "#", self.url), self._broker, self.logs)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._intake.run, args=(self._stop,), daemon=True)
        self._thread.start()
        eventually(lambda: self._intake.subscribed)

    def numbers(self) -> list[int]:
        return numbers(self.logs, "#")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)
        self._broker.close()


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[list[Site]]:
    made = [Site(tmp_path / name) for name in ("a", "b")]
    yield made
    for item in made:
        item.stop()


def route(
    log: str, url: str, mode: str = "link", topic: str = "t", index: int = 0
) -> OutgoingRoute:
    return OutgoingRoute(log, url, mode, topic, f"route j {index}")


def config(
    logs: SiteLog, own: str, *routes: OutgoingRoute, topics: Sequence[str] = (), revision: int = 1
) -> PublishConfig:
    """A route without an address leads to the site's own broker."""
    return PublishConfig(
        revision=revision,
        logs=str(logs.root),
        same_machine=True,
        tls=None,
        client="test-publish",
        broker=own,
        topics=tuple(topics),
        routes=tuple(replace(item, broker=item.broker or own) for item in routes),
    )


def until(publishing: Publishing, condition: Any) -> None:
    def step() -> bool:
        publishing.step()
        return bool(condition())

    eventually(step)


def test_a_broker_that_is_away_holds_up_nobody_else(near: SiteLog, sites: list[Site]) -> None:
    a, b = sites
    with near.writer("x") as x, near.writer("y") as y, near.writer("z") as z:
        for writer in (x, y, z):
            write(writer, range(100))
    b.hub.stop()
    routes = [route("x", b.url), route("y", "", "publish", "named")]
    publishing = Publishing(config(near, a.url, *routes, topics=["z"]))
    until(publishing, lambda: len(a.numbers()) >= 200)
    until(publishing, lambda: publishing.in_force)
    told = publishing.status()
    assert (told.state, told.revision) == ("running", 1)
    away, here = told.routes
    assert away.state.startswith("waiting for the broker")
    assert (away.messages, here.messages) == (0, 100)
    assert away.lag > 0
    (topic,) = told.topics
    assert (topic.topic, topic.state, topic.messages) == ("z", "running", 100)
    assert (topic.left_out, topic.refused, topic.problem) == (0, 0, "")
    b.hub.start()
    until(publishing, lambda: len(b.numbers()) >= 100)
    publishing.finish()
    assert b.numbers() == list(range(100))
    by_topic = {topic: 0 for topic, _ in contents(a.logs, "#")}
    assert set(by_topic) == {"own/topic", "named"}
    assert get_position(near.folder("x"), "route j 0") == near.reader("x").committed()


class LateBroker(MemoryBroker):
    """Delivers at once and confirms when told to."""

    waiting: ClassVar[deque[DeliveryFuture]] = deque()

    def publish(self, messages: Sequence[Message], timeout: float = 0) -> DeliveryFuture:
        super().publish(messages, timeout)
        self.waiting.append(DeliveryFuture(1))
        return self.waiting[-1]

    @classmethod
    def confirm(cls, count: int) -> None:
        for _ in range(min(count, len(cls.waiting))):
            cls.waiting.popleft().confirm()


def open_late(url: str, options: BrokerOptions) -> LateBroker:
    return LateBroker(hub(url.removeprefix("memory://")), options)


def test_a_redirected_route_loses_and_doubles_nothing(
    near: SiteLog, sites: list[Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "open_broker", open_late)
    monkeypatch.setattr(sender, "READ_BYTES", 500)
    chance = random.Random()
    publishing = Publishing(config(near, "memory://none", route("out", sites[0].url)))
    written = 0
    with near.writer("out") as writer:
        for turn in range(20):
            write(writer, range(written, written + 100), chance.randrange(1, 30))
            written += 100
            for _ in range(chance.randrange(10)):
                publishing.step()
                LateBroker.confirm(chance.randrange(3))
            target = sites[turn % 2]
            publishing.change(config(near, "memory://none", route("out", target.url)))

    def complete() -> bool:
        LateBroker.confirm(1)
        return sum(len(target.numbers()) for target in sites) >= written

    until(publishing, complete)
    LateBroker.confirm(written)
    publishing.finish()
    found = [target.numbers() for target in sites]
    assert sorted(chain(*found)) == list(range(written))
    assert all(values == sorted(values) and values for values in found)


def test_a_route_that_becomes_a_copy_loses_and_doubles_nothing(
    near: SiteLog, sites: list[Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "open_broker", open_late)
    monkeypatch.setattr(sender, "READ_BYTES", 500)
    publishing = Publishing(config(near, "memory://none", route("out", sites[0].url)))
    here = site(tmp_path / "here")
    with near.writer("out") as writer, here.writer("t") as copied:
        write(writer, range(300))
        publishing.step()
        LateBroker.confirm(1)
        until(publishing, lambda: sites[0].numbers())
        publishing.step()
        publishing.change(config(near, "memory://none"))
        copying = Copier(Copy("out", "t", "route j 0"), near)
        copying.feed([Inlet("t", copied)])
        assert copying.step() == 0
        LateBroker.confirm(300)
        until(publishing, lambda: publishing.in_force)
        while copying.step():
            pass
        copying.close()
        publishing.finish()
    assert sites[0].numbers() + numbers(here, "t") == list(range(300))


def test_a_route_leaves_a_dead_broker(
    near: SiteLog, sites: list[Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was under way goes to the new one, and not to the old one when that returns."""
    monkeypatch.setattr(module, "_DRAIN_SECONDS", 0.05)
    a, b = sites
    own = a.url
    routes = [route("out", a.url), route("other", a.url, topic="u")]
    publishing = Publishing(config(near, own, *routes))
    with near.writer("out") as writer, near.writer("other") as other:
        write(writer, range(10))
        until(publishing, lambda: len(a.numbers()) >= 10)
        a.hub.stop()
        eventually(lambda: not publishing.step())
        write(writer, range(10, 20))
        write(other, range(1000, 1010))
        publishing.step()
        publishing.change(config(near, own, route("out", b.url), routes[1], revision=2))
        until(publishing, lambda: publishing.revision == 2)
        until(publishing, lambda: len(b.numbers()) >= 10)
        a.hub.start()
        until(publishing, lambda: len(a.numbers()) >= 20)
    publishing.finish()
    assert a.numbers() == [*range(10), *range(1000, 1010)]
    assert b.numbers() == list(range(10, 20))


def test_a_route_that_vanishes_and_comes_back_goes_on(near: SiteLog, sites: list[Site]) -> None:
    a = sites[0]
    publishing = Publishing(config(near, a.url, route("out", a.url)))
    with near.writer("out") as writer:
        write(writer, range(10))
        until(publishing, lambda: len(a.numbers()) >= 10)
        publishing.change(config(near, a.url, revision=2))
        until(publishing, lambda: publishing.revision == 2)
        assert publishing.status().routes == ()
        write(writer, range(10, 20))
        publishing.step()
        publishing.change(config(near, a.url, route("out", a.url), revision=3))
        until(publishing, lambda: len(a.numbers()) >= 20)
    publishing.finish()
    assert a.numbers() == list(range(20))


# ── processes ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    options = MosquittoOptions(journal=tmp_path / "journal", journal_free_bytes=0)
    with Mosquitto(tmp_path / "broker", options) as broker:
        yield broker
        broker.kill()


@pytest.fixture
def ingest(tmp_path: Path, broker: Mosquitto) -> Iterator[Process]:
    subscription = Subscription("t/+", "t/+", broker="", deduplicate=False)
    journal = tmp_path / "journal"
    config = ingest_config(site(tmp_path).root, journal, subscription, client="test-ingest")
    process = Process("fogline.agent.ingest.process", config)
    process.reaches(1)
    yield process
    process.close()


@pytest.mark.site
def test_kill_9_of_publish_and_broker(
    tmp_path: Path, near: SiteLog, broker: Mosquitto, ingest: Process
) -> None:
    chance = random.Random()
    routes = [route("out", broker.url, topic="t/1"), route("more", broker.url, topic="t/2")]
    wanted = config(near, broker.url, *routes)
    publish = Process("fogline.agent.publish.process", wanted)
    publish.reaches(1)
    written = 0
    with near.writer("out") as out, near.writer("more") as more:
        for _ in range(6):
            for _ in range(chance.randrange(1, 30)):
                write(out, range(written, written + 40))
                write(more, range(written, written + 40))
                written += 40
                time.sleep(0.001)
            killed = chance.choice(("publish", "broker", "both"))
            if killed != "broker":
                publish.kill()
            if killed != "publish":
                broker.kill()
                broker.start()
            if killed != "broker":
                publish = Process("fogline.agent.publish.process", wanted)
    log = site(tmp_path)
    eventually(lambda: len(contents(log, "t/+")) >= 2 * written, "everything")
    publish.reaches(1)
    eventually(lambda: not any(r["lag"] for r in publish.status["routes"]), "no lag")
    assert publish.end() == 0
    found = contents(log, "t/+")
    for topic in ("t/1", "t/2"):
        assert [int(payload) for name, payload in found if name == topic] == list(range(written))
    assert get_position(near.folder("out"), "route j 0") == near.reader("out").committed()


@pytest.mark.site
def test_the_process_takes_changes(near: SiteLog, broker: Mosquitto) -> None:
    with near.writer("out") as writer:
        write(writer, range(50))
    reader: Broker = open_broker(broker.url)
    reader.connect()
    reader.subscribe("#")
    process = Process("fogline.agent.publish.process", config(near, broker.url))
    process.reaches(1)
    process.configure(config(near, broker.url, route("out", "", "publish", "p"), revision=2))
    process.reaches(2)
    found: list[tuple[str, bytes]] = []

    def complete() -> bool:
        found.extend((m.topic, m.payload) for m in reader.receive(timeout=0.1))
        return len(found) >= 50

    eventually(complete)
    assert found == [("p", b"%d" % n) for n in range(50)]
    eventually(lambda: process.status["routes"][0]["lag"] == 0)
    (told,) = process.status["routes"]
    assert told == {
        "log": "out",
        "reader": "route j 0",
        "mode": "publish",
        "topic": "p",
        "state": "running",
        "messages": 50,
        "lag": 0,
        "left_out": 0,
        "refused": 0,
        "problem": "",
    }
    reader.close()
    assert process.end() == 0
