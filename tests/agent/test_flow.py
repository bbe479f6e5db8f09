"""Intake and publishing over a broker in memory: nothing lost, nothing twice, in order."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from fogline.agent.contracts.ingest import Subscription
from fogline.agent.contracts.publish import PublishConfig, PublishStatus
from fogline.agent.ingest.intake import SubscriptionIntake
from fogline.agent.publish import process
from fogline.broker import Broker, BrokerOptions, Message, open_broker
from fogline.broker.memory import hub
from fogline.links.sender import Outlet
from fogline.log import SiteLog, get_position
from tests.agent.kit import payloads
from tests.waiting import wait_for


@pytest.fixture
def address() -> str:
    return f"memory://{uuid4()}"


@pytest.fixture
def site(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=0)


@pytest.fixture
def device(address: str) -> Iterator[Broker]:
    with open_broker(address, BrokerOptions(client_id="device")) as broker:
        broker.connect()
        yield broker


class RunningIntake:
    """An intake in its thread, as the ingest process has it."""

    def __init__(self, address: str, site: SiteLog, deduplicate: bool = True) -> None:
        options = BrokerOptions(client_id="ingest", persistent=True)
        self.broker = open_broker(address, options)
        self.broker.connect()
        subscription = Subscription("in/#", "in/#", address, deduplicate)
        self.intake = SubscriptionIntake(subscription, self.broker, site)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.intake.run, args=(self._stop,), daemon=True)
        self._thread.start()
        wait_for(lambda: self.intake.state == "running", 10, "subscription")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)
        self.broker.close()


def stored(site: SiteLog) -> list[bytes]:
    with site.reader("in/#") as reader:
        return list(payloads(reader))


def test_messages_are_stored_in_order(address: str, site: SiteLog, device: Broker) -> None:
    running = RunningIntake(address, site)
    device.publish([Message("in/a", str(n).encode()) for n in range(500)]).wait(10)
    wait_for(lambda: running.intake.messages == 500, 10, "500 messages")
    running.stop()
    assert stored(site) == [str(n).encode() for n in range(500)]


def test_what_came_while_away_is_stored(address: str, site: SiteLog, device: Broker) -> None:
    RunningIntake(address, site).stop()
    device.publish([Message("in/a", b"while away")]).wait(10)
    running = RunningIntake(address, site)
    wait_for(lambda: running.intake.messages == 1, 10, "message")
    running.stop()
    assert stored(site) == [b"while away"]


def test_redelivery_is_stored_once(address: str, site: SiteLog, device: Broker) -> None:
    """Stored but not acknowledged: the broker sends again what the log already has."""
    first = RunningIntake(address, site)
    first.broker.acknowledge = lambda batch: None  # type: ignore[method-assign]
    device.publish([Message("in/a", str(n).encode()) for n in range(50)]).wait(10)
    wait_for(lambda: first.intake.messages == 50, 10, "50 messages")
    first.stop()
    hub(address.removeprefix("memory://")).drop("ingest")
    again = RunningIntake(address, site)
    wait_for(lambda: again.intake.repeated == 50, 10, "50 repeated messages")
    again.stop()
    assert stored(site) == [str(n).encode() for n in range(50)]


def test_equal_readings_without_a_time_all_count(
    address: str, site: SiteLog, device: Broker
) -> None:
    running = RunningIntake(address, site, deduplicate=False)
    device.publish([Message("in/a", b"21.5")] * 20).wait(10)
    wait_for(lambda: running.intake.messages == 20, 10, "20 messages")
    running.stop()
    assert len(stored(site)) == 20


def test_equal_readings_with_a_time_count_once(address: str, site: SiteLog, device: Broker) -> None:
    running = RunningIntake(address, site)
    device.publish([Message("in/a", b'{"t": 1, "x": 2}')] * 20).wait(10)
    wait_for(lambda: running.intake.repeated == 19, 10, "19 repeated messages")
    running.stop()
    assert len(stored(site)) == 1


# ── publishing ───────────────────────────────────────────────────────────────────────────────────


def drain(outlet: Outlet) -> None:
    while outlet.forward():
        pass
    outlet.finish()


def received(broker: Broker, count: int) -> list[Message]:
    found: list[Message] = []

    def enough() -> bool:
        batch = broker.receive(timeout=0.1)
        found.extend(batch)
        broker.acknowledge(batch)
        return len(found) >= count

    wait_for(enough, 10, f"{count} messages")
    return found


def test_results_are_published_in_order_and_resumed(address: str, site: SiteLog) -> None:
    with (
        open_broker(address, BrokerOptions(client_id="reader")) as reader,
        open_broker(address, BrokerOptions(client_id="publisher")) as publisher,
        site.writer("out") as writer,
    ):
        reader.connect()
        reader.subscribe("#")
        publisher.connect()
        writer.append([(f"out/{n % 3}", str(n).encode()) for n in range(300)])
        writer.commit()
        drain(Outlet("out", site, publisher))
        assert [int(m.payload) for m in received(reader, 300)] == list(range(300))
        assert get_position(site.folder("out"), "publisher") == writer.position
        writer.append([("out/0", b"300")])
        writer.commit()
        drain(Outlet("out", site, publisher))
        (last,) = received(reader, 1)
        assert (last.topic, last.payload) == ("out/0", b"300")


class FakeParent:
    """What the publishing process sees of its parent."""

    def __init__(self, config: PublishConfig) -> None:
        self.config = config
        self.reported: list[PublishStatus] = []
        self.report_status = self.reported.append
        self.ended = threading.Event()
        self.call: Callable[[], None] = lambda: None

    def take_change(self) -> None:
        return None

    def end(self) -> None:
        self.ended.set()
        self.call()


def test_what_was_never_done_is_due_on_a_machine_that_just_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock counts from the start of the machine, and its first seconds are not a past."""
    now = 2.0
    monkeypatch.setattr(process.time, "monotonic", lambda: now)
    clock = process._Clock()
    assert clock.is_due("status", 1000.0)
    now = 1001.0
    assert not clock.is_due("status", 1000.0)
    now = 1002.0
    assert clock.is_due("status", 1000.0)


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells nothing")
def test_what_comes_after_a_while_is_sent_at_once(
    address: str, site: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks meanwhile: the writing of a log wakes who sends it."""
    monkeypatch.setattr(process, "_STATUS_SECONDS", 1000.0)
    parent = FakeParent(
        PublishConfig(
            revision=1,
            logs=str(site.root),
            same_machine=True,
            tls=None,
            client="p",
            broker=address,
            topics=("out",),
            routes=(),
        )
    )
    thread = threading.Thread(target=process.run, args=(parent,), daemon=True)
    with (
        open_broker(address, BrokerOptions(client_id="reader")) as reader,
        site.writer("out") as writer,
    ):
        reader.connect()
        reader.subscribe("#")
        thread.start()
        for number in (b"1", b"2"):
            writer.append([("out", number)])
            writer.commit()
            assert [m.payload for m in received(reader, 1)] == [number]
            position = writer.position
            wait_for(lambda: get_position(site.folder("out"), "publisher") == position, 10, "note")  # noqa: B023
        parent.end()
        thread.join(10)
        assert not thread.is_alive()
    assert [status.revision for status in parent.reported] == [1]


def test_an_outlet_rests_when_all_is_sent_and_noted(address: str, site: SiteLog) -> None:
    with (
        open_broker(address, BrokerOptions(client_id="publisher")) as publisher,
        site.writer("out") as writer,
    ):
        publisher.connect()
        outlet = Outlet("out", site, publisher)
        assert outlet.resting
        writer.append([("out", b"1")])
        writer.commit()
        assert not outlet.resting
        drain(outlet)
        assert outlet.resting


def test_a_log_that_does_not_exist_yet(address: str, site: SiteLog) -> None:
    with open_broker(address, BrokerOptions(client_id="publisher")) as publisher:
        publisher.connect()
        outlet = Outlet("later", site, publisher)
        assert not outlet.forward()
        outlet.note()
        with site.writer("later") as writer:
            writer.append([("later", b"1")])
            writer.commit()
        assert outlet.forward()
        outlet.finish()
        assert outlet.lag == 0
