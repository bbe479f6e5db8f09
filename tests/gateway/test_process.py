"""The gateway as a process with a real Mosquitto: killed at any moment, and its memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fogline.broker import Broker, BrokerOptions, Message, open_broker
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.process.free_ports import free_port
from fogline.common.state_files import read_state
from fogline.control import ControlClient
from fogline.gateway.operators.base import MOST_KEYS
from fogline.links import PREFIX, decode
from fogline.model.nodes import OFFLINE, ONLINE
from tests.gateway.helpers import BASE
from tests.waiting import wait_for

pytestmark = pytest.mark.site

MOST_BYTES = 60e6


class Running:
    """A gateway process under the control of a broker that is also its site's."""

    def __init__(self, folder: Path, site: Mosquitto) -> None:
        self.port = free_port()
        self._config = folder / "gateway.yaml"
        config = f"gateway: g\nbroker: {{port: {self.port}}}\ncontrol: {{url: '{site.url}'}}\n"
        self._config.write_text(config, encoding="utf-8")
        self._log = (folder / "said").open("wb")
        self._client = ControlClient(site.url, {}, lambda: None, "test")
        self._client.start()
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "fogline.gateway", str(self._config)]
        self.process = subprocess.Popen(command, stderr=self._log)
        wait_for(lambda: self.ask("describe") is not None, 40)

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ask(self, op: str, **body: Any) -> dict[str, Any] | None:
        try:
            return dict(self._client.send("g", op, body, 2).result())
        except Exception as error:
            if op == "describe":
                return None
            raise error

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self._client.close()
        self._log.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path / "site", MosquittoOptions(save_after=0)) as broker:
        yield broker


@pytest.fixture
def running(tmp_path: Path, site: Mosquitto) -> Iterator[Running]:
    made = Running(tmp_path, site)
    yield made
    made.close()


def connected(url: str, **options: Any) -> Broker:
    broker = open_broker(url, BrokerOptions(retry_longest=0.2, **options))
    broker.connect()
    return broker


def assignment(url: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "job": "j", "pipeline": "p", "work": {"steps": steps}, "reads": [{"topic": "d/#"}],
        "routes": [{"mode": "link", "topic": "up", "broker": url, "node": "s"}],
        "input": {"time": "time"},
    }  # fmt: skip


class Received:
    def __init__(self, url: str) -> None:
        self._broker = connected(url, client_id="test-site", persistent=True)
        self._broker.subscribe(PREFIX + "up")
        self._last = -1
        self.records: list[dict[str, Any]] = []

    def take(self) -> list[dict[str, Any]]:
        for message in (batch := self._broker.receive(timeout=0)):
            for piece in decode(message.payload).pieces:
                if piece.end > self._last:
                    self._last = piece.end
                    self.records += map(json.loads, piece.payloads)
        self._broker.acknowledge(batch)
        return self.records


def test_killed_in_the_middle(running: Running, site: Mosquitto) -> None:
    steps = [{"op": "aggregate", "window": 1, "fields": ["x"], "functions": ["count", "sum"]}]
    running.ask("install", assignments=[assignment(site.url, steps)])
    received = Received(site.url)
    device = connected(f"mqtt://127.0.0.1:{running.port}", client_id="device", window=50)
    total = 6000

    def publish() -> None:
        for first in range(0, total, 50):
            batch = [
                Message("d/1", json.dumps({"time": BASE + i * 10, "x": i}).encode())
                for i in range(first, first + 50)
            ]
            device.publish(batch, timeout=60).wait(60)

    sender = threading.Thread(target=publish)
    sender.start()
    for part in (0.1, 0.4, 0.7):
        wait_for(lambda part=part: sum(r["count"] for r in received.take()) >= part * total, 60)
        running.kill()
        running.start()
    sender.join(60)
    running.ask("flush", jobs=["j"])
    wait_for(lambda: sum(r["count"] for r in received.take()) >= total, 60)
    records = received.take()
    assert [r["count"] for r in records] == [100] * (total // 100)
    assert [r["sum_x"] for r in records] == [sum(range(n, n + 100)) for n in range(0, total, 100)]
    told = running.ask("describe")
    assert told is not None
    assert told["jobs"][0]["records_in"] == total
    device.close()


def test_memory(running: Running, site: Mosquitto) -> None:
    fields = [{"name": "k", "type": "string"}, {"name": "x", "type": "double"}]
    panes = {
        "op": "panes", "paneMs": 1000, "slots": [{"kind": "moments", "inputs": [0]}],
        "channels": [{"number": 0, "keys": [{"name": "k", "column": "k"}],
                      "inputs": [{"column": "x"}]}],
    }  # fmt: skip
    typed = {"time": "time", "fields": json.dumps(fields)}
    jobs = [
        assignment(site.url, [{"op": "filter", "when": "x > 10"}]) | {"job": "a"},
        assignment(site.url, [{"op": "throttle", "rate": 1, "by": ["k"]}]) | {"job": "b"},
        assignment(site.url, [panes]) | {"job": "c", "input": typed},
    ]
    running.ask("install", assignments=jobs)
    device = connected(f"mqtt://127.0.0.1:{running.port}")
    for first in range(0, 20_000, 1000):
        messages = [
            Message(
                f"d/{i % 100}",
                json.dumps({"time": BASE + i, "k": f"k{i % 100}", "x": i % 50}).encode(),
            )
            for i in range(first, first + 1000)
        ]
        device.publish(messages).wait(30)
    device.publish([Message("d/1", b"x" * (1 << 20))]).wait(30)

    def done() -> bool:
        told = running.ask("describe") or {"jobs": []}
        return [j.get("records_in") for j in told["jobs"]] == [20_000] * 3

    wait_for(done, 60)
    device.close()
    peak = most_resident(running.process.pid)
    now = psutil.Process(running.process.pid).memory_info().rss
    print(f"resident: {now / 1e6:.1f} MB, at most {peak / 1e6:.1f} MB")
    assert now < MOST_BYTES
    assert peak < MOST_BYTES
    imported = Path(f"/proc/{running.process.pid}/maps").read_text(encoding="utf-8")
    assert not any(name in imported for name in ("numpy", "pandas", "pyarrow"))


PANES = {
    "op": "panes", "paneMs": 600_000, "slots": [{"kind": "moments", "inputs": [0]}],
    "channels": [{"number": 0, "keys": [{"name": "k", "column": "k"}],
                  "inputs": [{"column": "x"}]}],
}  # fmt: skip
TYPED = json.dumps([{"name": "k", "type": "string"}, {"name": "x", "type": "double"}])


@pytest.mark.parametrize(
    ("step", "given"),
    [
        pytest.param({"op": "aggregate", "window": 600, "by": ["k"], "fields": ["x", "y"],
                      "functions": ["avg", "max"]}, {}, marks=pytest.mark.long),
        pytest.param({"op": "throttle", "seconds": 600, "by": ["k"]}, {}, marks=pytest.mark.long),
        pytest.param({"op": "deadband", "field": "x", "by": ["k"], "band": 1}, {},
                     marks=pytest.mark.long),
        (PANES, {"fields": TYPED}),
    ],
    ids=["aggregate", "throttle", "deadband", "panes"],
)  # fmt: skip
def test_memory_with_as_many_keys_as_there_may_be(
    running: Running, site: Mosquitto, tmp_path: Path, step: dict[str, Any], given: dict[str, str]
) -> None:
    told = assignment(site.url, [step]) | {"input": {"time": "time", **given}}
    running.ask("install", assignments=[told])
    device = connected(f"mqtt://127.0.0.1:{running.port}")
    for first in range(0, MOST_KEYS, 1000):
        device.publish(
            [
                Message("d/1", json.dumps({"time": BASE, "k": f"device-{i}", "x": i / 7}).encode())
                for i in range(first, first + 1000)
            ]
        ).wait(60)
    device.close()

    def seen() -> bool:
        told = running.ask("describe") or {"jobs": [{}]}
        return bool(told["jobs"][0].get("records_in") == MOST_KEYS)

    def kept() -> bool:
        files = list((tmp_path / "g" / "state").glob("[!.]*.json"))
        counts = [json.loads(read_state(file))["state"]["counts"][0] for file in files]
        return counts == [MOST_KEYS]

    wait_for(seen, 120)
    wait_for(kept, 60)
    peak = most_resident(running.process.pid)
    running.kill()
    running.start()
    wait_for(seen, 60)
    again = most_resident(running.process.pid)
    print(f"at most {peak / 1e6:.1f} MB, after a restart {again / 1e6:.1f} MB")
    assert peak < MOST_BYTES
    assert again < MOST_BYTES


def most_resident(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def test_many_in_a_killed_process_are_gone_at_once_and_go_on(
    tmp_path: Path, site: Mosquitto
) -> None:
    file, names = tmp_path / "g.yaml", [f"g-{number:03}" for number in range(1, 6)]
    file.write_text(
        f"gateway: g\ngateways: 5\nbroker: {{url: '{site.url}'}}\ncontrol: {{url: '{site.url}'}}\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "fogline.gateway", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    with ControlClient(site.url, {}, lambda: None, "test") as client:
        try:
            wait_for(lambda: _states(client) == dict.fromkeys(names, ONLINE), 40)
            job = assignment(site.url, [{"op": "filter", "when": "x > 0"}])
            told = [client.send(n, "install", {"assignments": [job]}, 30) for n in names]
            assert [future.result() for future in told] == [{}] * 5
            process.kill()
            process.wait()
            wait_for(lambda: _states(client) == dict.fromkeys(names, OFFLINE), 40)
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            wait_for(lambda: _states(client) == dict.fromkeys(names, ONLINE), 40)
            wait_for(lambda: all(set(v.jobs) == {"j"} for v in client.views().values()), 40)
        finally:
            process.terminate()
            process.wait(40)
        wait_for(lambda: all(v.clean for v in client.views().values()), 40)


def _states(client: ControlClient) -> dict[str, str]:
    return {name: view.state for name, view in client.views().items()}


def test_wrong_configuration(tmp_path: Path) -> None:
    file = tmp_path / "g.yaml"
    file.write_text("gateway: g\ncolour: red\n", encoding="utf-8")
    command = [sys.executable, "-m", "fogline.gateway", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "unknown colour" in ended.stderr
