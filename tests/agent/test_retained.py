"""Retained messages: a new subscription gets them, once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fogline.agent.contracts.ingest import Subscription
from fogline.agent.ingest.intake import SubscriptionIntake
from fogline.agent.ingest.journal_intake import JournalIntake
from fogline.agent.ingest.retained_fetch import RetainedFetch
from fogline.broker import BrokerOptions, Message, open_broker
from fogline.broker.mosquitto.journal import register
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.log import LogReader, SiteLog
from tests.broker.worlds import eventually, send

pytestmark = pytest.mark.site

PATTERN = "room/+"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    options = MosquittoOptions(journal=tmp_path / "journal", journal_free_bytes=0)
    with Mosquitto(tmp_path / "broker", options) as broker:
        yield broker


@pytest.fixture
def logs(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=0)


def retain(broker: Mosquitto, *messages: tuple[str, bytes]) -> None:
    with open_broker(broker.url) as client:
        client.connect()
        send(client, *(Message(topic, payload, retain=True) for topic, payload in messages))


def stored(logs: SiteLog, log: str = PATTERN) -> list[tuple[str, bytes]]:
    with LogReader(logs.folder(log)) as reader:
        return reader.read(reader.first())[0]


def subscription(pattern: str = PATTERN, deduplicate: bool = False) -> Subscription:
    return Subscription(pattern, pattern, "", deduplicate)


@contextmanager
def intake_of(broker: Mosquitto, logs: SiteLog, *wanted: Subscription) -> Iterator[JournalIntake]:
    """Running in a thread, as the worker runs it."""
    assert broker.options.journal
    retained_fetch = RetainedFetch(broker.url, BrokerOptions(client_id="retained_fetch"))
    intake = JournalIntake(broker.options.journal, wanted, logs, retained_fetch=retained_fetch)
    stop = threading.Event()
    thread = threading.Thread(target=intake.run, args=(stop,))
    thread.start()
    try:
        yield intake
    finally:
        stop.set()
        thread.join()


def greeted(broker: Mosquitto, log: str = PATTERN) -> bool:
    assert broker.options.journal
    return log in register(broker.options.journal, [PATTERN]).greeted


def test_what_was_retained_before_is_stored_once(broker: Mosquitto, logs: SiteLog) -> None:
    many = [(f"room/{i}", b"%d" % i) for i in range(3000)]
    retain(broker, *many, ("hall", b"no"))
    with intake_of(broker, logs, subscription()):
        eventually(lambda: greeted(broker))
    assert sorted(stored(logs)) == sorted(many)
    retain(broker, ("room/1", b"new"))
    with intake_of(broker, logs, subscription()) as intake:
        eventually(lambda: intake.targets[0].messages == 1)
        retain(broker, ("room/2", b"live"))
        eventually(lambda: intake.targets[0].messages == 2)
    assert stored(logs)[3000:] == [("room/1", b"new"), ("room/2", b"live")]


def test_what_is_published_meanwhile_is_not_stored_twice(broker: Mosquitto, logs: SiteLog) -> None:
    """The subscription begins before the broker is asked: its journal has the message, too."""
    assert broker.options.journal
    register(broker.options.journal, [PATTERN])
    retain(broker, ("room/1", b"x"))
    with intake_of(broker, logs, subscription()):
        eventually(lambda: greeted(broker))
    assert stored(logs) == [("room/1", b"x")]


def test_a_crash_before_it_is_noted_repeats_nothing(
    broker: Mosquitto, logs: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    retain(broker, ("room/1", b"x"))
    with monkeypatch.context() as patch:
        patch.setattr("fogline.agent.ingest.journal_intake.note_greeted", lambda *_: None)
        with intake_of(broker, logs, subscription()) as intake:
            eventually(lambda: intake.targets[0].messages == 1)
    with intake_of(broker, logs, subscription()):
        eventually(lambda: greeted(broker))
    assert stored(logs) == [("room/1", b"x")]


def test_a_broker_that_is_away_is_asked_later(broker: Mosquitto, logs: SiteLog) -> None:
    retain(broker, ("room/1", b"x"))
    broker.stop()
    with intake_of(broker, logs, subscription()):
        assert not greeted(broker)
        broker.start()
        eventually(lambda: greeted(broker))
    assert stored(logs) == [("room/1", b"x")]


@pytest.mark.parametrize("protocol", [4, 5])
def test_at_another_broker_too(protocol: int, broker: Mosquitto, logs: SiteLog) -> None:
    retain(broker, ("room/1", b"x"))
    options = BrokerOptions(
        client_id="site", persistent=True, retained_once=True, protocol=protocol, retry_longest=0.3
    )
    for fresh in (b"1", b"2"):
        with open_broker(broker.url, options) as client:
            client.connect()
            intake = SubscriptionIntake(
                Subscription(PATTERN, PATTERN, broker.url, False), client, logs
            )
            stop = threading.Event()
            thread = threading.Thread(target=intake.run, args=(stop,))
            thread.start()
            eventually(lambda: intake.subscribed)  # noqa: B023
            send(client, Message("room/2", fresh))
            eventually(lambda: ("room/2", fresh) in stored(logs))  # noqa: B023
            stop.set()
            thread.join()
    assert stored(logs) == [("room/1", b"x"), ("room/2", b"1"), ("room/2", b"2")]
