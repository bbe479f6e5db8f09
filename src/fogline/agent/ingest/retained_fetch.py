"""What the site's own broker has retained, for subscriptions that are new.

The journal holds what is published; what was retained before a subscription began is not in it. So
for each new one the broker is asked once, over MQTT: a subscription of QoS 0 that ends at once. The
broker sends what it has retained before it confirms that end.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace

from fogline.agent.broker.connections import connect
from fogline.broker import Broker, BrokerError, BrokerOptions, BrokerTimeoutError, open_broker
from fogline.links.batch import PREFIX
from fogline.log import LogRecord

_RETRY_SECONDS = 1.0
_SLICE_SECONDS = 0.2
_PATIENT_SECONDS = 3600.0
"""A connection that is lost is not repaired: it might have lost a message, so all is asked again.
"""

RetainedAnswer = tuple[str, list[LogRecord]]
"""A log, and what was retained for it."""


class RetainedFetch:
    """Asks in a thread of its own, which is there while there is something to ask."""

    def __init__(self, url: str, options: BrokerOptions) -> None:
        self._url = url
        self._options = replace(
            options, retry_first=_PATIENT_SECONDS, retry_longest=_PATIENT_SECONDS
        )
        self._asked: deque[tuple[str, str]] = deque()
        self._answers: deque[RetainedAnswer] = deque()
        self._guard = threading.Lock()
        self._working = False
        self._stop = threading.Event()

    def ask(self, log: str, pattern: str) -> None:
        with self._guard:
            self._asked.append((log, pattern))
            if not self._working:
                self._working = True
                threading.Thread(target=self._run, name="retained", daemon=True).start()

    def answers(self) -> list[RetainedAnswer]:
        """Those that have come since the last call."""
        return [self._answers.popleft() for _ in range(len(self._answers))]

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._guard:
                if not self._asked:
                    self._working = False
                    return
                log, pattern = self._asked[0]
            try:
                self._answers.append((log, self._collect(pattern)))
                self._asked.popleft()
            except BrokerError:
                self._stop.wait(_RETRY_SECONDS)

    def _collect(self, pattern: str) -> list[LogRecord]:
        """Raises BrokerError when it is not sure that this is all."""
        with open_broker(self._url, self._options) as broker:
            if not connect(broker, self._stop, lambda text: None):
                return []
            broker.subscribe(pattern, qos=0)
            found: list[LogRecord] = []
            while not _unsubscribe(broker, pattern):
                found += _receive_retained(broker, _SLICE_SECONDS)
                if not broker.connected:
                    raise BrokerTimeoutError("the connection was lost")
            while more := _receive_retained(broker, 0):
                found += more
            return found


def _unsubscribe(broker: Broker, pattern: str) -> bool:
    """Whether the broker has confirmed the end; it cannot while we do not take what it sends."""
    try:
        broker.unsubscribe(pattern, timeout=_SLICE_SECONDS)
    except BrokerTimeoutError:
        return False
    return True


def _receive_retained(broker: Broker, timeout: float) -> list[LogRecord]:
    """Other messages are in the journal. So are batches for others, which are never retained."""
    batch = broker.receive(timeout=timeout)
    return [(m.topic, m.payload) for m in batch if m.retain and not m.topic.startswith(PREFIX)]
