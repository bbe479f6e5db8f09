"""What a site reports: its status over HTTP on loopback, its metrics as messages too."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from fogline.agent.broker.connections import broker_options
from fogline.agent.config.site import LOOPBACK
from fogline.agent.supervisor import metrics
from fogline.agent.supervisor.rest import Reported, make_app
from fogline.broker import Broker, BrokerError, Message, open_broker
from fogline.common.http.server import Server


class Reporter:
    """Metrics are best effort: an unreachable broker misses them, and nothing waits for it."""

    def __init__(self, site: Reported) -> None:
        self._site = site
        self._server: Server | None = None
        self._broker: Broker | None = None
        self._seen: dict[str, str] = {}
        self._due = 0.0

    @property
    def address(self) -> str:
        """Where it listens, from `start` on."""
        return self._server.address if self._server else ""

    def broker_metrics(self) -> dict[str, Any] | None:
        """What the broker publishes about itself; None before its first message."""
        return metrics.broker_metrics(self._site.config.site, dict(self._seen))

    def start(self) -> None:
        config = self._site.config
        hosts = (*config.hosts, config.announce_http)
        self._server = Server(LOOPBACK, config.http_port, hosts)
        self._server.start(make_app(self._site))

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        if self._broker is not None:
            self._broker.close()

    def tick(self) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._site.config.metrics_seconds
        with contextlib.suppress(BrokerError):
            self._publish()

    def _publish(self) -> None:
        if self._broker is None:
            self._broker = self._connect()
        for message in self._broker.receive(timeout=0.0):
            self._seen[message.topic] = message.payload.decode(errors="replace").split(" ")[0]
        if self._broker.connected:
            self._broker.publish(self._messages(), timeout=0.1)

    def _connect(self) -> Broker:
        name = f"fogline-{self._site.config.site}-agent"
        broker = open_broker(self._site.broker_url, broker_options(name, self._site.tls))
        broker.connect(2.0)
        broker.subscribe("$SYS/broker/#", 0, 2.0)
        return broker

    def _messages(self) -> list[Message]:
        name = self._site.config.site
        broker = self.broker_metrics()
        records: list[tuple[str, Any]] = [
            (metrics.NODE, metrics.node_metrics(name, self._site.folder)),
            *((metrics.JOB, r) for r in metrics.job_metrics(self._site.status())),
            *([(metrics.BROKER, broker)] if broker else []),
        ]
        return [Message(topic, json.dumps(record).encode()) for topic, record in records]
