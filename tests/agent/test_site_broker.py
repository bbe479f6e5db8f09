"""The broker of a site: TLS and memory of its own, the protocol of an existing one."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.broker.site_broker import SiteBroker
from fogline.agent.config.site import BrokerConfig, parse_config
from fogline.agent.supervisor.site import Site
from fogline.broker import BrokerOptions, Message, open_broker
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.errors import UsageError
from fogline.common.process.free_ports import free_port
from tests.agent.kit import payloads
from tests.broker.certificates import Authority
from tests.waiting import wait_for

pytestmark = pytest.mark.site


@contextmanager
def running(folder: Path, broker: dict[str, Any]) -> Iterator[Site]:
    """A site that only stores, so it needs no Spark."""
    config = {"site": "s", "engine": "none", "broker": broker, "min_free_megabytes": 1}
    more = {"metrics_seconds": 0.5, "store": {"topics": ["plant/#"]}}
    site = Site(parse_config(config | more, folder, "site.yaml"))
    stop = threading.Event()
    site.start()
    thread = threading.Thread(target=site.run, args=(stop,))
    thread.start()
    try:
        wait_for(lambda: site.status().healthy, 30, site.status)
        yield site
    finally:
        stop.set()
        thread.join()
        site.stop()


def kept(site: Site, topic: str) -> list[bytes]:
    with site.logs.reader(topic) as reader:
        return list(payloads(reader))


def test_devices_connect_to_the_own_broker_with_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    signed = authority.sign("server")
    (tmp_path / "secret").write_text("word\n", encoding="utf-8")
    port = free_port()
    broker: dict[str, Any] = {"host": "0.0.0.0", "port": port, "user": "plant"}
    broker |= {"password_file": "secret", "certificate": "server.pem", "key": "server.key"}
    assert signed.certificate == tmp_path / "server.pem"
    command = ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), "-q", "1", "-t", "plant/a"]
    command += ["-u", "plant", "-P", "word", "-m", '{"x": 1}']
    with running(tmp_path, broker) as site:
        assert site.broker_address == f"mqtts://0.0.0.0:{port}"
        with_ca = [*command, "--cafile", str(authority.certificate)]
        subprocess.run(with_ca, check=True, timeout=20)
        plain = subprocess.run(command, check=False, timeout=20, capture_output=True)
        assert plain.returncode != 0
        wait_for(lambda: kept(site, "plant/#") == [b'{"x": 1}'], 20, "message")
        wait_for(lambda: kept(site, "metrics/broker"), 20, "metrics of the site itself")
        assert "clients_connected" in site.status().broker_metrics


def test_tls_needs_both_files() -> None:
    with pytest.raises(UsageError, match="both 'certificate' and 'key'"):
        BrokerConfig(certificate=Path("a.pem"))


@pytest.mark.parametrize(
    ("given", "version"), [({"protocol": "3.1.1"}, "p2"), ({"protocol": 5}, "p5"), ({}, "p5")]
)
def test_an_existing_broker_is_spoken_to_in_its_protocol(
    tmp_path: Path, given: dict[str, Any], version: str
) -> None:
    with Mosquitto(tmp_path / "broker", MosquittoOptions()) as broker:
        existing = {"url": f"mqtt://127.0.0.1:{broker.port}", **given}
        with running(tmp_path, existing), open_broker(broker.url) as device:
            device.connect()
            device.publish([Message("plant/a", b"1")]).wait(10)
        lines = broker.log.read_text(encoding="utf-8").splitlines()
        joined = [line for line in lines if "as fogline-s-" in line]
        assert joined
        assert all(f"({version}," in line for line in joined), joined


def test_an_existing_broker_that_is_down_is_told(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path / "broker", MosquittoOptions()).start()
    try:
        with running(tmp_path, {"url": f"mqtt://127.0.0.1:{broker.port}"}) as site:
            broker.stop()
            wait_for(lambda: "disconnected" in site.status().broker.state, 20, site.status)
            assert not site.status().healthy
            broker.start()
            wait_for(lambda: site.status().healthy, 40, site.status)
    finally:
        broker.stop()


def test_an_unknown_protocol_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'4', not 3\.1\.1 or 5"):
        parse_config({"site": "s", "broker": {"protocol": 4}}, tmp_path, "site.yaml")
    with pytest.raises(UsageError, match="no MQTT protocol '6'"):
        open_broker("mqtt://localhost?protocol=6")


def test_one_absent_subscriber_cannot_take_all_memory(tmp_path: Path) -> None:
    own = SiteBroker(BrokerConfig(queued_megabytes=1), tmp_path, 1)
    own.start(())
    try:
        options = BrokerOptions(client_id="away", persistent=True)
        with open_broker(own.url, options) as away:
            away.connect()
            away.subscribe("big/#")
        with open_broker(own.url) as sender:
            sender.connect()
            sender.publish([Message("big/a", bytes(100_000))] * 50).wait(20)
        assert "max_queued_bytes 1048576" in (tmp_path / "broker" / "mosquitto.conf").read_text()
        with open_broker(own.url, options) as back:
            back.connect()
            got = 0
            while batch := back.receive(timeout=1.0):
                got += len(batch)
                back.acknowledge(batch)
        assert 0 < got < 20
    finally:
        own.stop()
