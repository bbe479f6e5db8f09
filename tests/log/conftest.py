"""Short ways to write, read and harm a log."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JAR = ROOT / "src" / "fogline" / "spark" / "fogline-connector.jar"


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """No test cuts the power, so none in this process waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        patch.setattr(os, "fdatasync", lambda fd: None)
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture(scope="session")
def java() -> list[str]:
    """The Java tool as a command, built from the sources as they are now."""
    subprocess.run([sys.executable, str(ROOT / "connector" / "build.py")], check=True)
    options = ["-XX:TieredStopAtLevel=1", "-cp", str(JAR)]
    return ["java", *options, "io.fogline.log.LogTool"]


@pytest.fixture(scope="session")
def log_tool(java: list[str]) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs the Java tool: sub-command, arguments, and what it reads from standard input."""

    def run(*args: object, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [*java, *map(str, args)]
        return subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)

    return run
