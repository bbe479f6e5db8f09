"""The publishing process: records from the site's logs to brokers, in order.

Results go to the site's own broker, record by record, each on its own topic. Routes take what a job
writes to a topic at this or another broker, record by record or as a link in batches. Every broker
has one connection, made in the background: an unreachable one holds up only what is for it.

Routes come and go while it runs. One that is redirected goes on elsewhere when the broker it was
sent to has confirmed what was under way. If that takes too long, this is sent to the new one, and
the old connection is given up, so that the rest of it is not sent there later.
"""

from __future__ import annotations

import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

from fogline.agent.broker.connections import Connection, broker_options
from fogline.agent.contracts.publish import (
    OutgoingRoute,
    PublishConfig,
    PublishStatus,
    RouteStatus,
    TopicStatus,
)
from fogline.broker import BrokerError
from fogline.common.errors import FoglineError
from fogline.common.process.parent import Parent
from fogline.links.sender import Outlet, Packing, pack_batches, pack_renamed, plain
from fogline.log import Claim, LogNotifier, SiteLog, claim_reader
from fogline.model.jobs import LINK, PUBLISH

_NOTE_SECONDS = 0.2
_STATUS_SECONDS = 0.5
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.04
_GATHER_SECONDS = 0.003
"""While records come: a few at a time cost little more than one."""
_DRAIN_SECONDS = 3.0
_CONFIRM_SECONDS = 10.0


class Publishing:
    """All that is sent. For one thread: `change` now and then, `step` again and again."""

    def __init__(self, config: PublishConfig) -> None:
        self.revision = 0
        self.in_force = False
        self._logs = SiteLog(Path(config.logs))
        self._outlets: dict[OutgoingRoute, Outlet] = {}
        self._leaving: dict[OutgoingRoute, tuple[Outlet, float]] = {}
        self._claims: dict[tuple[str, str], Claim] = {}
        """Of routes: the ingest process may be copying what they are to send."""
        self._connections: dict[str, Connection] = {}
        self.change(config)

    def change(self, config: PublishConfig) -> None:
        """From now on this is to be sent, and nothing else."""
        plain_topics = [OutgoingRoute(topic, config.broker) for topic in config.topics]
        self._config = config
        self._desired = dict.fromkeys([*plain_topics, *config.routes])
        self.in_force = False
        give_up = time.monotonic() + _DRAIN_SECONDS
        for route in [route for route in self._outlets if route not in self._desired]:
            self._leaving[route] = (self._outlets.pop(route), give_up)

    def step(self) -> bool:
        """Sends what is there; whether there was anything."""
        if not self.in_force:
            self._arrange()
        busy = [outlet.forward() for outlet in self._outlets.values()]
        return any(busy)

    @property
    def behind(self) -> bool:
        """Whether there is enough to go on at once."""
        return any(outlet.behind for outlet in self._outlets.values())

    @property
    def resting(self) -> bool:
        """Whether there is nothing to do until one of `folders` grows."""
        return self.in_force and all(outlet.resting for outlet in self._outlets.values())

    def folders(self) -> list[Path]:
        """The logs that are sent."""
        return [self._logs.folder(route.log) for route in self._outlets]

    def note(self) -> None:
        for outlet in self._outlets.values():
            outlet.note()

    def finish(self) -> None:
        """Waits for what is under way, then closes everything."""
        deadline = time.monotonic() + _CONFIRM_SECONDS
        leaving = [outlet for outlet, _ in self._leaving.values()]
        for outlet in [*self._outlets.values(), *leaving]:
            try:
                outlet.finish(max(0.0, deadline - time.monotonic()))
            except BrokerError as error:
                print(f"publish: {error}; it is sent again at the next start", file=sys.stderr)
            outlet.close()
        for claim in self._claims.values():
            claim.release()
        for connection in self._connections.values():
            connection.close()

    def status(self) -> PublishStatus:
        topics = [route for route in self._desired if not route.mode]
        routes = [route for route in self._desired if route.mode]
        return PublishStatus(
            self._own_state(topics),
            self.revision,
            topics=tuple(self._topic_status(route) for route in topics),
            routes=tuple(self._route_status(route) for route in routes),
        )

    def _own_state(self, topics: list[OutgoingRoute]) -> str:
        """That of the site's own broker, and of what is to go there and does not."""
        own = self._connections.get(self._config.broker)
        if own is not None and own.state != "running":
            return own.state
        outlets = [self._outlets[route] for route in topics if route in self._outlets]
        return next((outlet.problem for outlet in outlets if outlet.problem), "running")

    def _topic_status(self, route: OutgoingRoute) -> TopicStatus:
        return TopicStatus(*self._measure(route), topic=route.log)

    def _route_status(self, route: OutgoingRoute) -> RouteStatus:
        return RouteStatus(
            *self._measure(route),
            log=route.log,
            reader=route.reader,
            mode=route.mode,
            topic=route.topic,
        )

    def _measure(self, route: OutgoingRoute) -> tuple[str, int, int, int, int, str]:
        """The fields of a `SendingStatus`."""
        outlet = self._outlets.get(route)
        if outlet is None:
            return "waiting for what is under way elsewhere", 0, 0, 0, 0, ""
        state = outlet.problem or self._connections[route.broker].state
        counts = outlet.messages, outlet.lag, outlet.left_out, outlet.refused
        return state, *counts, outlet.trouble

    # ── from one configuration to the next ─────────────────────────────────────────────────────

    def _arrange(self) -> None:
        """A step towards the desired state."""
        for route in list(self._leaving):
            self._stop_sending(route)
        held = {(route.log, route.reader) for route in self._leaving}
        for route in self._desired:
            free = route not in self._outlets and (route.log, route.reader) not in held
            if free and self._may_read(route):
                self._outlets[route] = self._open(route)
        self._close_connections()
        if len(self._outlets) == len(self._desired) and not self._leaving:
            self.revision = self._config.revision
            self.in_force = True

    def _stop_sending(self, route: OutgoingRoute) -> None:
        """Closes an outlet once nothing of it is under way, or will not be for long."""
        outlet, give_up = self._leaving[route]
        drained = outlet.settle()
        if drained or time.monotonic() >= give_up:
            outlet.note()
            outlet.close()
            del self._leaving[route]
            if claim := self._claims.pop((route.log, route.reader), None):
                claim.release()
            if not drained:
                self._reconnect(route.broker)

    def _may_read(self, route: OutgoingRoute) -> bool:
        if route.mode and (claim := claim_reader(self._logs.folder(route.log), route.reader)):
            self._claims[route.log, route.reader] = claim
        return not route.mode or (route.log, route.reader) in self._claims

    def _open(self, route: OutgoingRoute) -> Outlet:
        if route.broker not in self._connections:
            self._connections[route.broker] = self._connect(route.broker)
        broker = self._connections[route.broker].broker
        pack = _make_packing(route, self._logs)
        return Outlet(route.log, self._logs, broker, pack, route.reader, route.begin)

    def _connect(self, url: str) -> Connection:
        client = self._config.client
        if url != self._config.broker:
            client += f"-{sha256(url.encode()).hexdigest()[:12]}"
        return Connection(url, broker_options(client, self._config.tls))

    def _reconnect(self, url: str) -> None:
        """What waits in the old connection must not be sent any more; others send theirs again."""
        old = self._connections.pop(url)
        used = [(r, outlet) for r, outlet in self._outlets.items() if r.broker == url]
        leaving = [(r, outlet) for r, (outlet, _) in self._leaving.items() if r.broker == url]
        _close(old)
        if used or leaving:
            self._connections[url] = self._connect(url)
        for _, outlet in [*used, *leaving]:
            outlet.move(self._connections[url].broker)

    def _close_connections(self) -> None:
        used = {route.broker for route in (*self._outlets, *self._leaving)}
        for url in [url for url in self._connections if url not in used]:
            _close(self._connections.pop(url))


def _make_packing(route: OutgoingRoute, logs: SiteLog) -> Packing:
    if route.mode == LINK:
        return pack_batches(logs.folder(route.log), route.topic)
    return pack_renamed(route.topic) if route.mode == PUBLISH else plain


def _close(connection: Connection) -> None:
    """Not waited for: others have something to send meanwhile."""
    threading.Thread(target=connection.close, daemon=True).start()


def main() -> None:
    parent = Parent(PublishConfig)
    try:
        run(parent)
    except FoglineError as error:
        sys.exit(f"publish: {error}")


def run(parent: Parent[PublishConfig]) -> None:
    publishing = Publishing(parent.config)
    notifier = LogNotifier(parent.config.same_machine)
    parent.call = notifier.notify
    clock = _Clock()
    pause = _SHORTEST_PAUSE
    while not parent.ended.is_set():
        if (config := parent.take_change()) is not None:
            publishing.change(config)
        waiting = not publishing.in_force
        busy = publishing.step()
        if waiting:
            notifier.watch(publishing.folders())
        if clock.is_due("note", _NOTE_SECONDS):
            publishing.note()
        if clock.is_due("status", _STATUS_SECONDS) or (waiting and publishing.in_force):
            parent.report_status(publishing.status())
        pause = _SHORTEST_PAUSE if busy else min(pause * 1.1, _LONGEST_PAUSE)
        if busy and not publishing.behind:
            parent.ended.wait(_GATHER_SECONDS)
        elif not busy and not waiting and publishing.resting:
            notifier.wait(_STATUS_SECONDS)
        elif not busy:
            parent.ended.wait(pause)
    publishing.finish()


class _Clock:
    """When something was done last; what never was is due, however short the machine is up."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        due = what not in self._last or now - self._last[what] >= seconds
        if due:
            self._last[what] = now
        return due


if __name__ == "__main__":
    main()
