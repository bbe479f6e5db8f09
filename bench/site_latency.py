"""From a sensor's publish to a subscriber's receive, in milliseconds: real time and micro-batches.

The subscriber is mosquitto_sub, which notes when each result came. The sensors are a process of
their own that writes nothing but PUBLISH packets. Both take little of the processor that they share
with the site.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).parent))

from site_world import SENSORS, STREAM, site

from fogline.broker import Message
from fogline.broker.mqtt.packets import message_packet

QUERIES = {
    "real time": STREAM + "v = COMPUTE AVG(x, 10 s) BY sensor;",
    "micro-batch": STREAM + "v = COMPUTE AVG(x, 1 s) BY sensor EVERY 1 s;",
}
WARM_UP_SECONDS = {"real time": 310.0, "micro-batch": 60.0}
"""Java compiles Spark's code while it runs; that is no part of it. In real time that is also what
Spark does between batches, of which there have been some twenty by then."""
SECONDS = {"real time": 600.0, "micro-batch": 120.0}
"""How long it is measured: in real time for several batches, with the pauses between them."""

CONNECT = b"\x10\x13\x00\x04MQTT\x04\x02\x00\x00\x00\x07sensors"
CONNACK = b"\x20\x02\x00\x00"
"""Of MQTT 3.1.1: a client called sensors, without a session to keep and without pings; accepted."""


def latency(rate: int) -> dict[str, Any]:
    samples = {mode: _measure(mode, rate) for mode in QUERIES}
    shown: dict[str, Any] = {mode: percentiles(values) for mode, values in samples.items()}
    live, steady = shown["real time"]["p50_ms"], shown["micro-batch"]["p50_ms"]
    ratio = round(steady / live, 1)
    return shown | {"seconds": SECONDS, "times_lower_p50": ratio, "samples": samples}


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)

    def at(part: float) -> float:
        return round(ordered[int(part * (len(ordered) - 1))], 1)

    return {"n": len(ordered), "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99)}


def _measure(mode: str, rate: int) -> list[float]:
    with (
        site({"q": QUERIES[mode]}) as agent,
        subscriber(agent.mqtt_port, "insights/q/v") as received,
        sensors(agent.mqtt_port, rate),
    ):
        time.sleep(WARM_UP_SECONDS[mode])
        received.read()
        time.sleep(SECONDS[mode])
        return [ms for _, ms in received_latencies(received.read())]


def received_latencies(lines: bytes) -> list[tuple[float, float]]:
    """When a reading was published and what it took, of all that the subscriber wrote; it may be
    writing its last line."""
    return [_latency(line) for line in lines[: lines.rfind(b"\n")].splitlines()]


def _latency(line: bytes) -> tuple[float, float]:
    """Since the time up to which the result knows readings: in real time that of the reading."""
    received, _, payload = line.partition(b" ")
    newest = datetime.fromisoformat(json.loads(payload)["window"]["end"]).timestamp()
    return newest, (float(received) - newest) * 1000


# ── clients ──────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def subscriber(port: int, topic: str) -> Iterator[IO[bytes]]:
    """What it gets: a line a message with the time, from where it was last read."""
    options = ["-h", "127.0.0.1", "-p", str(port), "-t", topic, "-F", "%U %p"]
    with tempfile.NamedTemporaryFile(prefix="fogline-bench-") as file:
        process = subprocess.Popen(["mosquitto_sub", *options], stdout=file)
        try:
            with open(file.name, "rb") as received:
                yield received
        finally:
            process.terminate()
            process.wait(10)


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
    with socket.create_connection(("127.0.0.1", port)) as broker:
        broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        broker.sendall(CONNECT)
        if (answer := broker.recv(4)) != CONNACK:
            raise SystemExit(f"the broker refused the sensors: {answer!r}")
        begun, sent = time.time(), 0
        while True:
            now = time.time()
            due = int((now - begun) * rate)
            broker.sendall(b"".join([_reading(n, now) for n in range(sent, due)]))
            sent = due
            time.sleep(0.001)


def _reading(number: int, now: float) -> bytes:
    n = number % SENSORS
    reading = f'{{"sensor":"s{n}","x":{n / 10},"t":{int(now * 1000)},"n":{number}}}'
    return message_packet(Message(f"s/{n}", reading.encode(), qos=0), 0, is_v5=False)


if __name__ == "__main__":
    produce(int(sys.argv[1]), int(sys.argv[2]))
