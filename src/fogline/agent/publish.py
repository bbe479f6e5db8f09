"""The publishing process: results from the site's logs to its broker, in order.

A record is published on its own topic with QoS 1. The position of a log moves on when the broker
has confirmed everything before it, so nothing is left out after a restart; what was sent but not
yet noted when the process died is sent again.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from fogline.agent.brokers import broker_options, connect
from fogline.agent.children import Parent, tell
from fogline.broker import Broker, BrokerError, Message, Ticket
from fogline.errors import FoglineError
from fogline.log import LogGone, SiteLog, get_position, set_position

READER = "publisher"
_READ_BYTES = 256 << 10
_NOTE_SECONDS = 0.2
_STATUS_SECONDS = 0.5
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_CONFIRM_SECONDS = 60.0


class Outlet:
    """One log on its way to the broker."""

    def __init__(self, topic: str, logs: SiteLog, broker: Broker) -> None:
        self.topic = topic
        self.messages = 0
        self._folder = logs.folder(topic)
        self._reader = logs.reader(topic, skip_damage=True)
        self._broker = broker
        self._position = get_position(self._folder, READER) or 0
        self._confirmed = self._noted = self._position
        self._open: deque[tuple[Ticket, int]] = deque()

    @property
    def lag(self) -> int:
        return max(0, self._reader.committed() - self._confirmed)

    def forward(self) -> bool:
        """Sends what is there; whether there was anything."""
        self._settle()
        if self._reader.committed() <= self._position:
            return False
        try:
            records, position = self._reader.read(self._position, _READ_BYTES)
        except LogGone:
            records, position = [], self._reader.first()
        ticket = self._broker.publish([Message(topic, payload) for topic, payload in records])
        self._open.append((ticket, position))
        self._position = position
        self.messages += len(records)
        return True

    def _settle(self) -> None:
        while self._open and self._open[0][0].done:
            ticket, position = self._open.popleft()
            ticket.wait(0)
            self._confirmed = position

    def note(self) -> None:
        """Keeps the position that the broker has confirmed."""
        self._settle()
        if self._confirmed != self._noted and self._folder.exists():
            set_position(self._folder, READER, self._confirmed)
            self._noted = self._confirmed

    def finish(self) -> None:
        """Waits for what is under way."""
        for ticket, _ in self._open:
            ticket.wait(_CONFIRM_SECONDS)
        self.note()


def main() -> None:
    parent = Parent()
    config, gone = parent.config, parent.gone
    try:
        options = broker_options(config["client"], config["tls"])
        broker = connect(config["broker"], options, gone)
        if broker is not None:
            run(config, broker, gone)
    except FoglineError as error:
        sys.exit(f"publish: {error}")


def run(config: dict[str, Any], broker: Broker, gone: threading.Event) -> None:
    logs = SiteLog(Path(config["logs"]))
    outlets = [Outlet(topic, logs, broker) for topic in config["topics"]]
    clock = _Clock()
    pause = _SHORTEST_PAUSE
    while not gone.is_set():
        busy = [outlet.forward() for outlet in outlets]
        if clock.is_due("note", _NOTE_SECONDS):
            for outlet in outlets:
                outlet.note()
        if clock.is_due("status", _STATUS_SECONDS):
            tell(_status(outlets, broker))
        pause = _SHORTEST_PAUSE if any(busy) else min(pause * 1.1, _LONGEST_PAUSE)
        if not any(busy):
            gone.wait(pause)
    try:
        for outlet in outlets:
            outlet.finish()
    except BrokerError as error:
        print(f"publish: {error}; it is sent again at the next start", file=sys.stderr)
    broker.close()


class _Clock:
    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        due = now - self._last.get(what, 0.0) >= seconds
        if due:
            self._last[what] = now
        return due


def _status(outlets: list[Outlet], broker: Broker) -> dict[str, Any]:
    return {
        "state": "running" if broker.connected else f"disconnected: {broker.problem}",
        "topics": [{"topic": o.topic, "messages": o.messages, "lag": o.lag} for o in outlets],
    }


if __name__ == "__main__":
    main()
