"""The routes of a job: its output on the way to other brokers, each with a position of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from fogline.broker import Broker, BrokerError
from fogline.links.sender import Outlet, batched, renamed
from fogline.links.starting import END, START
from fogline.log import LogError, SiteLog, forget_reader
from fogline.model.jobs import LINK, Assignment, Route
from fogline.model.sites import out_log

_NOTE_SECONDS = 0.5


class Routes:
    """All routes of one job, for one thread at a time."""

    def __init__(self, logs: SiteLog, connect: Callable[[Route], Broker]) -> None:
        self._logs = logs
        self._connect = connect
        self._outlets: list[tuple[Route, Outlet]] = []
        self._log = ""
        self._due = 0.0

    def follow(self, assignment: Assignment, new: bool) -> None:
        """Makes the routes those of the assignment. A route is known by its index: one that leads
        elsewhere goes on where the old one stopped, an added one begins at the end of the log,
        but at its start where the job is new."""
        self._log = out_log(assignment.job)
        old = {index: outlet for index, (_, outlet) in enumerate(self._outlets)}
        kept = [route for route, _ in self._outlets]
        made = []
        for index, route in enumerate(assignment.routes):
            if index < len(kept) and kept[index] == route:
                made.append((route, old.pop(index)))
                continue
            if index in old:
                _let_go(old.pop(index))
            made.append((route, self._outlet(index, route, START if new else END)))
        for index, outlet in old.items():
            _let_go(outlet)
            forget_reader(self._logs.folder(self._log), f"route-{index}")
        self._outlets = made

    def _outlet(self, index: int, route: Route, begin: str) -> Outlet:
        folder = self._logs.folder(self._log)
        pack = batched(folder, route.topic) if route.mode == LINK else renamed(route.topic)
        broker = self._connect(route)
        return Outlet(self._log, self._logs, broker, pack, f"route-{index}", begin)

    def step(self) -> bool:
        """Sends what is there, without waiting; whether there was anything."""
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

    def states(self) -> list[dict[str, object]]:
        return [
            {"topic": r.topic, "node": r.node, "state": o.state, "sent": o.messages, "lag": o.lag}
            for r, o in self._outlets
        ]

    def finish(self, seconds: float) -> None:
        """Waits a little for what is under way; what is not confirmed is sent again later."""
        for _, outlet in self._outlets:
            with contextlib.suppress(BrokerError, LogError):
                outlet.finish(seconds)
            outlet.close()
        self._outlets = []


def _let_go(outlet: Outlet) -> None:
    outlet.note()
    outlet.close()
