"""The ingest process with a real broker: links and copies into the logs, changed while it runs."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fogline.agent.contracts.ingest import IngestConfig, Subscription
from fogline.broker import Broker, BrokerOptions, Message, open_broker
from fogline.broker.mosquitto.journal import READER
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.links.copier import Copy
from fogline.links.sender import Outlet, pack_batches
from fogline.log import LogWriter, SiteLog, get_position
from tests.links.kit import Process, contents, eventually, ingest_config, numbers, site, write

pytestmark = pytest.mark.site


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    options = MosquittoOptions(journal=tmp_path / "journal", journal_free_bytes=0)
    with Mosquitto(tmp_path / "broker", options) as broker:
        yield broker
        broker.kill()


@pytest.fixture
def logs(tmp_path: Path) -> SiteLog:
    return site(tmp_path)


@pytest.fixture
def near(tmp_path: Path) -> SiteLog:
    return site(tmp_path / "near")


class Ingest(Process):
    """The process with a journal, or without one at an external broker."""

    def __init__(
        self,
        logs: SiteLog,
        journal: Path | None,
        url: str = "",
        patterns: Sequence[str] = (),
        copies: Sequence[Copy] = (),
    ) -> None:
        self._logs, self._journal = logs, journal
        self._url = url
        self.deduplicate = True
        self.revision = 1
        super().__init__("fogline.agent.ingest.process", self._config(patterns, copies))
        self.reaches(1)

    def _config(self, patterns: Sequence[str], copies: Sequence[Copy]) -> IngestConfig:
        wanted = [Subscription(p, p, self._url, self.deduplicate) for p in patterns]
        config = ingest_config(self._logs.root, self._journal, *wanted)
        return replace(config, revision=self.revision, copies=tuple(copies))

    def wants(self, *patterns: str, copies: tuple[Copy, ...] = ()) -> None:
        """Returns when that is in force."""
        self.revision += 1
        self.configure(self._config(patterns, copies))
        self.reaches(self.revision)


def copy(log: str, topic: str, begin: str = "start", index: int = 0) -> Copy:
    return Copy(log, topic, f"route {log} {index}", begin)


@pytest.fixture
def client(broker: Mosquitto) -> Iterator[Broker]:
    with open_broker(broker.url, BrokerOptions(client_id="device", retry_longest=0.1)) as client:
        client.connect()
        yield client


def send(client: Broker, topic: str, *values: int) -> None:
    client.publish([Message(topic, b"%d" % n) for n in values]).wait(10)


def link(near: SiteLog, log: str, client: Broker, topic: str) -> Outlet:
    return Outlet(
        log, near, client, pack_batches(near.folder(log), topic), f"route {log} 0", "start"
    )


def drain(outlet: Outlet) -> None:
    eventually(lambda: not outlet.forward() and not outlet.lag, "everything sent")
    outlet.note()


@pytest.fixture(params=["journal", "external"])
def ingest(
    request: pytest.FixtureRequest, tmp_path: Path, broker: Mosquitto, logs: SiteLog
) -> Iterator[Ingest]:
    journal = tmp_path / "journal" if request.param == "journal" else None
    process = Ingest(logs, journal, "" if journal else broker.url)
    yield process
    process.close()


def test_subscriptions_links_and_copies_come_and_go(
    ingest: Ingest, client: Broker, logs: SiteLog, near: SiteLog
) -> None:
    """What was there goes on, what is new gets what comes then, with messages all the time."""
    send(client, "a/1", -1)
    ingest.wants("a/+")
    stop = threading.Event()
    sent: list[int] = []

    def flow() -> None:
        while not stop.is_set():
            send(client, "a/1", len(sent))
            sent.append(len(sent))

    device = threading.Thread(target=flow)
    device.start()
    with near.writer("far") as far, logs.writer("out/j") as out:
        write(far, range(100))
        write(out, range(100))
        drain(link(near, "far", client, "b"))
        ingest.wants("a/+", "b")
        write(far, range(100, 200))
        drain(link(near, "far", client, "b"))
        eventually(lambda: len(numbers(logs, "b")) >= 100)
        assert numbers(logs, "b") == list(range(100, 200))

        ingest.wants("a/+", "b", "c", copies=(copy("out/j", "c"), copy("out/j", "b", "end", 1)))
        write(out, range(200, 300))
        eventually(lambda: len(numbers(logs, "c")) >= 200 and len(numbers(logs, "b")) >= 200)
        assert numbers(logs, "c") == [*range(100), *range(200, 300)]
        assert numbers(logs, "b") == [*range(100, 200), *range(200, 300)]

        ingest.wants("a/+", "c")
        write(out, range(300, 400))
        ingest.wants("a/+", "c", copies=(copy("out/j", "c"),))
        eventually(lambda: len(numbers(logs, "c")) >= 300)
        assert numbers(logs, "c") == [*range(100), *range(200, 400)]
        (told,) = ingest.status["copies"]
        assert set(told) == {"log", "topic", "reader", "state", "messages", "lag"}
        ingest.wants("a/+")
    with logs.writer("b"), logs.writer("c"):
        """Whatever vanished has let its log go."""
    stop.set()
    device.join()
    eventually(lambda: len(numbers(logs, "a/+")) >= len(sent))
    assert numbers(logs, "a/+") == sent
    assert sent
    assert ingest.end() == 0
    assert ingest.status["state"] == "running"


def test_a_subscription_that_changes_misses_nothing(
    ingest: Ingest, client: Broker, logs: SiteLog, near: SiteLog
) -> None:
    """Messages, a link and a copy go on while the way they are stored changes."""
    wanted = (copy("out/j", "t"),)
    ingest.wants("t", copies=wanted)
    with near.writer("far") as far, logs.writer("out/j") as out:
        outlet = link(near, "far", client, "t")
        for turn in range(8):
            values = range(100 * turn, 100 * turn + 100)
            write(far, [3 * n for n in values])
            write(out, [3 * n + 1 for n in values])
            delivery = client.publish([Message("t", b"%d" % (3 * n + 2)) for n in values])
            outlet.forward()
            ingest.deduplicate = not ingest.deduplicate
            ingest.wants("t", copies=wanted)
            delivery.wait(10)
    drain(outlet)
    eventually(lambda: len(numbers(logs, "t")) >= 2400)
    assert ingest.end() == 0
    found = numbers(logs, "t")
    for number in range(3):
        assert [n for n in found if n % 3 == number] == list(range(number, 2400, 3))


def test_kill_9_of_ingest_at_an_external_broker(
    broker: Mosquitto, client: Broker, logs: SiteLog, near: SiteLog
) -> None:
    """The broker delivers again what was not acknowledged."""

    def started() -> Ingest:
        return Ingest(logs, None, broker.url, patterns="t", copies=[copy("out/j", "t")])

    ingest = started()
    origins = Origins(near, logs, client)
    for _ in range(4):
        before = origins.written
        eventually(lambda before=before: origins.written > before + 40)  # type: ignore[misc]
        ingest.kill()
        ingest = started()
    origins.finish()
    total = 3 * origins.written
    eventually(lambda: len(numbers(logs, "t")) >= total, "everything")
    assert ingest.end() == 0
    assert sorted(numbers(logs, "t")) == list(range(total))


def test_bad_links_are_counted_and_kept(ingest: Ingest, client: Broker, logs: SiteLog) -> None:
    ingest.wants("#")
    client.publish([Message("fogline/link/x", b"broken"), Message("fogline/link/", b"")]).wait(10)
    send(client, "x", 1)
    eventually(lambda: ingest.status["bad_links"] == 2)
    eventually(lambda: contents(logs, "#"))
    assert contents(logs, "#") == [("x", b"1")]
    assert contents(logs, "bad/links") == [("fogline/link/x", b"broken"), ("fogline/link/", b"")]


def test_equal_records_of_a_link_all_count(
    ingest: Ingest, client: Broker, logs: SiteLog, near: SiteLog
) -> None:
    ingest.wants("t")
    with near.writer("far") as far:
        write(far, [5] * 30)
    drain(link(near, "far", client, "t"))
    eventually(lambda: len(numbers(logs, "t")) >= 30)
    assert numbers(logs, "t") == [5] * 30


class Origins:
    """Three logs at the other site and one at this, written and sent on from a thread."""

    def __init__(self, near: SiteLog, here: SiteLog, client: Broker) -> None:
        self.written = 0
        self._near = near
        self._client = client
        self._writers = [near.writer(f"far/{n}") for n in range(2)]
        self._outlets = self._open()
        self._here: LogWriter = here.writer("out/j")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _open(self) -> list[Outlet]:
        return [link(self._near, f"far/{n}", self._client, "t") for n in range(2)]

    def _run(self) -> None:
        chance = random.Random()
        while not self._stop.is_set():
            for number, writer in enumerate((*self._writers, self._here)):
                values = range(self.written, self.written + 20)
                write(writer, [3 * n + number for n in values])
            self.written += 20
            for outlet in self._outlets:
                outlet.forward()
                if chance.random() < 0.1:
                    outlet.note()
            if chance.random() < 0.05:
                for outlet in self._outlets:
                    outlet.close()
                self._outlets = self._open()

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        for outlet in self._outlets:
            drain(outlet)
        for writer in (*self._writers, self._here):
            writer.close()


def test_kill_9_of_ingest_and_broker(
    tmp_path: Path, broker: Mosquitto, client: Broker, logs: SiteLog, near: SiteLog
) -> None:
    """Two links and a copy into one log, all of it exactly once and each in order."""
    chance = random.Random()

    def started() -> Ingest:
        return Ingest(logs, tmp_path / "journal", patterns="t", copies=[copy("out/j", "t")])

    ingest = started()
    origins = Origins(near, logs, client)
    for _ in range(6):
        before = origins.written
        eventually(lambda before=before: origins.written > before + chance.randrange(200))  # type: ignore[misc]
        killed = chance.choice(("ingest", "broker", "both"))
        if killed != "broker":
            ingest.kill()
        if killed != "ingest":
            broker.kill()
            broker.start()
        if killed != "broker":
            ingest = started()
    origins.finish()
    total = 3 * origins.written
    eventually(lambda: len(numbers(logs, "t")) >= total, "everything")
    assert ingest.end() == 0
    found = numbers(logs, "t")
    assert sorted(found) == list(range(total))
    for number in range(3):
        assert [n for n in found if n % 3 == number] == list(range(number, total, 3))
    assert total > 1000
    assert get_position(tmp_path / "journal", READER) is not None
