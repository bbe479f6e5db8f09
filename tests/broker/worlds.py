"""One face for the brokers under test: open clients, break connections, stop and start."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fogline.broker import Broker, BrokerOptions, Message, open_broker
from fogline.broker.memory import hub
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from tests.waiting import PATIENCE, wait_for

SECONDS = 15.0


def eventually(condition: Callable[[], object]) -> None:
    """Waits until something holds; fails when it takes too long."""
    wait_for(condition, SECONDS)


def receive(broker: Broker, count: int, acknowledge: bool = True) -> list[Message]:
    """At least `count` messages; fewer when no more come."""
    found: list[Message] = []
    deadline = time.monotonic() + SECONDS * PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        batch = broker.receive(timeout=0.2)
        found += batch
        if acknowledge:
            broker.acknowledge(batch)
    return found


def payloads(messages: list[Message]) -> list[bytes]:
    return [message.payload for message in messages]


def numbered(topic: str, count: int, start: int = 0, qos: int = 1) -> list[Message]:
    return [Message(topic, b"%d" % i, qos) for i in range(start, start + count)]


def send(broker: Broker, *messages: Message) -> None:
    broker.publish(messages).wait(SECONDS)


class World(ABC):
    """A broker and its clients; all of them are closed at the end."""

    def __init__(self) -> None:
        self._open: list[Broker] = []

    def open(self, client_id: str = "", **options: object) -> Broker:
        broker = self.make(client_id, **options)
        broker.connect()
        return broker

    def make(self, client_id: str = "", **options: object) -> Broker:
        made = replace(BrokerOptions(client_id=client_id, retry_longest=0.3), **options)  # type: ignore[arg-type]
        broker = open_broker(self.url, self.adapt(made))
        self._open.append(broker)
        return broker

    def adapt(self, options: BrokerOptions) -> BrokerOptions:
        return options

    def close(self) -> None:
        for broker in self._open:
            broker.close()

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def cut(self, broker: Broker) -> None:
        """Breaks the connection without a good-bye; the client comes back by itself."""

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def start(self) -> None: ...


class MemoryWorld(World):
    def __init__(self) -> None:
        super().__init__()
        self._name = uuid.uuid4().hex

    @property
    def url(self) -> str:
        return f"memory://{self._name}"

    def cut(self, broker: Broker) -> None:
        hub(self._name).drop(broker._client_id)  # type: ignore[attr-defined]

    def stop(self) -> None:
        hub(self._name).stop()

    def start(self) -> None:
        hub(self._name).start()


class MqttWorld(World):
    def __init__(self, folder: Path, protocol: int) -> None:
        super().__init__()
        self.protocol = protocol
        self.mosquitto = Mosquitto(folder, MosquittoOptions(save_after=100_000)).start()

    @property
    def url(self) -> str:
        return self.mosquitto.url

    def adapt(self, options: BrokerOptions) -> BrokerOptions:
        return replace(options, protocol=self.protocol)

    def cut(self, broker: Broker) -> None:
        before = broker._queues.inbox.connection  # type: ignore[attr-defined]
        broker._link._client.buffered.abort()  # type: ignore[attr-defined]
        eventually(lambda: broker._queues.inbox.connection > before)  # type: ignore[attr-defined]

    def stop(self) -> None:
        self.mosquitto.stop()

    def start(self) -> None:
        self.mosquitto.start()

    def close(self) -> None:
        super().close()
        self.mosquitto.stop()
