"""Publishes a simulated stream over MQTT in real time, with QoS 1.

A message counts when the broker has acknowledged it. No more than `WINDOW` messages wait for that
at a time, so a slow broker slows the simulation down instead of filling memory. Ctrl-C stops the
sending, waits for what is under way and returns what was delivered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from fogline.common.errors import FoglineError
from fogline.model.broker_url import BrokerUrl
from fogline.simulate.disturb import DueMessage
from fogline.simulate.messages import Wire, messages
from fogline.simulate.streams import Run

WINDOW = 1000
CONNECT_SECONDS = 10.0
ACKNOWLEDGE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class PublishReport:
    """What came of publishing."""

    sent: int
    acknowledged: int
    seconds: float
    interrupted: bool


def publish(
    url: str,
    run: Run,
    wire: Wire,
    topic: str | None = None,
    progress: Callable[[int], None] = lambda count: None,
) -> PublishReport:
    """Sends every message when it is due and returns when all are acknowledged.

    `topic` counts where the URL has no path; without either it is the stream's name. `progress` is
    called with the number of acknowledged messages. Raises `FoglineError` when the broker cannot be
    reached, refuses, or stops acknowledging.
    """
    sender = _Sender(BrokerUrl.parse(url, topic or run.name))
    started = time.monotonic()
    interrupted = False
    try:
        sender.connect()
        started = time.monotonic()
        try:
            for chunk in messages(run, wire):
                for message in chunk:
                    _wait_until(started + (message.due_ms - run.start_ms) / 1000)
                    sender.send(message)
                    progress(sender.acknowledged)
        except KeyboardInterrupt:
            interrupted = True
        sender.settle()
        progress(sender.acknowledged)
    finally:
        sender.close()
    return PublishReport(sender.sent, sender.acknowledged, time.monotonic() - started, interrupted)


def _wait_until(moment: float) -> None:
    ahead = moment - time.monotonic()
    if ahead > 0.001:
        time.sleep(ahead)


class _Sender:
    """One connection: connect, then send as often as needed, then settle, then close."""

    def __init__(self, broker: BrokerUrl) -> None:
        self.broker = broker
        self.sent = 0
        self.acknowledged = 0
        self._window = threading.Semaphore(WINDOW)
        self._answered = threading.Event()
        self._refusal = ""
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(WINDOW)
        self._client.on_connect = self._on_connect
        self._client.on_publish = self._on_publish
        if broker.user is not None:
            self._client.username_pw_set(broker.user, broker.password)
        if broker.tls:
            self._client.tls_set()

    def connect(self) -> None:
        hint = (
            "check the address; fogline run FILE.ins --mqtt-port 1883 and"
            " fogline agent --config site.yaml start a broker"
        )
        try:
            self._client.connect(self.broker.host, self.broker.port)
        except (OSError, ValueError) as error:
            raise FoglineError(f"no MQTT broker answers at {self.broker}", hint) from error
        self._client.loop_start()
        if not self._answered.wait(CONNECT_SECONDS):
            raise FoglineError(f"no MQTT broker answers at {self.broker}", hint)
        if self._refusal:
            hint = "check user and password in the URL"
            raise FoglineError(f"the broker at {self.broker} refuses: {self._refusal}", hint)

    def send(self, message: DueMessage) -> None:
        if not self._window.acquire(timeout=ACKNOWLEDGE_SECONDS):
            raise self._timeout_error()
        self._client.publish(self.broker.topic, message.payload(), qos=1)
        self.sent += 1

    def settle(self) -> None:
        """Waits until everything sent is acknowledged."""
        deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
        seen = self.acknowledged
        while self.acknowledged < self.sent:
            if self.acknowledged > seen:
                seen, deadline = self.acknowledged, time.monotonic() + ACKNOWLEDGE_SECONDS
            if time.monotonic() > deadline:
                raise self._timeout_error()
            time.sleep(0.01)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _timeout_error(self) -> FoglineError:
        missing = self.sent - self.acknowledged
        return FoglineError(
            f"the broker at {self.broker} acknowledged nothing for {ACKNOWLEDGE_SECONDS:.0f} s",
            f"{missing} of {self.sent} messages are open; check the broker's log",
        )

    def _on_connect(
        self,
        client: paho.Client,
        data: Any,
        flags: Any,
        reason: ReasonCode,
        more: Properties | None,
    ) -> None:
        self._refusal = str(reason) if reason.is_failure else ""
        self._answered.set()

    def _on_publish(
        self, client: paho.Client, data: Any, mid: int, reason: ReasonCode, more: Properties
    ) -> None:
        self.acknowledged += 1
        self._window.release()
