"""One face for the control brokers under test, and the nodes and coordinators made at them."""

from __future__ import annotations

import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fogline.broker import Broker, Message, open_broker
from fogline.broker.memory import hub
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.control import (
    ControlClient,
    ControlledNode,
    ControlledNodes,
    ControlOptions,
    Member,
    OperationHandler,
)
from fogline.model.nodes import ONLINE, Node, NodeView
from tests.waiting import PATIENCE, wait_for

SECONDS = 20.0
QUICK = ControlOptions(retry_longest=0.3)


def eventually(condition: Callable[[], object]) -> None:
    """Waits until something holds; fails when it takes too long."""
    wait_for(condition, SECONDS)


def site(name: str, **more: Any) -> Node:
    return Node(name, "site", **more)


def nothing(*arguments: object) -> dict[str, Any]:
    return {}


def echo(body: dict[str, Any]) -> dict[str, Any]:
    return body


class Counted:
    """How often something was called."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.count += 1


class World(ABC):
    """A control broker; everything that was made at it is closed at the end."""

    def __init__(self) -> None:
        self._made: list[ControlledNodes | ControlClient | Broker] = []

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def cut(self, node: ControlledNodes | ControlClient) -> None:
        """Breaks its connection without a good-bye; it comes back by itself."""

    @abstractmethod
    def crash(self) -> None:
        """The broker ends at once and forgets everything."""

    @abstractmethod
    def start(self) -> None: ...

    def node(
        self,
        node: Node | Callable[[], Node],
        operations: Mapping[str, OperationHandler] | None = None,
        status: Callable[[], dict[str, Any]] = nothing,
        options: ControlOptions = QUICK,
    ) -> ControlledNode:
        describe = (lambda: node) if isinstance(node, Node) else node
        made = ControlledNode(self.url, describe, operations or {"echo": echo}, status, options)
        made.start()
        self._made.append(made)
        return made

    def nodes(
        self, members: Sequence[Member], settle: Callable[[], None] | None = None
    ) -> ControlledNodes:
        made = ControlledNodes(self.url, members, QUICK, settle)
        made.start()
        self._made.append(made)
        return made

    def coordinator(
        self,
        operations: Mapping[str, OperationHandler] | None = None,
        on_change: Callable[[], None] = lambda: None,
        name: str = "coordinator",
    ) -> ControlClient:
        made = ControlClient(self.url, operations or {}, on_change, name, QUICK)
        made.start()
        self._made.append(made)
        return made

    def client(self, *filters: str) -> Broker:
        broker = open_broker(self.url)
        broker.connect()
        for pattern in filters:
            broker.subscribe(pattern)
        self._made.append(broker)
        return broker

    def close(self) -> None:
        for made in reversed(self._made):
            made.close()


class MemoryWorld(World):
    def __init__(self) -> None:
        super().__init__()
        self._name = uuid.uuid4().hex

    @property
    def url(self) -> str:
        return f"memory://{self._name}"

    def cut(self, node: ControlledNodes | ControlClient) -> None:
        hub(self._name).drop(broker_of(node)._client_id)  # type: ignore[attr-defined]

    def crash(self) -> None:
        hub(self._name).stop()
        hub(self._name)._retained.clear()

    def start(self) -> None:
        hub(self._name).start()


class MqttWorld(World):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.mosquitto = Mosquitto(folder, MosquittoOptions(save_after=0)).start()

    @property
    def url(self) -> str:
        return self.mosquitto.url

    def cut(self, node: ControlledNodes | ControlClient) -> None:
        broker_of(node)._link._client.buffered.abort()  # type: ignore[attr-defined]

    def crash(self) -> None:
        self.mosquitto.kill()

    def start(self) -> None:
        self.mosquitto.start()

    def close(self) -> None:
        super().close()
        self.mosquitto.stop()


def broker_of(side: ControlledNodes | ControlClient) -> Broker:
    return side._peer._connection._broker


def publish(broker: Broker, topic: str, payload: bytes, retain: bool = False) -> None:
    broker.publish([Message(topic, payload, retain=retain)]).wait(SECONDS)


def heard(broker: Broker, count: int) -> list[Message]:
    """At least `count` messages."""
    found: list[Message] = []
    deadline = time.monotonic() + SECONDS * PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        batch = broker.receive(timeout=0.1)
        found += batch
        broker.acknowledge(batch)
    return found


def view_of(coordinator: ControlClient, name: str) -> NodeView | None:
    return coordinator.views().get(name)


def state_of(coordinator: ControlClient, name: str) -> str:
    view = view_of(coordinator, name)
    return view.state if view else ""


def all_online(coordinator: ControlClient, *names: str) -> None:
    """Waits until these nodes can be asked: a request to one that is not there yet is lost."""
    eventually(lambda: all(state_of(coordinator, name) == ONLINE for name in names))
