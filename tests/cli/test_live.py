"""`fogline run` without --input: a whole site in one command, told its devices by MQTT."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from fogline.common.process.free_ports import free_port
from tests.agent.kit import kill_with_children
from tests.waiting import wait_for

pytestmark = pytest.mark.site

COMMAND = [sys.executable, "-c", "from fogline.cli.main import main; main()"]
QUERY = """
s = STREAM FROM mqtt(topic="in", format="json", time="t", schema="room string, x double");
level = COMPUTE AVG(x, 5 s) BY room EVERY 5 s;
now = COMPUTE x * 2 BY room;
"""
BASE = 1_735_689_600_000


class Run:
    """The command in the background, with its output in files."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.port = free_port()
        query = folder / "q.ins"
        query.write_text(QUERY, encoding="utf-8")
        self._out, self._err = folder / "out.txt", folder / "err.txt"
        command = [*COMMAND, "run", str(query), "--mqtt-port", str(self.port), "--json", *more]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err)

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._out.read_text().splitlines()]

    def said(self) -> str:
        return self._err.read_text(encoding="utf-8")

    def send(self, room: str, x: float, t: int) -> bool:
        payload = json.dumps({"room": room, "x": x, "t": BASE + t})
        command = ["mosquitto_pub", "-p", str(self.port), "-t", "in", "-q", "1", "-m", payload]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.fixture
def run(tmp_path: Path) -> Any:
    made = Run(tmp_path)
    yield made
    kill_with_children(made.process)


def test_readings_in_results_out_and_ctrl_c(run: Run) -> None:
    wait_for(lambda: run.send("a", 10, 0), 60, "broker")
    wait_for(lambda: f"mqtt://127.0.0.1:{run.port}" in run.said(), 30, "address")
    run.send("a", 20, 1000)
    run.send("a", 1, 60_000)
    wait_for(lambda: len(run.results()) >= 4, 120, "results")
    by_insight = {
        name: [r["value"] for r in run.results() if r["insight"] == name]
        for name in ("level", "now")
    }
    assert by_insight == {"level": [15.0], "now": [20.0, 40.0, 2.0]}
    below = psutil.Process(run.process.pid).children(True)
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) == 0
    assert "3 records" in run.said()
    wait_for(lambda: not any(p.is_running() for p in below), 10, "end of all processes")


@pytest.mark.parametrize("option", [["--batch"], ["--speed", "2"], ["--format", "json"]])
def test_options_of_a_replay_are_refused(tmp_path: Path, option: list[str]) -> None:
    run = Run(tmp_path, *option)
    assert run.process.wait(60) == 2
    assert "replaying a file" in run.said()


def test_a_port_that_is_taken_is_told(run: Run, tmp_path: Path) -> None:
    wait_for(lambda: run.send("a", 10, 0), 60, "broker")
    query = tmp_path / "q.ins"
    command = [*COMMAND, "run", str(query), "--mqtt-port", str(run.port)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert f"port {run.port} is taken" in second.stderr
