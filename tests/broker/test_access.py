"""Restricted topics at a real Mosquitto: who may read, who may write, also after it was killed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from fogline.broker import BrokerOptions, Message, open_broker
from fogline.broker.mosquitto.access import SITE, AccessFile, Restricted, check_login, rules
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.errors import SetupError, UsageError
from fogline.log import LogReader
from tests.broker.subscriber import Subscriber
from tests.broker.subscriber import login as login_options
from tests.waiting import wait_for

pytestmark = pytest.mark.site

SECRET, OPEN = "insights/city/mean", "insights/city/most"
RULE = Restricted(SECRET, frozenset({"plant-7"}))
LOGINS = {"dashboard": frozenset({"plant-7", "b"}), "guest": frozenset({"b"})}
HOSTILE = [
    "insights/a b/ c",
    'insights/it\'s/"q"',
    "insights/back\\slash/\\n",
    "insights/ü/🌡",
    "$odd/topic",
    "insights/" + "x" * 60_000,
    "/",
]


class Site:
    """A broker with a journal and rules, and Mosquitto's own clients for it."""

    def __init__(self, folder: Path, user: str | None = None) -> None:
        self.access = AccessFile(folder / "rules" / "access", LOGINS)
        self.access.restrict([RULE])
        logins = {SITE: "only the site knows", "dashboard": "d", "guest": "g"}
        self.journal = folder / "journal"
        options = MosquittoOptions(
            user=user,
            password="u" if user else None,
            logins=logins,
            access=self.access.path,
            journal=self.journal,
            journal_free_bytes=0,
        )
        self.broker = Mosquitto(folder / "broker", options)
        self._folder = folder
        self._clients: list[Subscriber] = []

    def subscribe(self, *login: str, topic: str = "#", client: str = "") -> Subscriber:
        more = ["-i", client, "-c"] if client else []
        options = ["-t", "$odd/#", *login_options(*login), *more]
        made = Subscriber(self.broker.port, self._folder, *options, topic=topic)
        self._clients.append(made)
        return made

    def publish(self, *messages: Message) -> None:
        """As the site itself does."""
        with open_broker(self.broker.inner_url, BrokerOptions("site")) as broker:
            broker.connect()
            broker.publish(messages).wait(20)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.broker.stop()

    def journaled(self) -> list[tuple[str, bytes]]:
        with LogReader(self.journal) as reader:
            return list(reader.read(reader.first())[0])


def pub(site: Site, topic: str, payload: str, *login: str, more: tuple[str, ...] = ()) -> int:
    command = ["mosquitto_pub", "-p", str(site.broker.port), "-q", "1", "-t", topic, "-m", payload]
    found = subprocess.run(
        [*command, *login_options(*login), *more], check=False, capture_output=True, timeout=20
    )
    return found.returncode


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def one(user: str | None = None) -> Site:
        made.append(Site(tmp_path, user))
        made[-1].broker.start()
        return made[-1]

    yield one
    for site in made:
        site.close()


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("user", [None, "plant"])
def test_only_holders_of_the_key_get_it(make: Callable[..., Site], user: str | None) -> None:
    site = make(user)
    holder, without = site.subscribe("dashboard", "d"), site.subscribe("guest", "g")
    own = site.subscribe(SITE, "only the site knows")
    other = site.subscribe("plant", "u") if user else site.subscribe()
    named = site.subscribe("guest", "g", topic=SECRET)
    shared = site.subscribe("guest", "g", topic="$share/x/insights/#")
    site.publish(Message(SECRET, b"1"), Message(OPEN, b"2"))
    for client in (holder, own, without, other, shared):
        wait_for(lambda c=client: c.got(OPEN, "2"), 10, "what is open")
    for client in (holder, own):
        assert client.got(SECRET, "1")
    for client in (without, other, named, shared):
        assert not client.got(SECRET)


def test_clients_without_a_login_come_in_as_before(make: Callable[..., Site]) -> None:
    """Under any name too, but not under one that has a password."""
    site = make()
    watch = site.subscribe()
    assert pub(site, "a", "1") == 0
    assert pub(site, "$odd/b", "2", "anybody", "whatever") == 0
    assert pub(site, "c", "3", "dashboard", "d") == 0
    for name in ("dashboard", "guest", SITE):
        assert pub(site, "d", "4", name, "wrong") != 0
    wait_for(lambda: watch.got("c", "3"), 10, "messages")
    assert watch.got("a", "1")
    assert watch.got("$odd/b", "2")
    assert not watch.got("d", "4")


def test_where_there_is_a_user_nobody_else_comes_in(make: Callable[..., Site]) -> None:
    site = make("plant")
    assert pub(site, "a", "1", "plant", "u") == 0
    assert pub(site, "a", "1", "guest", "g") == 0
    assert pub(site, "a", "1") != 0
    assert pub(site, "a", "1", "anybody", "u") != 0


def test_rules_hold_from_the_next_message_on(make: Callable[..., Site]) -> None:
    site = make()
    client = site.subscribe()
    restricted = Restricted(OPEN)
    for number in range(20):
        site.access.restrict([RULE, restricted] if number % 2 else [RULE])
        site.publish(Message(OPEN, str(number).encode()))
    site.publish(Message("end", b"0"))
    wait_for(lambda: client.got("end", "0"), 10, "the end")
    lines = client.text.splitlines()
    assert [n for n in range(20) if f"{OPEN} {n}" in lines] == list(range(0, 20, 2))


def test_retained_messages(make: Callable[..., Site]) -> None:
    site = make()
    command = ("-r",)
    assert pub(site, SECRET, "kept", SITE, "only the site knows", more=command) == 0
    assert pub(site, "open", "kept", more=command) == 0
    holder, other = site.subscribe("dashboard", "d"), site.subscribe()
    wait_for(lambda: other.got("open", "kept"), 10, "what is retained")
    wait_for(lambda: holder.got(SECRET, "kept"), 10, "what is retained")
    assert not other.got(SECRET, "kept")


def test_what_is_queued_is_not_for_who_takes_the_session_up(make: Callable[..., Site]) -> None:
    site = make()
    first = site.subscribe("dashboard", "d", client="screen")
    first.close()
    site.publish(Message(SECRET, b"queued"), Message(OPEN, b"queued"))
    thief = site.subscribe(client="screen")
    wait_for(lambda: thief.got(OPEN, "queued"), 10, "what was queued")
    assert not thief.got(SECRET, "queued")


def test_a_killed_broker_comes_back_with_its_rules(make: Callable[..., Site]) -> None:
    site = make()
    site.access.restrict([RULE, Restricted("more", frozenset({"b"}))])
    site.broker.kill()
    site.broker.start()
    holder, guest, other = (
        site.subscribe(*login) for login in (("dashboard", "d"), ("guest", "g"), ())
    )
    site.publish(Message(SECRET, b"1"), Message("more", b"2"), Message(OPEN, b"3"))
    for client in (holder, guest, other):
        wait_for(lambda c=client: c.got(OPEN, "3"), 10, "what is open")
    told = [(c.got(SECRET, "1"), c.got("more", "2")) for c in (holder, guest, other)]
    assert told == [(True, True), (False, True), (False, False)]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def test_only_the_site_writes_it(make: Callable[..., Site]) -> None:
    """What is refused is not in the journal either, and no last will gets there."""
    site = make()
    link = "fogline/link/insights/city/mean"
    site.access.restrict([RULE, Restricted(link, all_write=True)])
    holder, own = site.subscribe("dashboard", "d"), site.subscribe(SITE, "only the site knows")
    for login in ((), ("dashboard", "d"), ("guest", "g")):
        pub(site, SECRET, "forged", *login)
        pub(site, SECRET, "forged", *login, more=("-V", "mqttv5"))
        assert pub(site, link, "batch", *login) == 0
    die_with_a_will(site.broker.port, SECRET)
    die_with_a_will(site.broker.port, "open")
    wait_for(lambda: own.got("open", "will"), 10, "a last will")
    site.publish(Message(SECRET, b"true"))
    wait_for(lambda: holder.got(SECRET, "true"), 10, "what the site says")
    assert own.got(link, "batch")
    assert "forged" not in own.text
    assert not own.got(SECRET, "will")
    assert "batch" not in holder.text
    written = [message for message in site.journaled() if message[0] == SECRET]
    assert written == [(SECRET, b"true")]
    assert [p for t, p in site.journaled() if t == link] == [b"batch"] * 3


def die_with_a_will(port: int, topic: str) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.will_set(topic, b"will", qos=1)
    client.connect("127.0.0.1", port)
    client.loop_start()
    wait_for(client.is_connected, 10, "a connection")
    client.loop_stop()
    sock = client.socket()
    assert sock is not None
    sock.close()


@pytest.mark.parametrize("topic", HOSTILE)
def test_topics_of_any_kind(make: Callable[..., Site], topic: str) -> None:
    site = make()
    site.access.restrict([Restricted(topic, frozenset({"plant-7"})), RULE])
    holder, other = site.subscribe("dashboard", "d"), site.subscribe()
    site.publish(Message(topic, b"1"), Message(OPEN, b"2"))
    wait_for(lambda: holder.got(topic, "1"), 10, "a message")
    wait_for(lambda: other.got(OPEN, "2"), 10, "a message")
    assert not other.got(topic, "1")


def test_many_rules(make: Callable[..., Site]) -> None:
    site = make()
    topics = [f"insights/job-{n}/i" for n in range(2_000)]
    site.access.restrict([Restricted(topic, frozenset({"plant-7"})) for topic in topics])
    holder, other = site.subscribe("dashboard", "d"), site.subscribe()
    site.publish(*(Message(topic, b"1") for topic in topics), Message("end", b"2"))
    wait_for(lambda: other.got("end", "2"), 20, "the end")
    wait_for(lambda: holder.got(topics[-1], "1"), 20, "the last one")
    assert all(holder.got(topic, "1") for topic in topics)
    assert "insights/" not in other.text


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def test_the_text() -> None:
    topics = [RULE, Restricted("a\tb\n\\", all_write=True)]
    assert rules(topics, LOGINS) == (
        "logins\tfogline-site\tdashboard\tguest\n"
        "all\ta\\tb\\n\\\\\n"
        "site\tinsights/city/mean\tdashboard\n"
    )


def test_who_can_read_the_file(tmp_path: Path) -> None:
    AccessFile(tmp_path / "access", {}).restrict([RULE])
    assert (tmp_path / "access").stat().st_mode & 0o077 == 0


def test_without_rules_the_broker_does_not_start(make: Callable[..., Site]) -> None:
    site = make()
    site.broker.stop()
    for text in (None, "", "nonsense\n", "site\n", "site\tx\n", "logins\n"):
        site.access.path.unlink(missing_ok=True)
        if text is not None:
            site.access.path.write_text(text, encoding="utf-8")
        with pytest.raises(SetupError):
            site.broker.start()


def test_a_file_that_makes_no_sense_leaves_the_rules_as_they_were(
    make: Callable[..., Site],
) -> None:
    site = make()
    site.access.path.write_text("nonsense\n", encoding="utf-8")
    client = site.subscribe()
    site.publish(Message(SECRET, b"1"), Message(OPEN, b"2"))
    wait_for(lambda: client.got(OPEN, "2"), 10, "what is open")
    assert not client.got(SECRET, "1")
    assert b"makes no sense" in site.broker.log.read_bytes()


@pytest.mark.parametrize("name", ["", SITE, "a:b", "a\nb", "a\tb", "a\0"])
def test_names_that_no_login_can_have(name: str) -> None:
    with pytest.raises(UsageError):
        check_login(name, [])


@pytest.mark.parametrize("key", ["", "a b", "#", "*", "ü", "a" * 65])
def test_keys_that_cannot_be(key: str) -> None:
    with pytest.raises(UsageError):
        check_login("a", [key])
