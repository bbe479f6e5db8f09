"""What a site tells: health and metrics over HTTP on loopback, metrics as messages too."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from fogline.agent.broker.connections import broker_options
from fogline.agent.config.site import LOOPBACK, SiteConfig
from fogline.agent.damage.watch import DamageWatch
from fogline.agent.supervisor import metrics
from fogline.broker import Broker, BrokerError, Message, open_broker
from fogline.common.http.hosts import Hosts, Refusal


class Reported(Protocol):
    """What is reported about: a site."""

    config: SiteConfig
    folder: Path

    @property
    def broker_url(self) -> str: ...

    @property
    def tls(self) -> dict[str, str] | None: ...

    @property
    def damage(self) -> DamageWatch: ...

    def status(self) -> dict[str, Any]: ...


class Reporter:
    """Metrics are best effort: a broker that is away misses them, and nothing waits for it."""

    def __init__(self, site: Reported) -> None:
        self._site = site
        self._server: ThreadingHTTPServer | None = None
        self._broker: Broker | None = None
        self._seen: dict[str, str] = {}
        self._due = 0.0

    @property
    def address(self) -> str:
        port = self._server.server_port if self._server else 0
        return f"http://127.0.0.1:{port}"

    def broker_metrics(self) -> dict[str, Any] | None:
        """What the broker told about itself; None as long as it has told nothing."""
        return metrics.broker_metrics(self._site.config.site, dict(self._seen))

    def start(self) -> None:
        port = self._site.config.http_port
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self._site))
        threading.Thread(target=self._server.serve_forever, daemon=True, name="http").start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
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
            *((metrics.JOB, r) for r in metrics.job_metrics(name, self._site.status())),
            *([(metrics.BROKER, broker)] if broker else []),
        ]
        return [Message(topic, json.dumps(record).encode()) for topic, record in records]


def _handler(site: Reported) -> type[BaseHTTPRequestHandler]:
    config = site.config
    hosts = Hosts(LOOPBACK, (*config.hosts, config.announce_http))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if refusal := self._refusal():
                self._answer(refusal.status, refusal.body)
                return
            status = site.status()
            match self.path.split("?")[0]:
                case "/health":
                    code = 200 if status["healthy"] else 503
                    self._answer(code, json.dumps({"healthy": status["healthy"]}))
                case "/status":
                    self._answer(200, json.dumps(status, indent=2))
                case "/metrics":
                    node = metrics.node_metrics(site.config.site, site.folder)
                    self._answer(200, metrics.prometheus(status, node), "text/plain; version=0.0.4")
                case _:
                    known = {"error": "there is /health, /status and /metrics"}
                    self._answer(404, json.dumps(known))

        def do_POST(self) -> None:
            """`/damage/acknowledge`, with `?log=NAME` for one log."""
            where = urlsplit(self.path)
            if refusal := self._refusal():
                self._answer(refusal.status, refusal.body)
            elif where.path == "/damage/acknowledge":
                log = parse_qs(where.query).get("log", [None])[0]
                self._answer(200, json.dumps({"acknowledged": site.damage.acknowledge(log)}))
            else:
                self._answer(404, json.dumps({"error": "there is POST /damage/acknowledge"}))

        def _refusal(self) -> Refusal | None:
            host, origin = (
                [text.encode("latin-1", "replace") for text in self.headers.get_all(name) or ()]
                for name in ("Host", "Origin")
            )
            arrived = str(self.request.getsockname()[0])
            return hosts.refusal(self.command, self.path, host, origin, arrived)

        def send_error(
            self, code: int, message: str | None = None, explain: str | None = None
        ) -> None:
            """What is no HTTP request, or has headers that are too large."""
            self.close_connection = True
            self.request_version = self.protocol_version  # else the answer has no status
            self._answer(code, Refusal(code, message or HTTPStatus(code).phrase).body)

        def _answer(self, code: int, text: str, kind: str = "application/json") -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not worth a line."""

    return Handler
