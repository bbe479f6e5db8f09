"""Nodes that are killed or hang, and brokers that want to know who one is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fogline.broker import Tls
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions, ServerTls
from fogline.control import ControlClient, ControlledNode, ControlOptions, NoAnswerError
from fogline.model.nodes import OFFLINE
from tests.broker.certificates import Authority
from tests.control.worlds import (
    SECONDS,
    MqttWorld,
    all_online,
    echo,
    eventually,
    nothing,
    site,
    state_of,
)

pytestmark = pytest.mark.site

NODE = """
import signal, sys
from fogline.control import ControlledNode, ControlOptions
from fogline.model.nodes import Node
node = ControlledNode(sys.argv[1], lambda: Node("a", "site"), {"echo": dict}, dict,
    ControlOptions(keepalive_seconds=2))
node.start()
signal.pause()
"""


@contextmanager
def process(url: str) -> Iterator[subprocess.Popen[bytes]]:
    source = Path(__file__).resolve().parents[2] / "src"
    env = os.environ | {"PYTHONPATH": str(source)}
    started = subprocess.Popen([sys.executable, "-c", NODE, url], env=env)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def test_a_killed_node_is_gone_and_its_successor_is_there_at_once(mqtt: MqttWorld) -> None:
    coordinator = mqtt.coordinator()
    for _ in range(2):
        with process(mqtt.url) as node:
            all_online(coordinator, "a")
            assert coordinator.send("a", "echo", {"x": 1}, SECONDS).result() == {"x": 1}
            node.send_signal(signal.SIGKILL)
            eventually(lambda: state_of(coordinator, "a") == OFFLINE)


def test_a_node_that_hangs_is_gone_until_it_goes_on(mqtt: MqttWorld) -> None:
    coordinator = mqtt.coordinator()
    with process(mqtt.url) as node:
        all_online(coordinator, "a")
        node.send_signal(signal.SIGSTOP)
        eventually(lambda: state_of(coordinator, "a") == OFFLINE)
        node.send_signal(signal.SIGCONT)
        all_online(coordinator, "a")
        assert coordinator.send("a", "echo", {"x": 1}, SECONDS).result() == {"x": 1}


def test_a_broker_that_takes_connections_and_says_nothing_holds_nobody_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"mqtt://127.0.0.1:{mute.getsockname()[1]}"
        node = ControlledNode(url, lambda: site("a"), {}, nothing)
        started = time.monotonic()
        node.start()
        with pytest.raises(NoAnswerError, match="the control broker is unreachable"):
            node.call("package", {}, 0.1)
        node.close()
        assert time.monotonic() - started < 30.0


@pytest.mark.parametrize("protocol", [4, 5])
def test_user_password_and_tls(tmp_path: Path, protocol: int) -> None:
    authority = Authority(tmp_path, "ca")
    signed = authority.sign("server")
    server = ServerTls(signed.certificate, signed.key)
    secured = MosquittoOptions(user="fog", password="s3cret", tls=server, save_after=0)
    with Mosquitto(tmp_path / "broker", secured) as broker:
        options = ControlOptions(
            tls=Tls(ca=authority.certificate), protocol=protocol, retry_longest=0.2
        )
        with (
            ControlClient(broker.url, {}, lambda: None, "c", options) as coordinator,
            ControlledNode(broker.url, lambda: site("a"), {"echo": echo}, nothing, options),
            ControlledNode(
                broker.url.replace("s3cret", "wr0ng"), lambda: site("b"), {}, nothing, options
            ) as stranger,
        ):
            all_online(coordinator, "a")
            assert coordinator.send("a", "echo", {"x": 1}, SECONDS).result() == {"x": 1}
            eventually(lambda: "refuses" in stranger.problem)
            assert "wr0ng" not in stranger.problem
            assert state_of(coordinator, "b") == ""
