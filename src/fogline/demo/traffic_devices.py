"""Simulated road detectors: three streams at each edge site, some messages spoilt on purpose.

Every message is distinct from every other, malformed ones too, and counted when its broker has
confirmed it: what jobs report can be compared with these counts to the last message.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from fogline.broker import Broker, BrokerOptions, Message, open_broker
from fogline.common.errors import FoglineError
from fogline.simulate.messages import Wire, messages
from fogline.simulate.streams import Run

STREAMS_PER_SITE = 3
SPOILT_SHARE = 0.02
FOREVER_SECONDS = 30 * 24 * 3600.0
_TICK_SECONDS = 0.05
_CONFIRM_SECONDS = 30.0

GOOD, ERRONEOUS, MALFORMED = "good", "erroneous", "malformed"
"""Readable and complete; readable but with a value missing; unreadable."""


class DeviceReading(NamedTuple):
    due_ms: int
    topic: str
    text: str
    kind: str


class Devices:
    """All detectors. Between `start` and `stop` they send, each edge site's in a thread."""

    def __init__(
        self, brokers: Mapping[str, str], rate: float, seconds: float | None, seed: int = 0
    ) -> None:
        self._brokers = dict(brokers)
        self._rate = rate / (STREAMS_PER_SITE * len(self._brokers))
        self._seconds = seconds or FOREVER_SECONDS
        self._seed = seed
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._problem: FoglineError | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        start_ms = time.time_ns() // 1_000_000
        for number, url in enumerate(self._brokers.values()):
            readings = site_readings(self._rate, self._seconds, start_ms, self._seed + 10 * number)
            arguments = (url, readings)
            self._threads.append(threading.Thread(target=self._run, args=arguments, daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def done(self) -> bool:
        """Everything is sent."""
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Returns when what is under way is confirmed; raises what went wrong in between."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._problem is not None:
            raise self._problem

    def counts(self) -> dict[str, int]:
        """Confirmed messages, by kind."""
        with self._lock:
            return {kind: self._counts[kind] for kind in (GOOD, ERRONEOUS, MALFORMED)}

    def _run(self, url: str, readings: Iterator[DeviceReading]) -> None:
        try:
            with open_broker(url, BrokerOptions()) as broker:
                broker.connect()
                for batch in due(readings, self._stop.wait):
                    self._send(broker, batch)
        except FoglineError as error:
            self._problem = error

    def _send(self, broker: Broker, batch: list[DeviceReading]) -> None:
        payloads = [Message(r.topic, r.text.encode("latin-1")) for r in batch]
        broker.publish(payloads).wait(_CONFIRM_SECONDS)
        with self._lock:
            self._counts.update(reading.kind for reading in batch)


def due(
    readings: Iterator[DeviceReading], wait: Callable[[float], bool]
) -> Iterator[list[DeviceReading]]:
    """What is due, some twenty times a second, until there is no more or `wait` says stop."""
    ahead = next(readings, None)
    while ahead is not None:
        now = time.time_ns() // 1_000_000
        batch = []
        while ahead is not None and ahead.due_ms <= now:
            batch.append(ahead)
            ahead = next(readings, None)
        if batch:
            yield batch
        if wait(_TICK_SECONDS):
            return


def site_readings(rate: float, seconds: float, start_ms: int, seed: int) -> Iterator[DeviceReading]:
    """The streams of one site, `detectors/1` and so on, in the order of their times."""
    streams = (
        stream_readings(
            f"detectors/{n}", Run("traffic", rate, seconds, "uniform", seed + n, start_ms)
        )
        for n in range(1, STREAMS_PER_SITE + 1)
    )
    return heapq.merge(*streams)


def stream_readings(topic: str, run: Run) -> Iterator[DeviceReading]:
    rng = random.Random(f"spoilt {run.seed}")
    for message in itertools.chain.from_iterable(messages(run, Wire("json"))):
        if rng.random() < SPOILT_SHARE:
            yield DeviceReading(message.due_ms, topic, spoil_message(rng, message.text), MALFORMED)
        else:
            kind = ERRONEOUS if ":null" in message.text else GOOD
            yield DeviceReading(message.due_ms, topic, message.text, kind)


def spoil_message(rng: random.Random, text: str) -> str:
    """The same message torn off, with noise before it, or with no time to speak of."""
    kind = rng.randrange(3)
    if kind == 0:
        return text[: -rng.randrange(2, 12)]
    if kind == 1:
        return "".join(chr(rng.randrange(0x80, 0x100)) for _ in range(8)) + text
    return text.replace('"time":', '"time":"yesterday","sent":', 1)
