"""A node's side of the control broker: it tells that it is there and how, and does as asked.

The coordinator knows it as online from its birth message until the broker publishes its last will
or it says `gone` itself. The will may come although we are there: after a broken connection that
was repaired before the broker noticed. So a node listens to its own birth topic and contradicts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from fogline.broker import Message
from fogline.control import topics
from fogline.control.announcements import Birth, status_payload
from fogline.control.calls import Body
from fogline.control.connection import ControlOptions, Hooks
from fogline.control.payload import write_object
from fogline.control.peer import Identity, Peer
from fogline.control.rhythm import Beat, Rhythm
from fogline.control.rivals import Rivals, new_instance
from fogline.control.worker import Operation
from fogline.errors import DataError
from fogline.model.nodes import GONE, ONLINE, Node

LEASE_BIRTHS = 2.5
"""How many of its births a rival may miss before it counts as gone."""


class ControlledNode:
    """`start` once, then everything else from any thread, then `close`.

    `describe` and `status` are called regularly by one thread of the node, operations by another.
    `status` gives `jobs` and `links`; the rest of a status is added here. If `describe` or `status`
    raises, nothing is told in its place and `problem` says why. Operations are those given, and
    `describe`, which answers the status.

    The constructor raises `UsageError` when the address is none.
    """

    def __init__(
        self,
        url: str,
        describe: Callable[[], Node],
        operations: Mapping[str, Operation],
        status: Callable[[], dict[str, Any]],
        options: ControlOptions | None = None,
    ) -> None:
        options = options or ControlOptions()
        self.instance = new_instance()
        self._describe, self._status = describe, status
        self._node = describe()
        self._closing = threading.Event()
        self._rivals = Rivals(self.name, self.instance, LEASE_BIRTHS * options.birth_seconds)
        self._birth = Beat(self._tell_birth, options.birth_seconds)
        self._news = Beat(self._tell_status, options.status_seconds)
        self._rhythm = Rhythm(self._birth, self._news)
        self._peer = Peer(
            url,
            options.for_broker(f"fog{self.instance}", self._birth_message(GONE)),
            Identity(self.name, topics.do(self.name), self._in_charge),
            [topics.birth(self.name)],
            {"describe": lambda body: self._full_status(), **operations},
            Hooks(self._heard, self.announce),
        )

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def connected(self) -> bool:
        return self._peer.connected

    @property
    def problem(self) -> str:
        """What keeps the coordinator from knowing us as we are; empty when nothing does."""
        return self._peer.problem or self._rivals.problem(time.monotonic()) or self._rhythm.problem

    def start(self) -> None:
        """Returns at once; the connection is made in the background, for as long as it takes."""
        self._peer.start()
        self._rhythm.start()

    def changed(self) -> None:
        """The status is different: it is told at once. Calls in quick succession count as one."""
        self._rhythm.hurry(self._news)

    def announce(self) -> None:
        """What describes the node is different: its birth is told anew, at once."""
        self._rhythm.hurry(self._birth, self._news)

    def call(self, op: str, body: Mapping[str, Any], timeout: float) -> Body:
        """Asks the coordinator and waits for the answer.

        Raises `ControlError` with what it says when it refuses, `NoAnswerError` when it does not
        answer in time.
        """
        return self._peer.ask(topics.COORDINATOR, op, body, timeout).result()

    def close(self) -> None:
        """Announces that the node is gone, if the broker is there, and ends."""
        quiet = self._closing.is_set() or not self._in_charge()
        self._closing.set()
        self._rhythm.stop()
        self._peer.close(None if quiet else self._birth_message(GONE, clean=True))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ── what it tells ────────────────────────────────────────────────────────────────────────────

    def _tell_birth(self) -> None:
        if not self._may_speak():
            return
        described = self._describe()
        if described.name != self.name:
            raise DataError(f"node {self.name} cannot change its name to {described.name}")
        self._node = described
        self._tell(self._birth_message(ONLINE))

    def _tell_status(self) -> None:
        if self._may_speak():
            payload = write_object(self._full_status())
            self._tell(Message(topics.status(self.name), payload, retain=True))

    def _tell(self, message: Message) -> None:
        # Once more: what is told may have taken a while to find out.
        if self._may_speak():
            self._peer.publish(message)

    def _may_speak(self) -> bool:
        return self.connected and not self._closing.is_set() and self._in_charge()

    def _in_charge(self) -> bool:
        return not self._rivals.yields(time.monotonic())

    def _birth_message(self, state: str, clean: bool = False) -> Message:
        payload = Birth(state, self.instance, self._node, clean).encode()
        return Message(topics.birth(self.name), payload, retain=True)

    def _full_status(self) -> dict[str, Any]:
        return status_payload(time.time(), self.instance, self._status())

    # ── what it hears ────────────────────────────────────────────────────────────────────────────

    def _heard(self, message: Message) -> None:
        """Its birth topic says something: where that is not that we are online, it is put right."""
        try:
            birth = Birth.decode(message.payload, self.name)
        except DataError:
            self.announce()
            return
        if birth.state == ONLINE and (birth.instance == self.instance or message.retain):
            return
        self._rivals.note(birth, time.monotonic())
        if self._in_charge():
            self.announce()
