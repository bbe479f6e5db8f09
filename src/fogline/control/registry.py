"""What is known of all nodes, from what they published. No I/O and no clock: the time is passed in.

Times are those of hearing, so the clocks of the nodes do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fogline.common.errors import DataError
from fogline.control.announcements import Announcement, Status
from fogline.model.nodes import OFFLINE, ONLINE, SILENT, NodeView

SILENT_SECONDS = 8.0


@dataclass(slots=True)
class _Known:
    """One node: its last announcement, when that came true, and its last status."""

    announcement: Announcement
    since: float
    reported_at: float
    heard: float
    """When its last status came, or it came online."""
    ended: float | None = None
    """When another node of its instance announced that all of them are offline."""
    view: NodeView | None = None
    """As it was last seen, until it publishes something new."""

    def is_silent(self, now: float) -> bool:
        return self.reported_state == ONLINE and now - self.heard >= SILENT_SECONDS

    @property
    def reported_state(self) -> str:
        return self.announcement.state if self.ended is None else OFFLINE

    def state(self, now: float) -> str:
        return SILENT if self.is_silent(now) else self.reported_state

    def state_since(self, now: float) -> float:
        if self.is_silent(now):
            return self.heard + SILENT_SECONDS
        return self.since if self.ended is None else self.ended


class NodeRegistry:
    """Announcements and statuses in, views out. Not for several threads at once.

    A payload that is no announcement or status changes nothing and is counted in `bad`; an empty
    one, as brokers send it when a retained message is cleared, makes the node unknown.
    """

    def __init__(self) -> None:
        self.bad = 0
        self._nodes: dict[str, _Known] = {}
        self._statuses: dict[str, Status] = {}
        self._ends: dict[str, float] = {}
        """The instances of which all nodes are offline, and since when."""
        self._seen: dict[str, NodeView] | None = None
        """The views of now, until somebody publishes something new or falls silent."""
        self._seen_until = 0.0

    def note_announcement(self, name: str, payload: bytes, now: float) -> bool:
        """Whether views are different now."""
        self._seen = None
        if not payload:
            return self.forget(name, now)
        try:
            announcement = Announcement.decode(payload, name)
        except DataError:
            self.bad += 1
            return False
        return self._take_announcement(name, announcement, now)

    def note_status(self, name: str, payload: bytes, now: float) -> bool:
        """Whether views are different now, apart from `reported_at`."""
        self._seen = None
        if not payload:
            if name in self._nodes:
                self._nodes[name].view = None
            return self._statuses.pop(name, None) is not None
        try:
            statuses = Status.decode_all(payload, name)
        except DataError:
            self.bad += 1
            return False
        news = [self._take_status(of, status, now) for of, status in statuses.items()]
        return any(news)

    def through(self, name: str) -> str:
        """The node on whose topics it is asked; empty: its own."""
        known = self._nodes.get(name)
        return known.announcement.through if known else ""

    def forget(self, name: str, now: float) -> bool:
        """Whether the node was known; it is again when it announces itself."""
        self._seen = None
        self._statuses.pop(name, None)
        known = self._nodes.pop(name, None)
        if self._ends:
            self._note_ends(now)
        return known is not None

    def views(self, now: float) -> Mapping[str, NodeView]:
        """What has not changed is the same object as the last time."""
        if self._seen is None or now >= self._seen_until:
            self._seen = {name: self._seen_now(name, k, now) for name, k in self._nodes.items()}
            lively = (k.heard for k in self._nodes.values() if k.state(now) == ONLINE)
            self._seen_until = min(lively, default=math.inf) + SILENT_SECONDS
        return self._seen

    def states(self, now: float) -> dict[str, str]:
        return {name: view.state for name, view in self.views(now).items()}

    def _seen_now(self, name: str, known: _Known, now: float) -> NodeView:
        if known.view is None or known.view.state != known.state(now):
            known.view = self._view(name, known, now)
        return known.view

    def _take_announcement(self, name: str, announcement: Announcement, now: float) -> bool:
        known = self._nodes.get(name)
        if known is None:
            self._nodes[name] = _Known(announcement, now, now, now)
            self._note_end(announcement, now)
            return True
        before = known.announcement
        other = announcement.instance != before.instance
        if other and announcement.state == OFFLINE and before.state == ONLINE:
            # The last will of an earlier start, or of a rival: not of the one that is there.
            return False
        known.reported_at = now
        if other or announcement.state != before.state:
            known.since = known.heard = now
        known.announcement = before if announcement == before else announcement
        known.view = None
        self._note_end(announcement, now)
        return announcement != before

    def _note_end(self, announcement: Announcement, now: float) -> None:
        if announcement.everybody or self._ends:
            self._note_ends(now)

    def _note_ends(self, now: float) -> None:
        """Nodes that share a last will are offline for as long as it stands, in whatever order the
        broker delivers it and the announcements of before."""
        ends = {k.announcement.instance for k in self._nodes.values() if k.announcement.everybody}
        self._ends = {instance: self._ends.get(instance, now) for instance in ends}
        for known in self._nodes.values():
            ended = self._ends.get(known.announcement.instance)
            if known.ended is not None and ended is None:
                known.since = known.heard = now
            if known.ended != ended:
                known.ended, known.view = ended, None

    def _take_status(self, name: str, status: Status, now: float) -> bool:
        known, before = self._nodes.get(name), self._statuses.get(name)
        if known is None:
            self._statuses[name] = status
            return False
        known.view = None
        instance = known.announcement.instance
        if status.instance != instance:
            if before is None or before.instance != instance:
                self._statuses[name] = status
            return False
        self._statuses[name] = status
        was_silent = known.is_silent(now)
        if was_silent:
            known.since = now
        known.reported_at = known.heard = now
        return was_silent or before is None or _content(before) != _content(status)

    def _view(self, name: str, known: _Known, now: float) -> NodeView:
        status = self._statuses.get(name)
        if status is None or status.instance != known.announcement.instance:
            status = Status(0.0, known.announcement.instance)
        return NodeView(
            node=known.announcement.node,
            state=known.state(now),
            since=known.state_since(now),
            jobs=status.jobs,
            links=status.links,
            reported_at=known.reported_at,
            instance=known.announcement.instance,
            clean=known.announcement.clean,
            healthy=status.healthy,
        )


def _content(status: Status) -> tuple[object, ...]:
    return status.instance, status.jobs, status.links, status.healthy
