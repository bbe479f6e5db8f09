"""Two nodes of one name: who of them gives way. No I/O and no clock: the time is passed in.

The one that was started first stays, so a node started by mistake does not disturb one that works.
Only what is heard afresh counts: a retained announcement may be that of a process that died with
the broker.
"""

from __future__ import annotations

import secrets
import time

from fogline.control.announcements import Announcement
from fogline.model.nodes import ONLINE


def new_instance() -> str:
    """A new name for this start of a process; later ones sort behind earlier ones."""
    return f"{time.time_ns():016x}{secrets.token_hex(3)}"


class Rivals:
    """What one node knows of others with its name; they count for `lease` seconds."""

    def __init__(self, name: str, instance: str, lease: float) -> None:
        self._name = name
        self._instance = instance
        self._lease = lease
        self._other = ""
        self._heard = 0.0

    def note(self, announcement: Announcement, now: float) -> None:
        """An announcement of our name was heard, just now."""
        if announcement.instance == self._instance:
            return
        if announcement.state == ONLINE:
            if not self._present(now) or announcement.instance <= self._other:
                self._other, self._heard = announcement.instance, now
        elif announcement.instance == self._other:
            self._other = ""

    def yields(self, now: float) -> bool:
        """Whether we have to be quiet: the other one was there before us."""
        return self._present(now) and self._other < self._instance

    def problem(self, now: float) -> str:
        if not self._present(now):
            return ""
        text = f"another node is called {self._name}"
        return f"{text}: this one keeps quiet" if self.yields(now) else text

    def _present(self, now: float) -> bool:
        return bool(self._other) and now - self._heard < self._lease
