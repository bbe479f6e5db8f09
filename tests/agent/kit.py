"""A site as a process, and clients that count what was confirmed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import psutil
from paho.mqtt.enums import CallbackAPIVersion

from fogline.agent.broker.site_broker import BrokerStatus
from fogline.agent.contracts.engine import EngineStatus
from fogline.agent.contracts.ingest import IngestStatus
from fogline.agent.contracts.publish import PublishStatus
from fogline.agent.contracts.site_status import ChildStatus, SiteStatus
from fogline.agent.damage.watch import DamageStatus
from fogline.agent.jobs.job import make_job
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.common import settings
from fogline.common.process.free_ports import free_port
from fogline.log import SiteLog
from fogline.model.jobs import Assignment
from tests.waiting import wait_for


def install(jobs: SiteJobs, *assignments: Assignment, revision: int = 0) -> bool:
    """Also while a job of that name ends, which `check` would refuse."""
    return jobs.install([make_job(item, settings.load()) for item in assignments], revision)


def make_status(
    ingest: IngestStatus | None = None,
    engine: EngineStatus | None = None,
    publish: PublishStatus | None = None,
) -> SiteStatus:
    return SiteStatus(
        site="s",
        healthy=True,
        ingest=ChildStatus("running", report=ingest),
        engine=ChildStatus("running", report=engine),
        publish=ChildStatus("running", report=publish),
        store=None,
        broker=BrokerStatus("running", ""),
        broker_metrics={},
        damage=DamageStatus((), {}),
    )


class AgentProcess:
    """`fogline agent` with fixed ports, so that clients find it again after a restart."""

    def __init__(
        self, folder: Path, queries: dict[str, str], more: str = "", broker: str = ""
    ) -> None:
        self.folder = folder
        self.mqtt_port, self.http_port = free_port(), free_port()
        for name, text in queries.items():
            (folder / f"{name}.ins").write_text(text, encoding="utf-8")
        jobs = ", ".join(f"{name}.ins" for name in queries)
        self.config = folder / "site.yaml"
        self.config.write_text(
            f"site: test\njobs: [{jobs}]\nhttp_port: {self.http_port}\nmetrics_seconds: 1\n"
            f"broker: {broker or f'{{port: {self.mqtt_port}}}'}\nmin_free_megabytes: 1\n{more}",
            encoding="utf-8",
        )
        self.process: subprocess.Popen[bytes] | None = None
        self._known: dict[str, tuple[int, list[dict[str, Any]]]] = {}

    @property
    def logs(self) -> SiteLog:
        return SiteLog(self.folder / "test" / "log")

    def start(self) -> None:
        command = [sys.executable, "-c", "from fogline.cli.main import main; main()"]
        with (self.folder / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "agent", "--config", str(self.config)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self, seconds: float = 60) -> int:
        assert self.process
        self.process.terminate()
        return self.process.wait(seconds)

    def status(self) -> dict[str, Any]:
        """What `/status` says; empty while nobody answers."""
        try:
            address = f"http://127.0.0.1:{self.http_port}/status"
            with urllib.request.urlopen(address, timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, urllib.error.URLError, ValueError):
            return {}

    def wait_healthy(self, seconds: float = 120) -> None:
        try:
            wait_for(lambda: self.status().get("healthy"), seconds, "healthy site")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.status()}\n{self.said()}") from error

    def said(self) -> str:
        files = [self.folder / "agent.log", *sorted((self.folder / "test").glob("*.log"))]
        return "\n".join(f"== {f.name}\n{f.read_text()[-2000:]}" for f in files if f.exists())

    def victims(self) -> dict[str, list[int]]:
        """Process ids by what they are."""
        status = self.status()
        engine = status["engine"]["pid"]
        assert self.process
        jvm = [p.pid for p in psutil.Process(engine).children(True) if p.name() == "java"]
        found = {
            "agent": [self.process.pid],
            "ingest": [status["ingest"]["pid"]],
            "broker": [status["broker"]["pid"]],
            "spark": jvm,
        }
        return found | {"all": [pid for pids in found.values() for pid in pids]}

    def kill(self, what: str) -> None:
        """Kills with -9; an agent that was killed is started again, as a service manager would."""
        for pid in self.victims()[what]:
            kill_pid(pid)
        assert self.process
        if what in ("agent", "all"):
            self.process.wait()
            wait_for(lambda: not self._ports_taken(), 30, "free ports after the agent's death")
            self.start()

    def _ports_taken(self) -> bool:
        for port in (self.mqtt_port, self.http_port):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    return True
        return False

    def end(self) -> None:
        """Whatever is left of it."""
        if self.process is None:
            return
        kill_with_children(self.process)

    def records(self, topic: str) -> list[dict[str, Any]]:
        """Everything in a log, decoded; asked again, only what is new is read."""
        position, found = self._known.get(topic, (-1, []))
        with self.logs.reader(topic) as reader:
            position = reader.first() if position < 0 else position
            while position < reader.committed():
                records, position = reader.read(position)
                found += [json.loads(payload) for _, payload in records]
        self._known[topic] = (position, found)
        return list(found)


def payloads(reader: Any) -> Iterator[bytes]:
    position = reader.first()
    while position < reader.committed():
        records, position = reader.read(position)
        yield from (payload for _, payload in records)


def fill(logs: SiteLog, topic: str, *payloads: bytes) -> int:
    """Appends to a log of a site; returns its end."""
    with logs.writer(topic) as writer:
        writer.append([(topic, payload) for payload in payloads])
        return writer.commit()


def kill_with_children(process: subprocess.Popen[bytes]) -> None:
    """With -9, whichever of them are still there."""
    try:
        below = psutil.Process(process.pid).children(True)
    except psutil.NoSuchProcess:
        below = []
    for child in below:
        kill_pid(child.pid)
    kill_pid(process.pid)
    process.wait()


def kill_pid(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class Publisher:
    """A paho client that sends numbered readings at QoS 1 and knows which were confirmed."""

    def __init__(self, port: int, name: str, topic: str) -> None:
        self.name = name
        self.confirmed = 0
        self._topic = topic
        self._room = threading.Semaphore(200)
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id=f"test-{name}", clean_session=False
        )
        self._client.max_inflight_messages_set(200)
        self._client.reconnect_delay_set(1, 2)
        self._client.on_publish = self._on_publish
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def _on_publish(self, *_: Any) -> None:
        self.confirmed += 1
        self._room.release()

    def send(self, reading: dict[str, Any]) -> None:
        """Waits while too much is unconfirmed; what the broker loses is sent again by paho."""
        assert self._room.acquire(timeout=120), f"{self.name}: nothing was confirmed for 120 s"
        self._client.publish(self._topic, json.dumps(reading), qos=1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
