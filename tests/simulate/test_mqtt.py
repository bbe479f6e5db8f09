"""Publishing against a real broker: everything arrives, in real time, and stops cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from fogline.common.errors import FoglineError
from fogline.common.process.free_ports import free_port
from fogline.simulate import Run, Wire, publish
from fogline.simulate.mqtt import BrokerUrl
from tests.simulate.broker import Mosquitto
from tests.waiting import PATIENCE

pytestmark = pytest.mark.site


class Listener:
    """Subscribes to one topic and keeps what arrives."""

    def __init__(self, port: int, topic: str) -> None:
        self.payloads: list[bytes] = []
        subscribed = threading.Event()
        self.client = paho.Client(CallbackAPIVersion.VERSION2)
        self.client.on_message = lambda client, data, message: self.payloads.append(message.payload)
        self.client.on_subscribe = lambda *arguments: subscribed.set()
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        self.client.subscribe(topic, qos=1)
        assert subscribed.wait(10)

    def wait_for(self, count: int) -> list[bytes]:
        deadline = time.monotonic() + 10 * PATIENCE
        while len(self.payloads) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        self.client.disconnect()
        self.client.loop_stop()
        return self.payloads


def test_every_message_is_acknowledged_and_arrives(mosquitto: Mosquitto, tmp_path: Path) -> None:
    listener = Listener(mosquitto.port, "plant/city")
    run, wire = Run("city", 2000, 1.5, seed=9), Wire("json", bad=0.05)
    done = publish(f"mqtt://127.0.0.1:{mosquitto.port}/plant/city", run, wire)
    payloads = listener.wait_for(done.sent)
    assert done.sent == done.acknowledged == len(payloads) > 3000
    assert not done.interrupted
    good = []
    for payload in payloads:
        try:
            good.append(json.loads(payload)["source"])
        except (ValueError, KeyError):
            continue
    assert len(good) == 3000


def test_sends_at_the_rate_in_real_time(mosquitto: Mosquitto) -> None:
    counts: list[int] = []
    url = f"mqtt://127.0.0.1:{mosquitto.port}"
    done = publish(url, Run("grid", 100, 2), Wire("json"), "grid", counts.append)
    assert 1.8 < done.seconds < 10
    assert done.acknowledged == counts[-1] == 200


def test_the_topic_is_the_stream_where_none_is_named(mosquitto: Mosquitto) -> None:
    listener = Listener(mosquitto.port, "fit")
    publish(f"mqtt://127.0.0.1:{mosquitto.port}", Run("fit", 100, 0.1), Wire("senml"))
    assert len(listener.wait_for(10)) == 10


def test_a_password_opens_and_is_never_shown(locked_mosquitto: Mosquitto) -> None:
    port = locked_mosquitto.port
    run, wire = Run("city", 10, 0.5), Wire("json")
    done = publish(f"mqtt://ada:s3cret%20word@127.0.0.1:{port}/x", run, wire)
    assert done.acknowledged == 5
    with pytest.raises(FoglineError, match="refuses") as caught:
        publish(f"mqtt://ada:wrong-word@127.0.0.1:{port}/x", run, wire)
    assert "wrong-word" not in str(caught.value)
    assert "word" not in repr(BrokerUrl.parse("mqtt://ada:word@127.0.0.1/x", "x"))


def test_a_broker_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FoglineError, match="no MQTT broker answers"):
        publish(f"mqtt://127.0.0.1:{free_port()}/x", Run("city", 1, 1), Wire("json"))


def test_an_interrupt_stops_cleanly_and_counts(mosquitto: Mosquitto) -> None:
    url = f"mqtt://127.0.0.1:{mosquitto.port}/x"
    call = f"simulate(['city', '--rate', '100', '--seconds', '600', '--mqtt', '{url}'])"
    # A process started in the background may inherit that interrupts are ignored.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}\nfrom fogline.cli.simulate import simulate\n{call}"
    listener = Listener(mosquitto.port, "x")
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 20 * PATIENCE
    while len(listener.payloads) < 50 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=15)
    assert process.returncode == 0, stderr
    text = stderr.decode()
    assert text.startswith("stopped: sent ")
    sent, acknowledged = (int(word) for word in text.split() if word.isdigit())
    assert sent == acknowledged >= 50
    assert len(listener.wait_for(sent)) == sent
