"""What one node tells of itself, and what it hears about itself.

The coordinator knows it as online from its birth message until the broker publishes a last will for
it or it says `gone` itself. The will may come although we are there: after a broken connection that
was repaired before the broker noticed. So a node listens to its own birth topic and contradicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fogline.broker import Message
from fogline.control import topics
from fogline.control.announcements import Birth, status_payload
from fogline.control.connection import ControlOptions
from fogline.control.payload import write_object
from fogline.control.rhythm import Beat
from fogline.control.rivals import Rivals
from fogline.control.worker import Operations
from fogline.errors import DataError
from fogline.model.nodes import GONE, ONLINE, Node

LEASE_BIRTHS = 2.5
"""How many of its births a rival may miss before it counts as gone."""


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
    """`birth` and `news` are to be beaten by somebody; `tell` publishes a message, or does not
    while there is nobody to tell."""

    def __init__(
        self,
        member: Member,
        instance: str,
        options: ControlOptions,
        tell: Callable[[Message], None],
    ) -> None:
        self._describe, self._status = member.describe, member.status
        self._instance = instance
        self._tell = tell
        self._node = member.describe()
        self._rivals = Rivals(self.name, instance, LEASE_BIRTHS * options.birth_seconds)
        self.birth = Beat(self._tell_birth, options.birth_seconds)
        self.news = Beat(self._tell_status, options.status_seconds)

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def problem(self) -> str:
        return self._rivals.problem(time.monotonic()) or self.birth.problem or self.news.problem

    def in_charge(self) -> bool:
        return not self._rivals.yields(time.monotonic())

    def farewell(self) -> Message:
        return self._said(Birth(GONE, self._instance, self._node, clean=True))

    def will(self, everybody: bool) -> Message:
        """That it is gone; with `everybody`, and all others of its instance too."""
        return self._said(Birth(GONE, self._instance, self._node, everybody=everybody))

    def full_status(self) -> dict[str, Any]:
        return status_payload(time.time(), self._instance, self._status())

    def contradicts(self, birth: Birth | None, retained: bool) -> bool:
        """Its birth topic says something, or nothing that can be read: whether that is to be put
        right."""
        if birth is None:
            return self.in_charge()
        if birth.state == ONLINE and (birth.instance == self._instance or retained):
            return False
        self._rivals.note(birth, time.monotonic())
        return self.in_charge()

    def _tell_birth(self) -> None:
        if not self.in_charge():
            return
        described = self._describe()
        if described.name != self.name:
            raise DataError(f"node {self.name} cannot change its name to {described.name}")
        self._node = described
        self._tell_if_in_charge(self._said(Birth(ONLINE, self._instance, described)))

    def _tell_status(self) -> None:
        if self.in_charge():
            payload = write_object(self.full_status())
            # The next one comes soon: nobody needs to confirm it.
            told = Message(topics.status(self.name), payload, qos=0, retain=True)
            self._tell_if_in_charge(told)

    def _tell_if_in_charge(self, message: Message) -> None:
        # Once more: what is told may have taken a while to find out.
        if self.in_charge():
            self._tell(message)

    def _said(self, birth: Birth) -> Message:
        return Message(topics.birth(self.name), birth.encode(), retain=True)
