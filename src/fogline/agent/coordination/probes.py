"""Measures the way to other sites: how long a message takes to be confirmed there, and how many
bytes a second go through. What it sends goes to a topic that nobody keeps."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from fogline.broker import Broker, BrokerError, BrokerOptions, Message, Tls, open_broker
from fogline.common.errors import FoglineError
from fogline.control import NodeRegistry, topics
from fogline.model.nodes import ONLINE, SITE, Link

_ROUND_SECONDS = 5.0
_BANDWIDTH_EVERY = 60
"""Rounds between two measurements of bandwidth, which cost more."""
_BYTES = 256 << 10
_TRIES = 3
_ANSWER_SECONDS = 5.0
_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Peer:
    name: str
    url: str


class Prober:
    """Runs in a thread of its own. `login` adds user and password to a peer's address."""

    def __init__(self, name: str, control: str, login: Callable[[str, str], str], tls: Tls | None):
        self._name = name
        self._control = control
        self._login = login
        self._tls = tls
        self._registry = NodeRegistry()
        self._links: dict[str, Link] = {}
        self._brokers: dict[_Peer, Broker] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="probes")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_ANSWER_SECONDS)

    def links(self) -> dict[str, dict[str, float | None]]:
        """To every site that answers."""
        found = dict(self._links)
        return {
            name: {"latency_ms": link.latency_ms, "mbit_s": link.mbit_s}
            for name, link in found.items()
        }

    def _run(self) -> None:
        control = open_broker(self._control, BrokerOptions(tls=self._tls))
        try:
            while not self._stop.is_set() and not _connected(control):
                self._stop.wait(_WAIT_SECONDS)
            rounds = 0
            while not self._stop.is_set():
                with contextlib.suppress(FoglineError):
                    self._listen(control, rounds)
                self._measure(bandwidth=rounds % _BANDWIDTH_EVERY == 1)
                rounds += 1
        finally:
            for broker in [control, *self._brokers.values()]:
                broker.close()

    def _listen(self, control: Broker, rounds: int) -> None:
        """Announcements of all nodes, for as long as a round takes."""
        if rounds == 0:
            control.subscribe(topics.ANNOUNCEMENTS)
        until = time.monotonic() + (_WAIT_SECONDS if rounds < 2 else _ROUND_SECONDS)
        while time.monotonic() < until and not self._stop.is_set():
            batch = control.receive(timeout=_WAIT_SECONDS)
            for message in batch:
                name = message.topic.split("/")[2]
                self._registry.note_announcement(name, message.payload, time.time())
            control.acknowledge(batch)

    def _measure(self, bandwidth: bool) -> None:
        peers = [p for p in self._peers() if p.name != self._name]
        for peer in [known for known in self._brokers if known not in peers]:
            self._brokers.pop(peer).close()
            self._links.pop(peer.name, None)
        for peer in peers:
            if self._stop.is_set():
                return
            try:
                self._links[peer.name] = self._probe(peer, bandwidth)
            except FoglineError:
                self._links.pop(peer.name, None)

    def _peers(self) -> list[_Peer]:
        views = self._registry.views(0.0).values()
        sites = [v.node for v in views if v.state == ONLINE and v.node.kind == SITE]
        return [_Peer(node.name, self._login(node.name, node.broker)) for node in sites]

    def _probe(self, peer: _Peer, bandwidth: bool) -> Link:
        broker = self._brokers.get(peer)
        if broker is None:
            broker = open_broker(peer.url, BrokerOptions(tls=self._tls))
            broker.connect(_ANSWER_SECONDS)
            self._brokers[peer] = broker
        latency = min(self._send(broker, b"") for _ in range(_TRIES))
        known = self._links.get(peer.name)
        rate = known.mbit_s if known else None
        if bandwidth or rate is None:
            seconds = max(self._send(broker, bytes(_BYTES)) - latency, 1e-4)
            rate = round(_BYTES * 8 / seconds / 1e6, 1)
        return Link(round(latency * 1000, 2), rate)

    def _send(self, broker: Broker, payload: bytes) -> float:
        begun = time.monotonic()
        message = Message(f"fogline/probes/{self._name}", payload)
        broker.publish([message], _ANSWER_SECONDS).wait(_ANSWER_SECONDS)
        return time.monotonic() - begun


def _connected(broker: Broker) -> bool:
    try:
        broker.connect(_ANSWER_SECONDS)
    except BrokerError:
        return False
    return True
