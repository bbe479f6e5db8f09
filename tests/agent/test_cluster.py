"""The same job on a real Spark cluster: a master and two workers, from pyspark's own scripts."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.agent.kit import AgentProcess, Publisher, kill_pid
from tests.waiting import wait_for

pytestmark = pytest.mark.site

QUERY = """
r = STREAM FROM mqtt(topic="readings/+", format="json", time="t", lateness="1 s",
                     schema="client string, n double");
counts = COMPUTE COUNT(n, 5 s) BY client EVERY 5 s;
total = COMPUTE RUNNING_COUNT(n) BY client;
"""
BASE = 1_735_689_600_000
DRIVER = "127.0.0.2"
"""Another address than everybody else's, so that it matters which one workers are told."""


class Cluster:
    """A master and its workers. Ports are of their own choice, told in their logs: one that is
    given to them may be taken by the time they have started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, kind: str, *arguments: str) -> Path:
        """The log of the process."""
        log = self._folder / f"{kind}-{len(self._processes)}.log"
        script = Path(pyspark.__file__).parent / "bin" / "spark-class"
        name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(self._folder)}
        command = [str(script), name, "--host", "127.0.0.1", *arguments]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | own)
        self._processes.append(process)
        return log

    def wait_for(self, log: Path, pattern: str) -> str:
        """What the pattern's group stands for in the log, once it is there."""

        def found() -> re.Match[str] | None:
            assert all(process.poll() is None for process in self._processes), self._said()
            return re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))

        match: re.Match[str] = wait_for(found, 60, lambda: f"{pattern}: {self._said()}")
        return match.group(1)

    def _said(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"{log.name}: …{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def end(self) -> None:
        for process in self._processes:
            kill_pid(process.pid)
            process.wait()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = Cluster(folder)
    try:
        log = cluster.start("Master", "--port", "0", "--webui-port", "0")
        address = cluster.wait_for(log, r"Starting Spark master at (spark://\S+:\d+)")
        limits = ("--cores", "8", "--memory", "2g", "--webui-port", "0")
        for worker in [cluster.start("Worker", *limits, address) for _ in range(2)]:
            cluster.wait_for(worker, r"Successfully registered with master (\S+)")
        yield address
    finally:
        cluster.end()


def test_a_cluster_gives_the_same(master: str, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    engine = f'engine: "{master}"\nengine_host: {DRIVER}\n'
    agent = AgentProcess(folder, {"m": QUERY}, engine)
    agent.start()
    try:
        agent.wait_healthy(180)
        client = Publisher(agent.mqtt_port, "c", "readings/c")
        for n in range(2000):
            client.send({"client": "c", "n": n, "t": BASE + 10 * n})
        client.send({"client": "c", "n": 2000, "t": BASE + 3_600_000})
        wait_for(lambda: client.confirmed == 2001, 60, "confirmation")
        client.close()
        wait_for(lambda: len(agent.records("insights/m/counts")) >= 4, 120, "windows")
        counts = [r["count"] for r in agent.records("insights/m/counts")]
        assert counts == [500, 500, 500, 500]
        wait_for(lambda: len(agent.records("insights/m/total")) >= 2001, 120, "values")
        assert agent.records("insights/m/total")[-1]["value"] == 2001
    finally:
        agent.end()
