"""The same job on a real Spark cluster: a master and two workers, from pyspark's own scripts."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from fogline.free_ports import free_port
from tests.agent.kit import AgentProcess, Publisher, kill_pid
from tests.waiting import wait_for

QUERY = """
r = STREAM FROM mqtt(topic="readings/+", format="json", time="t", lateness="1 s",
                     schema="client string, n double");
counts = COMPUTE COUNT(n, 5 s) BY client EVERY 5 s;
total = COMPUTE RUNNING_COUNT(n) BY client;
"""
BASE = 1_735_689_600_000
DRIVER = "127.0.0.2"
"""Another address than everybody else's, so that it matters which one workers are told."""


def start(folder: Path, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    log = (folder / f"{kind}-{len(list(folder.iterdir()))}.log").open("wb")
    name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder)}
    command = [str(script), name, "--host", "127.0.0.1", *arguments]
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    port, page = free_port(), free_port()
    address = f"spark://127.0.0.1:{port}"
    processes = [start(folder, "Master", "--port", str(port), "--webui-port", str(page))]
    limits = ("--cores", "8", "--memory", "2g", "--webui-port", "0")
    processes += [start(folder, "Worker", *limits, address) for _ in range(2)]

    def workers() -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except OSError:
            return 0

    try:
        wait_for(lambda: workers() == 2, 60, "cluster of two workers")
        yield address
    finally:
        for process in processes:
            kill_pid(process.pid)
            process.wait()


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
