"""Intake: the messages of one subscription into one log, acknowledged once they are on disk.

Delivery by MQTT is at least once: after a crash on either side messages come again. Those that the
broker marks, and retained ones, are compared with what the log holds; where messages carry their
own time (`deduplicate`), all are, so that every reading is in the log exactly once. Records that
come in batches over a link say themselves which ones they are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from fogline.agent.contracts.ingest import Subscription
from fogline.broker import Batch, Broker, BrokerError, Message
from fogline.links.batch import PREFIX
from fogline.links.dedup import Recent
from fogline.links.inlet import BadLinks, Inlet
from fogline.links.receiver import Delivery, LogPart, Rejected, in_portions, unpack
from fogline.log import SiteLog

_RETRY_SECONDS = 1.0
_RECEIVE_SECONDS = 0.2


class SubscriptionIntake(Inlet):
    """Runs in a thread of its own until `stop` is set."""

    def __init__(
        self,
        subscription: Subscription,
        broker: Broker,
        logs: SiteLog,
        bad: BadLinks | None = None,
    ) -> None:
        super().__init__(subscription.pattern, logs.writer(subscription.log))
        self.subscription = subscription
        self.subscribed = False
        """The broker keeps what comes from now on."""
        self._broker = broker
        self._bad = bad or BadLinks(logs)
        self._recent = Recent()
        with logs.reader(subscription.log, skip_damage=True) as reader:
            self._recent.note_tail(reader)

    def run(self, stop: threading.Event) -> None:
        self._subscribe(stop)
        while not stop.is_set():
            batch = self._broker.receive(timeout=_RECEIVE_SECONDS)
            if len(batch):
                if not self._store(batch, stop):
                    break
                self._broker.acknowledge(batch)
            self.state = "running" if self._broker.connected else "disconnected"
            self.listen(hears=self._broker.connected)
        self.close()

    def unsubscribe(self) -> None:
        """The broker collects nothing for us any more, if it can be reached."""
        try:
            for pattern in self.subscription.filters:
                self._broker.unsubscribe(pattern, timeout=1.0)
        except BrokerError as error:
            self.state = f"cannot unsubscribe: {error}"

    def _subscribe(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                for pattern in self.subscription.filters:
                    self._broker.subscribe(pattern, self.subscription.qos)
                self.state = "running"
                self.subscribed = True
                return
            except BrokerError as error:
                self.state = f"cannot subscribe: {error}"
                stop.wait(_RETRY_SECONDS)

    def _store(self, batch: Batch, stop: threading.Event) -> bool:
        """Writes what is new; waits for space where there is none. False when it is to end."""
        plain = [m for m in batch if not m.topic.startswith(PREFIX)]
        fresh = [(m.topic, m.payload) for m in plain if self._is_fresh(m)]
        parts = [LogPart(0, -1, None, fresh)] if fresh else []
        if not self.persist(parts, (), stop):
            return False
        self.repeated += len(plain) - len(fresh)
        linked = [m for m in batch if m.topic.startswith(PREFIX)]
        return self._store_linked(linked, stop)

    def _store_linked(self, messages: Sequence[Message], stop: threading.Event) -> bool:
        for portion in in_portions(unpack(m.topic, m.payload) for m in messages):
            self._bad.keep([item for item in portion if isinstance(item, Rejected)])
            good = [item for item in portion if isinstance(item, Delivery)]
            if not self.persist((), [item for item in good if self.accepts(item.topic)], stop):
                return False
        return True

    def _is_fresh(self, message: Message) -> bool:
        new = self._recent.is_new(message.topic, message.payload)
        return new or not (self.subscription.deduplicate or message.dup or message.retain)
