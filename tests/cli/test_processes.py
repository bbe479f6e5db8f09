"""The command as a process of its own: Ctrl-C, a reader that goes away, the time that is up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.site

QUERY = """
s = STREAM FROM memory(name="s", time="time", lateness="1 s");
number = COMPUTE COUNT(x) EVERY 1 s;
"""


@pytest.fixture
def environment(scratch: Path) -> dict[str, str]:
    return os.environ | {
        "FOGLINE_ENGINE": "local[2]",
        "FOGLINE_MEMORY": "1g",
        "FOGLINE_PARTITIONS": "2",
        "FOGLINE_SCRATCH": str(scratch),
    }


def start(environment: dict[str, str], *arguments: str | Path) -> subprocess.Popen[str]:
    """A child with a process group of its own, as a shell makes one."""
    command = [
        sys.executable,
        "-c",
        "from fogline.cli.main import main; main()",
        *map(str, arguments),
    ]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def lines(count: int) -> str:
    records = ({"time": f"2026-01-01T00:00:{n % 60:02d}Z", "x": n} for n in range(count))
    return "".join(json.dumps(record) + "\n" for record in records)


def test_ctrl_c_ends_a_run_with_a_summary(
    environment: dict[str, str], query: Callable[[str], Path]
) -> None:
    run = start(environment, "run", query(QUERY), "--input", "-", "--json")
    assert run.stdin is not None
    assert run.stdout is not None
    run.stdin.write(lines(20))
    run.stdin.flush()
    assert json.loads(run.stdout.readline())["value"] == 1
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 0
    assert "Traceback" not in err
    assert "20 records (" in err
    assert "  number: " in err


def test_a_reader_that_goes_away_ends_a_run_quietly(
    environment: dict[str, str], query: Callable[[str], Path]
) -> None:
    run = start(environment, "run", query(QUERY), "--input", "-", "--json")
    assert run.stdin is not None
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdin.write(lines(10))
    run.stdin.flush()
    run.stdout.readline()
    run.stdout.close()
    run.stdin.write(lines(30))
    run.stdin.close()
    err = run.stderr.read()
    assert run.wait(timeout=120) == 0
    assert "Traceback" not in err
    assert "ERROR" not in err


def test_seconds_end_a_run_that_would_go_on(
    environment: dict[str, str], query: Callable[[str], Path]
) -> None:
    run = start(environment, "run", query(QUERY), "--input", "-", "--seconds", "2")
    assert run.stdin is not None
    run.stdin.write(lines(3))
    run.stdin.flush()
    assert run.wait(timeout=120) == 0


def test_a_killed_engine_is_told_in_one_line(
    environment: dict[str, str], query: Callable[[str], Path]
) -> None:
    run = start(environment, "run", query(QUERY), "--input", "-", "--json")
    assert run.stdin is not None
    assert run.stdout is not None
    run.stdin.write(lines(20))
    run.stdin.flush()
    run.stdout.readline()
    (engine,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[:1]
    os.kill(int(engine), signal.SIGKILL)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 1
    assert err.startswith("fogline: the Spark engine died")
    assert len(err.splitlines()) == 1
