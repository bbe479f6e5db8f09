"""How fast messages come in over MQTT at QoS 1: two ways of Fogline, and bare paho beside them.

The bare subscriber counts messages and does nothing else; paho acknowledges them by itself. The
subscription is Fogline's: it receives batches and acknowledges each. The journal is that of a
site's own broker, which writes every message before it confirms it, with the intake that takes them
over into a topic's log, on disk; the others write nothing. A child process publishes to each:

- live: while messages are received, so the child and the broker take part in the rate;
- backlog: before that, so the rate is that of the receiving side (and, but for the journal, of the
  broker) alone.

    python bench/mqtt_receive.py [--messages 50000] [--size 150] [--rounds 3]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import click
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from fogline.agent.contracts.ingest import Subscription
from fogline.agent.ingest.journal_intake import JournalIntake
from fogline.broker import BrokerOptions, Message, open_broker
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.log import SiteLog

SECONDS = 300.0
TOPIC = "bench/readings"


@click.command()
@click.option("--messages", default=50_000, show_default=True, help="Messages a round.")
@click.option("--size", default=150, show_default=True, help="Bytes of a payload.")
@click.option("--rounds", default=3, show_default=True, help="Rounds; the median counts.")
@click.option("--save-after", default=0, show_default=True, help="Mosquitto's durability.")
@click.option("--publish-to", hidden=True, help="Be the child that publishes to this address.")
def main(messages: int, size: int, rounds: int, save_after: int, publish_to: str | None) -> None:
    """Prints the rates in messages a second, and Fogline's as parts of bare paho's."""
    if publish_to:
        publish(publish_to, messages, size)
        return
    for kind, rates in measure(messages, size, rounds, save_after).items():
        show(kind, *rates)


def measure(
    messages: int = 50_000, size: int = 150, rounds: int = 3, save_after: int = 0
) -> dict[str, tuple[float, float, float]]:
    """Median rates of bare paho, of a subscription and of the journal, live and with a backlog."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = MosquittoOptions(save_after=save_after)
        journaled = MosquittoOptions(journal=folder / "journal")
        with (
            Mosquitto(folder / "plain", plain) as other,
            Mosquitto(folder / "own", journaled) as own,
        ):
            for kind in ("live", "backlog"):
                ahead = kind == "backlog"
                to_other = Child(other.url, messages, size, ahead)
                to_own = Child(own.url, messages, size, ahead)
                rates = [
                    (bare(other, to_other), fogline(other, to_other), journal(folder, to_own))
                    for _ in range(rounds)
                ]
                theirs, subscribed, journaled = (median(c) for c in zip(*rates, strict=True))
                found[kind] = (theirs, subscribed, journaled)
    return found


def show(kind: str, theirs: float, subscribed: float, journaled: float) -> None:
    click.echo(
        f"{kind:8} bare paho {theirs:8,.0f}/s"
        f"   subscription {subscribed:8,.0f}/s ({subscribed / theirs:.2f})"
        f"   journal {journaled:8,.0f}/s ({journaled / theirs:.2f})"
    )


class Child:
    """Publishes in a process of its own, `ahead` of the subscriber or beside it."""

    def __init__(self, url: str, messages: int, size: int, ahead: bool) -> None:
        self.messages = messages
        self.ahead = ahead
        counts = ["--messages", str(messages), "--size", str(size)]
        self._command = [sys.executable, __file__, "--publish-to", url, *counts]

    def start(self) -> None:
        self._process = subprocess.Popen(self._command)

    def finish(self) -> None:
        if self._process.wait(SECONDS):
            raise click.ClickException("the publisher failed")


def publish(url: str, messages: int, size: int) -> None:
    batch = [Message(TOPIC, b"x" * size)] * 1000
    with open_broker(url) as broker:
        broker.connect()
        deliveries = [broker.publish(batch, SECONDS) for _ in range(messages // len(batch))]
        for delivery in deliveries:
            delivery.wait(SECONDS)


def bare(broker: Mosquitto, child: Child) -> float:
    """The rate of a subscriber that only counts, from its first message to its last."""
    times: list[float] = []
    ready, done = threading.Event(), threading.Event()

    def on_message(client: Any, data: Any, message: Any) -> None:
        times.append(time.perf_counter())
        if len(times) == child.messages:
            done.set()

    client = paho.Client(
        CallbackAPIVersion.VERSION2, client_id="bare", protocol=MQTTProtocolVersion.MQTTv5
    )
    client.on_message = on_message
    client.on_subscribe = lambda *arguments: ready.set()
    start_bare(client, broker.port, fresh=True)
    client.subscribe(TOPIC, qos=1)
    ready.wait(SECONDS)
    if child.ahead:
        stop_bare(client)
    child.start()
    if child.ahead:
        child.finish()
        start_bare(client, broker.port, fresh=False)
    if not done.wait(SECONDS):
        raise click.ClickException(f"only {len(times)} messages came")
    child.finish()
    client.unsubscribe(TOPIC)
    stop_bare(client)
    return child.messages / (times[-1] - times[0])


def start_bare(client: paho.Client, port: int, fresh: bool) -> None:
    keep = Properties(PacketTypes.CONNECT)
    keep.SessionExpiryInterval = 3600
    client.connect("127.0.0.1", port, clean_start=fresh, properties=keep)
    client.loop_start()


def stop_bare(client: paho.Client) -> None:
    client.disconnect()
    client.loop_stop()


def fogline(broker: Mosquitto, child: Child) -> float:
    """The rate of receiving and acknowledging, from the first batch to the last."""
    options = BrokerOptions(client_id="fogline", persistent=True)
    link = open_broker(broker.url, options)
    link.connect()
    link.subscribe(TOPIC)
    if child.ahead:
        link.close()
        link = open_broker(broker.url, options)
    child.start()
    if child.ahead:
        child.finish()
        link.connect()
    first = link.receive(timeout=SECONDS)
    started = time.perf_counter()
    link.acknowledge(first)
    count = len(first)
    while count < child.messages and time.perf_counter() < started + SECONDS:
        batch = link.receive()
        link.acknowledge(batch)
        count += len(batch)
    seconds = time.perf_counter() - started
    child.finish()
    link.unsubscribe(TOPIC, timeout=SECONDS)
    link.close()
    if count < child.messages:
        raise click.ClickException(f"only {count} messages came")
    return (child.messages - len(first)) / seconds


def journal(folder: Path, child: Child) -> float:
    """The rate at which messages get from the journal into a topic's log, from the first commit to
    the last."""
    subscription = Subscription(TOPIC, TOPIC, "", deduplicate=False)
    intake = JournalIntake(folder / "journal", [subscription], SiteLog(folder / "log"))
    target = intake.targets[0]
    times: list[tuple[float, int]] = []
    stop = threading.Event()
    begun = time.perf_counter()
    child.start()
    if child.ahead:
        child.finish()
        begun = time.perf_counter()
        times.append((begun, 0))
    while target.messages < child.messages and time.perf_counter() < begun + SECONDS:
        if intake.step(stop):
            times.append((time.perf_counter(), target.messages))
        else:
            time.sleep(0.001)
    intake.close()
    child.finish()
    if target.messages < child.messages:
        raise click.ClickException(f"only {target.messages} messages came")
    (first, before), (last, count) = times[0], times[-1]
    return (count - before) / (last - first)


if __name__ == "__main__":
    main()
