"""The broker's side of the broker in memory: sessions, subscriptions, retained messages.

It behaves as an MQTT broker does, and can be made to lose connections or to be down. Everything
here is called with the hub's `changed` condition held, except where a method says otherwise.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from fogline.broker.errors import BrokerRefusedError
from fogline.broker.interface import Message
from fogline.broker.topics import matches, split_share

MOST_QUEUED = 1_000_000


class Client(Protocol):
    """What the hub reports to its clients."""

    def connection_lost(self, reason: str) -> None: ...
    def reconnect(self) -> None: ...


class MemorySession:
    """What the hub knows of one client id, whether it is connected or offline."""

    def __init__(self, client_id: str, persistent: bool) -> None:
        self.client_id = client_id
        self.persistent = persistent
        self.client: Client | None = None
        self.will: Message | None = None
        self.filters: dict[str, int] = {}
        self.queue: deque[Message] = deque()
        self.unacknowledged: dict[int, Message] = {}
        self._packet_ids = itertools.count(1)

    @property
    def online(self) -> bool:
        return self.client is not None

    def add(self, message: Message) -> None:
        """Queues a message; what nobody may lose is refused when there is no space."""
        if message.qos == 0 and not self.online:
            return
        if len(self.queue) < MOST_QUEUED:
            self.queue.append(message)
        elif message.qos:
            raise BrokerRefusedError(f"the queue of client {self.client_id!r} is full")

    def take(self, most: int, window: int) -> tuple[list[Message], list[int]]:
        """The next messages and the packet ids by which they are acknowledged."""
        messages: list[Message] = []
        packet_ids: list[int] = []
        while self.queue and len(messages) < most and len(self.unacknowledged) < window:
            message = self.queue.popleft()
            messages.append(message)
            if message.qos:
                packet_id = next(self._packet_ids)
                self.unacknowledged[packet_id] = message
                packet_ids.append(packet_id)
        return messages, packet_ids

    def requeue(self) -> None:
        """What was delivered and not acknowledged is delivered again, first and marked."""
        again = [message._replace(dup=True) for message in self.unacknowledged.values()]
        self.queue = deque(message for message in self.queue if message.qos)
        self.queue.extendleft(reversed(again))
        self.unacknowledged.clear()


class Hub:
    """One broker in memory, shared by all clients that name it."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.up = True
        self._sessions: dict[str, MemorySession] = {}
        self._retained: dict[str, Message] = {}
        self._turns: dict[str, int] = {}
        self._names = itertools.count(1)
        self._offline: list[Client] = []

    # ── for tests; called without the condition held ─────────────────────────────────────────────

    def drop(self, client_id: str) -> None:
        """The client's connection breaks: its last will is published, and it comes back."""
        with self.changed:
            client = self._sessions[client_id].client
            if client is not None:
                self._lose(self._sessions[client_id], "the connection was dropped")
                client.reconnect()

    def stop(self) -> None:
        """The broker goes down; clients wait for it, persistent sessions stay."""
        with self.changed:
            self.up = False
            for session in [s for s in self._sessions.values() if s.online]:
                assert session.client is not None
                self._offline.append(session.client)
                self._lose(session, "the broker is down")

    def start(self) -> None:
        """The broker is back, and so are its clients."""
        with self.changed:
            self.up = True
            offline, self._offline = self._offline, []
            for client in offline:
                client.reconnect()

    # ── for clients ──────────────────────────────────────────────────────────────────────────────

    def new_name(self) -> str:
        return f"client-{next(self._names)}"

    def attach(
        self, client: Client, client_id: str, persistent: bool
    ) -> tuple[MemorySession, bool]:
        """The client's session, and whether it was there before; another holder loses it."""
        session = self._sessions.get(client_id)
        if session is not None and session.online:
            self._lose(session, "another client uses the same id")
            session = self._sessions.get(client_id)
        present = session is not None and persistent
        if session is None or not persistent:
            session = MemorySession(client_id, persistent)
        self._sessions[client_id] = session
        session.client = client
        return session, present

    def leave(self, client: Client, session: MemorySession) -> None:
        """A good-bye: no last will."""
        if client in self._offline:
            self._offline.remove(client)
        if session.client is client:
            session.client = session.will = None
            self._detach(session)

    def subscribe(
        self, session: MemorySession, pattern: str, qos: int, greeted: bool = False
    ) -> None:
        """`greeted`: it is not sent what is retained."""
        session.filters[pattern] = qos
        group, plain = split_share(pattern)
        if group is None and not greeted:
            for topic, message in self._retained.items():
                if matches(plain, topic):
                    session.add(message._replace(qos=min(qos, message.qos)))
        self.changed.notify_all()

    def route(self, message: Message) -> None:
        """Gives a message to everyone who has subscribed to it."""
        if message.retain:
            self._retained[message.topic] = message
            if not message.payload:
                del self._retained[message.topic]
        fresh = message._replace(retain=False, dup=False)
        for session, qos in list(self._receivers(message.topic)):
            session.add(fresh._replace(qos=min(qos, fresh.qos)))
        self.changed.notify_all()

    def _receivers(self, topic: str) -> Iterator[tuple[MemorySession, int]]:
        """Each session once, and of every sharing group one member, in turn."""
        shared: dict[str, list[MemorySession]] = {}
        for session in self._sessions.values():
            best = -1
            for pattern, qos in session.filters.items():
                group, plain = split_share(pattern)
                if not matches(plain, topic):
                    continue
                if group is None:
                    best = max(best, qos)
                else:
                    shared.setdefault(pattern, []).append(session)
            if best >= 0:
                yield session, best
        for pattern, members in shared.items():
            chosen = self._next_member(pattern, members)
            yield chosen, chosen.filters[pattern]

    def _next_member(self, pattern: str, members: list[MemorySession]) -> MemorySession:
        turn = self._turns[pattern] = self._turns.get(pattern, -1) + 1
        ready = [session for session in members if session.online] or members
        return ready[turn % len(ready)]

    def _lose(self, session: MemorySession, reason: str) -> None:
        client, will = session.client, session.will
        session.client = session.will = None
        self._detach(session)
        if client is not None:
            client.connection_lost(reason)
        if will is not None:
            self.route(will)

    def _detach(self, session: MemorySession) -> None:
        if session.persistent:
            session.requeue()
        else:
            self._sessions.pop(session.client_id, None)
        self.changed.notify_all()


_hubs: dict[str, Hub] = {}
_hubs_lock = threading.Lock()


def hub(name: str) -> Hub:
    """The hub of this name in this process; made when it is first asked for."""
    with _hubs_lock:
        return _hubs.setdefault(name, Hub())
