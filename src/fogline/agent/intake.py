"""Intake: the messages of one subscription into one log, acknowledged once they are on disk.

Delivery by MQTT is at least once: after a crash on either side messages come again. Those that the
broker marks, and retained ones, are compared with what the log holds; where messages carry their
own time (`deduplicate`), all are, so that every reading is in the log exactly once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from fogline.agent.recent import Recent
from fogline.broker import Batch, Broker, BrokerError, Message
from fogline.log import LogFull, SiteLog

_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Subscription:
    pattern: str
    log: str
    broker: str
    """The address of the broker."""
    deduplicate: bool = True
    qos: int = 1


class Intake:
    """Runs in a thread of its own until `stop` is set."""

    def __init__(self, subscription: Subscription, broker: Broker, logs: SiteLog) -> None:
        self.subscription = subscription
        self.state = "starting"
        self.messages = 0
        self.repeated = 0
        self.bytes = 0
        self._broker = broker
        self._log = logs.writer(subscription.log)
        self._recent = Recent()
        with logs.reader(subscription.log, skip_damage=True) as reader:
            self._recent.note_tail(reader)

    def run(self, stop: threading.Event) -> None:
        self._subscribe(stop)
        while not stop.is_set():
            batch = self._broker.receive(timeout=0.5)
            if len(batch):
                if not self._store(batch, stop):
                    break
                self._broker.acknowledge(batch)
            self.state = "running" if self._broker.connected else "disconnected"
        self._log.close()

    def _subscribe(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._broker.subscribe(self.subscription.pattern, self.subscription.qos)
                self.state = "running"
                return
            except BrokerError as error:
                self.state = f"cannot subscribe: {error}"
                stop.wait(_RETRY_SECONDS)

    def _store(self, batch: Batch, stop: threading.Event) -> bool:
        """Writes what is new; waits for space where there is none. False when it is to end."""
        fresh = [(m.topic, m.payload) for m in batch if self._is_fresh(m)]
        while fresh:
            try:
                self._log.append(fresh)
                self._log.commit()
                break
            except LogFull as error:
                self.state = f"no space: {error}"
                if stop.wait(_RETRY_SECONDS):
                    return False
        self.messages += len(fresh)
        self.repeated += len(batch) - len(fresh)
        self.bytes += sum(len(payload) for _, payload in fresh)
        return True

    def _is_fresh(self, message: Message) -> bool:
        new = self._recent.is_new(message.topic, message.payload)
        return new or not (self.subscription.deduplicate or message.dup or message.retain)
