"""The routes of a job: its output on the way to other brokers, each with a position of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from fogline.broker import Broker, BrokerError
from fogline.links.sender import Outlet, pack_batches, pack_renamed
from fogline.links.start_position import END, START
from fogline.log import LogError, SiteLog, forget_reader
from fogline.model.jobs import LINK, Assignment, Route
from fogline.model.sites import out_log

_NOTE_SECONDS = 0.5


class Routes:
    """All routes of one job, for one thread at a time.

    A route is known by its index in the job. As long as the job has no output there is no log and
    nothing to send, and so no position: a route without one, of a job that starts or is started
    again, begins at the start of the log, because the log was made while the route was there.
    """

    def __init__(
        self, assignment: Assignment, logs: SiteLog, connect: Callable[[Route], Broker]
    ) -> None:
        self._log = out_log(assignment.job)
        self._logs = logs
        self._connect = connect
        self._routes = self._connected(assignment.routes)
        self._outlets: list[tuple[Route, Outlet]] = []
        self._due = 0.0

    @property
    def _folder(self) -> Path:
        return self._logs.folder(self._log)

    def follow(self, assignment: Assignment) -> None:
        """Makes the routes those of the assignment: one that leads elsewhere goes on where the old
        one stopped, an added one begins at the end of the log."""
        if self._routes == assignment.routes:
            return
        before, self._routes = self._routes, self._connected(assignment.routes)
        if not self._folder.exists():
            return
        if not self._outlets:
            self._make(before, START)
        self._make(self._routes, END)

    def _connected(self, routes: Iterable[Route]) -> tuple[Route, ...]:
        """The routes, and connections for them on their way."""
        made = tuple(routes)
        for route in made:
            self._connect(route)
        return made

    def _make(self, routes: Iterable[Route], begin: str) -> None:
        kept = [route for route, _ in self._outlets]
        old = {index: outlet for index, (_, outlet) in enumerate(self._outlets)}
        made = []
        for index, route in enumerate(routes):
            if index < len(kept) and kept[index] == route:
                made.append((route, old.pop(index)))
                continue
            if index in old:
                _stop_sending(old.pop(index))
            made.append((route, self._outlet(index, route, begin)))
        for index, outlet in old.items():
            _stop_sending(outlet)
            forget_reader(self._folder, f"route-{index}")
        self._outlets = made

    def _outlet(self, index: int, route: Route, begin: str) -> Outlet:
        pack = (
            pack_batches(self._folder, route.topic)
            if route.mode == LINK
            else pack_renamed(route.topic)
        )
        broker = self._connect(route)
        return Outlet(self._log, self._logs, broker, pack, f"route-{index}", begin)

    def step(self, has_output: bool) -> bool:
        """Sends what is there, without waiting; whether there was anything."""
        if not has_output:
            return False
        if len(self._outlets) < len(self._routes):
            self._make(self._routes, START)
        busy = [outlet.forward() for _, outlet in self._outlets]
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _NOTE_SECONDS
            for _, outlet in self._outlets:
                outlet.note()
        return any(busy)

    @property
    def lag(self) -> int:
        """Bytes that the slowest route still has to send."""
        return max((outlet.lag for _, outlet in self._outlets), default=0)

    @property
    def done(self) -> bool:
        """Whether everything in the log is confirmed by whom it is for."""
        return len(self._outlets) == len(self._routes) and self.lag == 0

    def states(self) -> list[dict[str, object]]:
        if len(self._outlets) == len(self._routes):
            return [
                _describe_route(route, outlet.state, outlet.messages, outlet.lag)
                for route, outlet in self._outlets
            ]
        return [_describe_route(route, self._state(route)) for route in self._routes]

    def _state(self, route: Route) -> str:
        broker = self._connect(route)
        return "running" if broker.connected else f"disconnected: {broker.problem}"

    def finish(self, seconds: float) -> None:
        """Waits a little for what is under way; what is not confirmed is sent again later."""
        for _, outlet in self._outlets:
            with contextlib.suppress(BrokerError, LogError):
                outlet.finish(seconds)
            outlet.close()
        self._outlets = []


def _stop_sending(outlet: Outlet) -> None:
    outlet.note()
    outlet.close()


def _describe_route(route: Route, state: str, sent: int = 0, lag: int = 0) -> dict[str, object]:
    return {"topic": route.topic, "node": route.node, "state": state, "sent": sent, "lag": lag}
