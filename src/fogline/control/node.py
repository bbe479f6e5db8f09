"""The nodes' side of the control broker: they announce themselves, report their status and do as
asked.

Most nodes have a connection of their own. Several nodes of one process may share one, with its few
threads: hundreds of threads would keep one another from running. A connection has one last will;
that of several nodes is about all of them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from fogline.broker import BrokerError, Message
from fogline.common.errors import DataError
from fogline.control import topics
from fogline.control.announcements import Announcement
from fogline.control.calls import Body
from fogline.control.connection import ControlOptions, Hooks
from fogline.control.peer import Peer, ServedTopic
from fogline.control.presence import Member, Presence, status_messages
from fogline.control.rhythm import Beat, Rhythm
from fogline.control.rivals import new_instance
from fogline.control.worker import OperationHandler, Operations
from fogline.model.nodes import Node


class ControlledNodes:
    """`start` once, then everything else from any thread, then `close`.

    If `describe` or `status` of a member raises, nothing is published in its place and `problem`
    says why. Operations are those given, and `describe`, which answers the status. `settle` is
    called once for all requests that were carried out together, before they are answered.

    The constructor raises `UsageError` when the address is none.
    """

    def __init__(
        self,
        url: str,
        members: Sequence[Member],
        options: ControlOptions | None = None,
        settle: Callable[[], None] | None = None,
    ) -> None:
        options = options or ControlOptions()
        self.instance = new_instance()
        self._closing = threading.Event()
        self._through = members[0].describe().name if len(members) > 1 else ""
        made = [Presence(one, self.instance, options, self._through) for one in members]
        self._presences = {presence.name: presence for presence in made}
        self._changed: set[str] = set()
        """Nodes whose status is to be published at once."""
        self._trouble = ""
        self._regular = Beat(self._look_at_all, options.status_seconds)
        self._urgent = Beat(self._look_at_changed, math.inf, due=math.inf)
        announcements = (one.announcement for one in made)
        self._rhythm = Rhythm(self._regular, self._urgent, *announcements, after=self._publish)
        self._peer = Peer(
            url,
            options.for_broker(f"fog{self.instance}", made[0].will(everybody=len(made) > 1)),
            made[0].name,
            {
                topics.do(presence.name): ServedTopic(_all(member, presence), presence.in_charge)
                for member, presence in zip(members, made, strict=True)
            },
            [topics.announcement(presence.name) for presence in made],
            Hooks(self._handle_message, self.announce),
            settle,
        )

    @property
    def connected(self) -> bool:
        return self._peer.connected

    @property
    def problem(self) -> str:
        """What keeps the coordinator from knowing us as we are; empty when nothing does."""
        problems = (presence.problem for presence in self._presences.values())
        return self._peer.problem or next(filter(None, problems), "") or self._trouble

    def start(self) -> None:
        """Returns at once; the connection is made in the background, for as long as it takes."""
        self._peer.start()
        self._rhythm.start()

    def publish_status(self, *names: str) -> None:
        """The status of these nodes is different: it is published at once. Calls in quick
        succession count as one."""
        self._changed.update(names)
        self._rhythm.hurry(self._urgent)

    def announce(self) -> None:
        """What describes the nodes is different: their announcements are published anew, at
        once."""
        self._announce(*self._presences.values())

    def close(self) -> None:
        """Announces that the nodes are offline, if the broker is there, and ends."""
        again = self._closing.is_set()
        self._closing.set()
        self._rhythm.stop()
        presences = () if again else self._presences.values()
        self._peer.close([one.farewell() for one in presences if one.in_charge()])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _announce(self, *presences: Presence) -> None:
        self._changed.update(one.name for one in presences)
        self._rhythm.hurry(self._urgent, *(one.announcement for one in presences))

    def _look_at_all(self) -> None:
        self._changed.clear()
        for one in self._presences.values():
            one.news.perform()

    def _look_at_changed(self) -> None:
        while self._changed:
            self._presences[self._changed.pop()].news.perform()

    def _pending_messages(self) -> list[Message]:
        """What the nodes have to publish. Their statuses go together, unless the one on whose topic
        that would be has to keep quiet."""
        found = {name: one.take_pending() for name, one in self._presences.items()}
        announcements = [
            announcement for announcement, _ in found.values() if announcement is not None
        ]
        statuses = {name: status for name, (_, status) in found.items() if status is not None}
        through = self._through
        if not statuses or (through and not self._presences[through].in_charge()):
            through = ""
        everybody = len(statuses) == len(found)
        return announcements + status_messages(self.instance, statuses, through, everybody)

    def _publish(self) -> None:
        """What all nodes have to publish at a time, at once."""
        messages = self._pending_messages()
        if messages and self.connected and not self._closing.is_set():
            try:
                self._peer.publish(*messages)
                self._trouble = ""
            except BrokerError as error:
                self._trouble = f"the status cannot be published: {error}"

    def _handle_message(self, message: Message) -> None:
        """Handles what an announcement topic says: where that is not that we are online, it is put
        right."""
        name, _ = topics.parse_topic(message.topic)
        presence = self._presences.get(name)
        if presence is None:
            return
        try:
            announcement = Announcement.decode(message.payload, name)
        except DataError:
            announcement = None
        about = (
            self._presences.values()
            if announcement is not None and announcement.everybody
            else [presence]
        )
        self._announce(*(one for one in about if one.contradicts(announcement, message.retain)))


class ControlledNode(ControlledNodes):
    """One node with a connection of its own."""

    def __init__(
        self,
        url: str,
        describe: Callable[[], Node],
        operations: Mapping[str, OperationHandler],
        status: Callable[[], dict[str, Any]],
        options: ControlOptions | None = None,
    ) -> None:
        super().__init__(url, [Member(describe, operations, status)], options)
        (self.name,) = self._presences

    def publish_own_status(self) -> None:
        """The status is different: it is published at once. Calls in quick succession count as
        one."""
        self.publish_status(self.name)

    def call(self, op: str, body: Mapping[str, Any], timeout: float) -> Body:
        """Asks the coordinator and waits for the answer.

        Raises `ControlError` with what it says when it refuses, `NoAnswerError` when it does not
        answer in time.
        """
        return self._peer.ask(topics.COORDINATOR, op, body, timeout).result()


def _all(member: Member, presence: Presence) -> Operations:
    return {"describe": lambda body: presence.full_status(), **member.operations}
