"""Hears at the control broker which nodes have a store, and where."""

from __future__ import annotations

import secrets

from fogline.broker import Message
from fogline.common.errors import DataError
from fogline.control import topics
from fogline.control.announcements import Announcement
from fogline.control.connection import ControlConnection, ControlOptions, Hooks
from fogline.fabric.membership.directory import Directory
from fogline.fabric.membership.options import FabricOptions


class Discovery:
    """`start` once, then `close`. The connection is made for as long as it takes.

    Raises `UsageError` when made with an address that is none. `bad` counts messages that are no
    announcement; they change nothing.
    """

    def __init__(self, directory: Directory, options: FabricOptions) -> None:
        self.bad = 0
        self._directory = directory
        name = f"fabric{secrets.token_hex(8)}"
        broker = ControlOptions(tls=options.tls).for_broker(name)
        hooks = Hooks(received=self.handle_message)
        self._connection = ControlConnection(options.control, broker, [topics.ANNOUNCEMENTS], hooks)

    @property
    def problem(self) -> str:
        """Why there is no connection; empty while there is one."""
        return self._connection.problem

    def start(self) -> None:
        self._connection.start()

    def close(self) -> None:
        self._connection.close()

    def handle_message(self, message: Message) -> None:
        name, kind = topics.parse_topic(message.topic)
        if not name or kind != topics.ANNOUNCEMENT:
            return
        if not message.payload:
            self._directory.forget(name)
            return
        try:
            announcement = Announcement.decode(message.payload, name)
        except DataError:
            self.bad += 1
            return
        if announcement.node.store:
            self._directory.note_announcement(name, announcement.node.store)
