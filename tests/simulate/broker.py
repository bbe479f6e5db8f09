"""A real Mosquitto on a free loopback port, for the tests that publish."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from fogline.common.process.free_ports import free_port
from tests.waiting import PATIENCE


@dataclass(frozen=True)
class Mosquitto:
    port: int
    process: subprocess.Popen[bytes]


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10 * PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail("mosquitto does not start")


def start_mosquitto(folder: Path, *, password: str = "") -> Mosquitto:
    """Starts a broker; with a password only the user `ada` may connect."""
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin") or "mosquitto"
    port = free_port()
    lines = [f"listener {port} 127.0.0.1", f"allow_anonymous {'false' if password else 'true'}"]
    # A broker started by root gives its rights up, and then could not read the folder.
    # It drops what is too much for a subscriber that has no time to read, unless it may keep it.
    lines += ["persistence false", "user root", "max_queued_messages 0"]
    if password:
        secrets = folder / "passwords"
        command = ["mosquitto_passwd", "-b", "-c", str(secrets), "ada", password]
        subprocess.run(command, check=True, capture_output=True)
        lines.append(f"password_file {secrets}")
    config = folder / "mosquitto.conf"
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    process = subprocess.Popen(
        [program, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(port, process)
    return Mosquitto(port, process)


def stop(broker: Mosquitto) -> None:
    broker.process.terminate()
    broker.process.wait(timeout=10)
