"""What only MQTT has: credentials, TLS, foreign clients, crashes, back pressure on the socket."""

from __future__ import annotations

import random
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fogline.broker import (
    Broker,
    BrokerCertificateError,
    BrokerClosedError,
    BrokerOptions,
    BrokerRefusedError,
    BrokerUnreachableError,
    Message,
    Tls,
    open_broker,
)
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions, ServerTls
from fogline.broker.mqtt import link
from fogline.broker.mqtt.paho_client import make_client
from fogline.common.backoff import Backoff
from fogline.common.errors import UsageError
from tests.broker.certificates import Authority
from tests.broker.worlds import eventually, numbered, payloads, receive, send

pytestmark = pytest.mark.site

QUICK = 0.3


def connected(url: str, **options: object) -> Broker:
    made = BrokerOptions(retry_longest=QUICK, **options)  # type: ignore[arg-type]
    broker = open_broker(url, made)
    broker.connect()
    return broker


# ── credentials ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Mosquitto]:
    options = MosquittoOptions(user="ada", password="s3cret: wörd/@")
    with Mosquitto(tmp_path / "locked", options) as broker:
        yield broker


@pytest.mark.parametrize("protocol", [4, 5])
def test_the_right_password_opens(locked: Mosquitto, protocol: int) -> None:
    with connected(locked.url, protocol=protocol) as broker:
        broker.subscribe("x")
        send(broker, Message("x", b"1"))
        assert payloads(receive(broker, 1)) == [b"1"]


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("user", ["", "ada:wrong-word@", "eve:wrong-word@"])
def test_wrong_credentials_are_refused(locked: Mosquitto, protocol: int, user: str) -> None:
    url = f"mqtt://{user}127.0.0.1:{locked.port}"
    with pytest.raises(BrokerRefusedError, match="password") as caught:
        connected(url, protocol=protocol)
    assert "wrong-word" not in str(caught.value)


def test_no_password_is_ever_shown(locked: Mosquitto) -> None:
    with connected(locked.url) as broker:
        shown = repr(broker) + str(broker) + repr(locked.options) + broker.problem
    assert "s3cret" not in shown
    assert "s3cret" not in (locked.folder / "passwords").read_text()
    assert (locked.folder / "passwords").stat().st_mode & 0o077 == 0


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ca")


@pytest.fixture(scope="module")
def server(authority: Authority) -> ServerTls:
    signed = authority.sign("server")
    return ServerTls(signed.certificate, signed.key)


def test_tls(tmp_path: Path, authority: Authority, server: ServerTls) -> None:
    large = b"x" * 3_000_000
    with Mosquitto(tmp_path, MosquittoOptions(tls=server, save_after=0)) as broker:
        assert broker.url.startswith("mqtts://")
        with connected(broker.url, tls=Tls(ca=authority.certificate)) as client:
            client.subscribe("x")
            send(client, *numbered("x", 1000), Message("x", large))
            got = payloads(receive(client, 1001))
    assert got == [b"%d" % i for i in range(1000)] + [large]


def test_a_certificate_of_another_ca_is_refused(tmp_path: Path, server: ServerTls) -> None:
    other = Authority(tmp_path, "other")
    with Mosquitto(tmp_path / "broker", MosquittoOptions(tls=server)) as broker:
        with pytest.raises(BrokerCertificateError, match="certificate"):
            connected(broker.url, tls=Tls(ca=other.certificate))
        with pytest.raises(BrokerCertificateError):
            connected(broker.url)


def test_a_certificate_for_another_host_is_refused(tmp_path: Path, authority: Authority) -> None:
    signed = authority.sign("elsewhere", "DNS:elsewhere.example")
    tls = ServerTls(signed.certificate, signed.key)
    with (
        Mosquitto(tmp_path, MosquittoOptions(tls=tls)) as broker,
        pytest.raises(BrokerCertificateError),
    ):
        connected(broker.url, tls=Tls(ca=authority.certificate))


def test_a_client_certificate(tmp_path: Path, authority: Authority, server: ServerTls) -> None:
    strict = ServerTls(server.certificate, server.key, ca=authority.certificate)
    mine = authority.sign("client")
    with Mosquitto(tmp_path, MosquittoOptions(tls=strict)) as broker:
        with pytest.raises(BrokerCertificateError):
            connected(broker.url, tls=Tls(ca=authority.certificate))
        tls = Tls(authority.certificate, mine.certificate, mine.key)
        with connected(broker.url, tls=tls) as client:
            send(client, Message("x", b"1"))


def test_certificate_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(BrokerCertificateError, match=r"nowhere\.pem"):
        connected("mqtts://127.0.0.1:1", tls=Tls(ca=tmp_path / "nowhere.pem"))


def test_mqtt_spoken_to_a_tls_port(tmp_path: Path, server: ServerTls) -> None:
    with (
        Mosquitto(tmp_path, MosquittoOptions(tls=server)) as broker,
        pytest.raises(BrokerUnreachableError, match="mqtts://"),
    ):
        connected(broker.url.replace("mqtts", "mqtt"))


# ── addresses and options ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("url", ["", "http://x", "mqtt://", "memory://", "127.0.0.1:1883"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UsageError):
        open_broker(url)


def test_options_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="client id"):
        BrokerOptions(persistent=True)
    with pytest.raises(UsageError, match="protocol"):
        BrokerOptions(protocol=3)


def test_a_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker = open_broker(f"mqtt://127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(BrokerUnreachableError):
            broker.connect(timeout=0.2)
        assert time.monotonic() - started < 30
        broker.close()


def test_a_server_that_speaks_something_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        broker = open_broker(f"mqtt://127.0.0.1:{other.getsockname()[1]}")

        def answer() -> None:
            peer, _ = other.accept()
            with peer:
                peer.recv(100)
                peer.sendall(b"220 mail.example ESMTP \xff\xff\xff\xff\xff\xff\r\n" * 10)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(BrokerUnreachableError):
            broker.connect(timeout=1)
        thread.join()
        broker.close()


def test_closing_while_it_connects(mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever closes does not wait; the network thread ends by itself, without an error."""
    broker = open_broker(mosquitto.url)
    poll = select.poll

    def closed_before() -> select.poll:
        broker.close(timeout=0)
        return poll()

    monkeypatch.setattr(link.select, "poll", closed_before)
    with pytest.raises(BrokerClosedError):
        broker.connect()
    eventually(lambda: f"mqtt {mosquitto.url}" not in {t.name for t in threading.enumerate()})


def test_closing_before_there_is_a_thread(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = open_broker(mosquitto.url)

    def closed_before(*given: Any) -> Any:
        broker.close()
        return make_client(*given)

    monkeypatch.setattr(link, "make_client", closed_before)
    with pytest.raises(BrokerClosedError):
        broker.connect()
    eventually(lambda: f"mqtt {mosquitto.url}" not in {t.name for t in threading.enumerate()})


# ── crashes and reconnecting ─────────────────────────────────────────────────────────────────────


def test_a_killed_broker_comes_back_with_what_it_confirmed(mosquitto: Mosquitto) -> None:
    connected(mosquitto.url, client_id="reader", persistent=True).close()
    reader = connected(mosquitto.url, client_id="reader", persistent=True)
    reader.subscribe("x")
    reader.close()
    with connected(mosquitto.url, client_id="writer") as writer:
        send(writer, *numbered("x", 30))
        confirmed, port = time.time_ns(), mosquitto.port
        saved = mosquitto.folder / "data" / "mosquitto.db"
        # It confirms first and saves then.
        send(writer, Message("other", b"", retain=True), Message("other", b"1", retain=True))
        eventually(lambda: saved.exists() and saved.stat().st_mtime_ns > confirmed)
        mosquitto.kill()
        mosquitto.start()
        assert mosquitto.port == port
        send(writer, *numbered("x", 10, start=30))
    with connected(mosquitto.url, client_id="reader", persistent=True) as back:
        assert payloads(receive(back, 40)) == [b"%d" % i for i in range(40)]


def test_a_killed_broker_under_load_loses_nothing_unconfirmed(mosquitto: Mosquitto) -> None:
    reader = connected(mosquitto.url, client_id="reader", persistent=True)
    writer = connected(mosquitto.url, client_id="writer", persistent=True)
    reader.subscribe("x")
    delivery = writer.publish(numbered("x", 400))
    got = payloads(receive(reader, 20))
    unconfirmed = not delivery.done
    mosquitto.kill()
    eventually(lambda: not writer.connected)
    mosquitto.start()
    delivery.wait(15)
    send(writer, Message("x", b"last"))
    while b"last" not in got:
        got += payloads(receive(reader, 1))
    assert unconfirmed
    # What came before the crash may come again, and only what was confirmed just then be missing.
    assert len(set(got)) >= 390
    reader.close()
    writer.close()


def test_reconnecting_waits_longer_each_time() -> None:
    pauses = Backoff(0.1, 5.0, source=random.Random(1))
    waits = [pauses.next() for _ in range(12)]
    for place, wait in enumerate(waits):
        whole = min(5.0, 0.1 * 2**place)
        assert whole / 2 <= wait <= whole
    assert len({wait / 5.0 for wait in waits[6:]}) == 6
    pauses.reset()
    assert pauses.next() <= 0.1


def test_a_broker_that_is_away_is_not_hammered(mosquitto: Mosquitto) -> None:
    with connected(mosquitto.url, retry_first=0.05) as client:
        mosquitto.stop()
        attempts = 0
        with socket.create_server(("127.0.0.1", mosquitto.port), reuse_port=False) as door:
            door.settimeout(0.1)
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                try:
                    door.accept()[0].close()
                    attempts += 1
                except TimeoutError:
                    continue
        assert 2 <= attempts <= 12
        assert "without an answer" in client.problem
        mosquitto.start()
        eventually(lambda: client.connected)


def test_wrong_credentials_later_are_told(tmp_path: Path) -> None:
    with Mosquitto(tmp_path / "open") as first:
        client = connected(first.url)
        port = first.port
    locked = MosquittoOptions(port=port, user="ada", password="x")
    with Mosquitto(tmp_path / "locked", locked):
        eventually(lambda: "refuses" in client.problem)
        assert not len(client.receive(timeout=0))
    client.close()


# ── back pressure ────────────────────────────────────────────────────────────────────────────────


def test_unacknowledged_messages_stop_the_broker(mosquitto: Mosquitto) -> None:
    reader = connected(mosquitto.url, client_id="r", receive_maximum=50)
    reader.subscribe("x")
    with connected(mosquitto.url) as writer:
        send(writer, *numbered("x", 200))
    batch = receive(reader, 50, acknowledge=False)
    assert len(batch) == 50
    assert not len(reader.receive(timeout=0.1))
    reader.close()


def test_a_full_queue_stops_reading_and_goes_on(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, MosquittoOptions(save_after=0)) as broker:
        reader = connected(broker.url, queue_bytes=1 << 20, keepalive_seconds=1)
        reader.subscribe("x", qos=0)
        inbox = reader._queues.inbox  # type: ignore[attr-defined]
        with connected(broker.url) as writer:
            messages = [Message("x", b"%8d" % i + b"x" * 10_000) for i in range(3000)]
            writer.publish(messages).wait(15)
        eventually(lambda: inbox.full)
        until = time.monotonic() + 2.5
        while time.monotonic() < until:  # longer than the broker waits for a sign of life
            assert inbox._added - inbox._taken < 2 << 20
            time.sleep(0.05)
        numbers = [int(payload[:8]) for payload in payloads(receive(reader, 500))]
        assert numbers == list(range(len(numbers)))
        assert inbox.connection == 1
        reader.close()


# ── foreign clients ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_from_mosquitto_pub(mosquitto: Mosquitto, version: str) -> None:
    with connected(mosquitto.url) as reader:
        reader.subscribe("x/#")
        command = ["mosquitto_pub", "-p", str(mosquitto.port), "-V", version, "-q", "1"]
        subprocess.run([*command, "-t", "x/ü", "-m", "grüße"], check=True, timeout=10)
        if version == "mqttv5":
            extra = ["-D", "publish", "user-property", "key", "v" * 300]
            subprocess.run([*command, *extra, "-t", "x/p", "-m", "1"], check=True, timeout=10)
        expected = [Message("x/ü", "grüße".encode()), Message("x/p", b"1")]
        count = 2 if version == "mqttv5" else 1
        assert receive(reader, count) == expected[:count]


def test_to_mosquitto_sub(mosquitto: Mosquitto) -> None:
    command = ["mosquitto_sub", "-p", str(mosquitto.port), "-t", "x/#", "-q", "1", "-C", "2"]
    # The end of the greeting says that the subscription stands.
    greeting = ["-t", "hello", "-v"]
    with connected(mosquitto.url) as writer:
        send(writer, Message("hello", b"you", retain=True))
        listener = subprocess.Popen([*command, *greeting], stdout=subprocess.PIPE)
        assert listener.stdout is not None
        assert listener.stdout.readline() == b"hello you\n"
        send(writer, Message("x/1", "grüße".encode()))
        assert listener.stdout.read() == "x/1 grüße\n".encode()
        assert listener.wait(10) == 0
