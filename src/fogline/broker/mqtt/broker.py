"""MQTT 3.1.1 and 5: the caller's side of a connection; `link` is the network's.

A subscription with QoS 2 is made with QoS 1. With QoS 2 a subscriber has to take a message over
before it can be on our disk, and after a crash in between nobody would have it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from fogline.broker.delivery import DeliveryFuture
from fogline.broker.errors import BrokerClosedError
from fogline.broker.interface import (
    CONNECT_SECONDS,
    PUBLISH_SECONDS,
    RECEIVE_MESSAGES,
    Batch,
    Broker,
    Filters,
    Message,
)
from fogline.broker.mqtt.link import MqttLink
from fogline.broker.mqtt.queues import Queues
from fogline.broker.mqtt.requests import Request
from fogline.broker.options import BrokerOptions
from fogline.broker.topics import check_filters, check_messages
from fogline.model.broker_url import BrokerUrl


class MqttBroker(Broker):
    """A connection to an MQTT broker; see `Broker` for what it guarantees."""

    def __init__(self, url: BrokerUrl, options: BrokerOptions | None = None) -> None:
        self._url = url
        self._options = options or BrokerOptions()
        self._queues = Queues(self._options)
        self._link: MqttLink | None = None
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._link is not None and self._link.connected

    @property
    def problem(self) -> str:
        if self.connected:
            return ""
        return str(self._link.problem) if self._link else "not connected yet"

    def connect(self, timeout: float = CONNECT_SECONDS) -> None:
        self._check_open()
        self._link = link = MqttLink(self._url, self._options, self._queues, timeout)
        link.answered.wait()
        if self._closed:  # perhaps before there was a link to stop
            link.stop(0)
            self._check_open()
        if not link.connected:
            raise link.problem

    def subscribe(self, patterns: Filters, qos: int = 1, timeout: float = CONNECT_SECONDS) -> None:
        self._ask([Request(pattern, min(qos, 1)) for pattern in check_filters(patterns)], timeout)

    def unsubscribe(self, patterns: Filters, timeout: float = CONNECT_SECONDS) -> None:
        self._ask([Request(pattern, None) for pattern in check_filters(patterns)], timeout)

    def receive(self, max_messages: int = RECEIVE_MESSAGES, timeout: float = 1.0) -> Batch:
        was_full = self._queues.inbox.full
        batch = self._queues.inbox.take(max_messages, timeout)
        if was_full:
            self._queues.wake()
        return batch

    def acknowledge(self, batch: Batch) -> None:
        self._check_open()
        if batch.tokens:
            self._queues.acknowledged.append(batch)
            self._queues.wake()

    def publish(
        self, messages: Sequence[Message], timeout: float = PUBLISH_SECONDS
    ) -> DeliveryFuture:
        check_messages(messages)
        delivery = self._queues.outbox.put(messages, timeout)
        self._queues.wake()
        return delivery

    def close(self, timeout: float = 5.0) -> None:
        self._closed = True
        if self._link is not None:
            self._link.stop(timeout)
        self._queues.close()

    def __repr__(self) -> str:
        return f"MqttBroker({self._url}, {'connected' if self.connected else 'not connected'})"

    def _check_open(self) -> None:
        if self._closed:
            raise BrokerClosedError("the broker connection is closed")

    def _ask(self, requests: Sequence[Request], timeout: float) -> None:
        self._queues.subscriptions.ask(requests)
        self._queues.wake()
        deadline = time.monotonic() + timeout
        for request in requests:
            request.wait(max(0.0, deadline - time.monotonic()), timeout)
