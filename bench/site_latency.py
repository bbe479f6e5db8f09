"""From a sensor's publish to a subscriber's receive, in milliseconds: real time and micro-batches.

The sensors are a process of their own. Both sides use Fogline's MQTT client, which takes little of
the processor that they share with the site.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from site_world import SENSORS, STREAM, site

from fogline.broker import Message, open_broker

QUERIES = {
    "real time": STREAM + "v = COMPUTE AVG(x, 10 s) BY sensor;",
    "micro-batch": STREAM + "v = COMPUTE AVG(x, 1 s) BY sensor EVERY 1 s;",
}
WARM_UP_SECONDS = 60.0
"""Java compiles Spark's code while it runs; that is no part of it."""

Received = list[tuple[float, bytes]]


def latency(rate: int, seconds: float) -> dict[str, Any]:
    samples = {mode: _measure(query, rate, seconds) for mode, query in QUERIES.items()}
    shown: dict[str, Any] = {mode: percentiles(values) for mode, values in samples.items()}
    live, steady = shown["real time"]["p50_ms"], shown["micro-batch"]["p50_ms"]
    return shown | {"times_lower_p50": round(steady / live, 1), "samples": samples}


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)

    def at(part: float) -> float:
        return round(ordered[int(part * (len(ordered) - 1))], 1)

    return {"n": len(ordered), "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99)}


def _measure(query: str, rate: int, seconds: float) -> list[float]:
    with (
        site({"q": query}) as agent,
        subscriber(agent.mqtt_port, "insights/q/v") as received,
        sensors(agent.mqtt_port, rate),
    ):
        time.sleep(WARM_UP_SECONDS)
        received.clear()
        time.sleep(seconds)
        return latencies(received)


def latencies(received: Received) -> list[float]:
    return [(at - _newest(payload)) * 1000 for at, payload in list(received)]


def _newest(payload: bytes) -> float:
    """The time up to which the result knows readings: in real time that of the reading itself."""
    return datetime.fromisoformat(json.loads(payload)["window"]["end"]).timestamp()


# ── clients ──────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def subscriber(port: int, topic: str) -> Iterator[Received]:
    received: Received = []
    ended = threading.Event()
    with open_broker(f"mqtt://127.0.0.1:{port}") as broker:
        broker.connect()
        broker.subscribe(topic, qos=0)

        def receive() -> None:
            while not ended.is_set():
                batch = broker.receive(timeout=0.1)
                now = time.time()
                received.extend((now, message.payload) for message in batch)

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        try:
            yield received
        finally:
            ended.set()
            thread.join()


@contextmanager
def sensors(port: int, rate: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, __file__, str(port), str(rate)])
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def produce(port: int, rate: int) -> None:
    """Until it is ended."""
    with open_broker(f"mqtt://127.0.0.1:{port}") as broker:
        broker.connect()
        begun, sent = time.time(), 0
        while True:
            now = time.time()
            due = int((now - begun) * rate)
            broker.publish([_reading(n, now) for n in range(sent, due)])
            sent = due
            time.sleep(0.001)


def _reading(number: int, now: float) -> Message:
    n = number % SENSORS
    reading = {"sensor": f"s{n}", "x": n / 10, "t": int(now * 1000), "n": number}
    return Message(f"s/{n}", json.dumps(reading).encode(), qos=0)


if __name__ == "__main__":
    produce(int(sys.argv[1]), int(sys.argv[2]))
