"""What one node publishes about itself, and what it hears about itself.

The coordinator knows it as online from its announcement until the broker publishes a last will for
it or it announces `gone` itself. The will may come although we are there: after a broken connection
that was repaired before the broker noticed. So a node listens to its own announcement topic and
contradicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fogline.broker import Message
from fogline.common.errors import DataError
from fogline.control import topics
from fogline.control.announcements import Announcement, status_payload, statuses_payload
from fogline.control.connection import ControlOptions
from fogline.control.payload import write_object
from fogline.control.rhythm import Beat
from fogline.control.rivals import Rivals
from fogline.control.worker import Operations
from fogline.model.nodes import OFFLINE, ONLINE, Node

LEASE_ANNOUNCEMENTS = 2.5
"""How many announcements a rival may miss before it counts as offline."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node, as those see it who keep it in touch.

    `describe` and `status` are called regularly by one thread, operations by another. `status`
    gives `jobs` and `links`; the rest of a status is added.
    """

    describe: Callable[[], Node]
    operations: Operations
    status: Callable[[], dict[str, Any]]


class Presence:
    """`announcement` and `news` are to be beaten by somebody, who takes with `take_pending` what is
    to be published. `through`: the node on whose topics it is asked, where that is not its own."""

    def __init__(
        self,
        member: Member,
        instance: str,
        options: ControlOptions,
        through: str = "",
    ) -> None:
        self._describe, self._status = member.describe, member.status
        self._instance = instance
        self._through = through
        self._node = member.describe()
        self._said: Message | None = None
        self._new_status: dict[str, Any] | None = None
        self._rivals = Rivals(
            self.name, instance, LEASE_ANNOUNCEMENTS * options.announcement_seconds
        )
        self.announcement = Beat(self._make_announcement, options.announcement_seconds)
        self.news = Beat(self._update_status, options.status_seconds)

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def problem(self) -> str:
        return (
            self._rivals.problem(time.monotonic()) or self.announcement.problem or self.news.problem
        )

    def in_charge(self) -> bool:
        return not self._rivals.yields(time.monotonic())

    def farewell(self) -> Message:
        return self._message(Announcement(OFFLINE, self._instance, self._node, clean=True))

    def will(self, everybody: bool) -> Message:
        """That it is offline; with `everybody`, and all others of its instance too."""
        return self._message(Announcement(OFFLINE, self._instance, self._node, everybody=everybody))

    def take_pending(self) -> tuple[Message | None, dict[str, Any] | None]:
        """Its announcement and its status, if they were found out since the last time."""
        said, new_status = self._said, self._new_status
        if said is None and new_status is None:
            return None, None
        self._said = self._new_status = None
        # Once more: what is published may have taken a while to find out.
        return (said, new_status) if self.in_charge() else (None, None)

    def full_status(self) -> dict[str, Any]:
        return status_payload(time.time(), self._instance, self._status())

    def contradicts(self, announcement: Announcement | None, retained: bool) -> bool:
        """Its announcement topic says something, or nothing that can be read: whether that is to be
        put right."""
        if announcement is None:
            return self.in_charge()
        if announcement.state == ONLINE and (announcement.instance == self._instance or retained):
            return False
        self._rivals.note(announcement, time.monotonic())
        return self.in_charge()

    def _make_announcement(self) -> None:
        if not self.in_charge():
            return
        described = self._describe()
        if described.name != self.name:
            raise DataError(f"node {self.name} cannot change its name to {described.name}")
        self._node = described
        announcement = Announcement(ONLINE, self._instance, described, through=self._through)
        self._said = self._message(announcement)

    def _update_status(self) -> None:
        if self.in_charge():
            self._new_status = self._status()

    def _message(self, announcement: Announcement) -> Message:
        return Message(topics.announcement(self.name), announcement.encode(), retain=True)


def status_messages(
    instance: str, statuses: Mapping[str, Mapping[str, Any]], through: str, everybody: bool
) -> list[Message]:
    """The statuses of these nodes, those of several on the topic of one. What is not of everybody
    there is not retained: somebody who comes later hears of all."""
    now = time.time()
    if through:
        payload = write_object(statuses_payload(now, instance, statuses))
        return [_status_message(through, payload, retain=everybody)]
    return [
        _status_message(name, write_object(status_payload(now, instance, of)), retain=True)
        for name, of in statuses.items()
    ]


def _status_message(node: str, payload: bytes, retain: bool) -> Message:
    # The next one comes soon: nobody needs to confirm it.
    return Message(topics.status(node), payload, qos=0, retain=retain)
