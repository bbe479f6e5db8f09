"""A process that steps back, in sessions of its own so that nobody else is slowed down."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fogline.common.process import priority

SHOWN = (
    "import os, pathlib, subprocess, sys\n"
    "from fogline.common.process.priority import step_back\n"
    "step_back(7)\n"
    "child = [sys.executable, '-c', 'import os; print(os.nice(0))']\n"
    "print(os.nice(0), subprocess.check_output(child, text=True).strip())\n"
    "session = pathlib.Path('/proc/self/autogroup')\n"
    "print(session.read_text().split()[-1] if session.exists() else 7)\n"
)


@pytest.mark.site
def test_the_process_its_session_and_its_children() -> None:
    command = [sys.executable, "-c", SHOWN]
    out = subprocess.check_output(command, text=True, start_new_session=True, timeout=60)
    wanted = os.nice(0) + 7
    assert out.split() == [str(wanted), str(wanted), "7"]


def test_a_system_that_is_busy_with_another_session_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, nice = [], []

    class Session:
        def write_text(self, text: str, encoding: str) -> None:
            asked.append(text)
            if len(asked) < 3:
                raise BlockingIOError("one at a time")

    monkeypatch.setattr(priority, "_SESSION", Session())
    monkeypatch.setattr(priority, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(priority.os, "nice", nice.append)
    priority.step_back(4)
    assert (asked, nice) == (["4"] * 3, [4])


@pytest.mark.parametrize("problem", [FileNotFoundError, PermissionError, BlockingIOError])
def test_a_system_without_sessions_is_no_reason_to_stop(
    problem: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Session:
        def write_text(self, text: str, encoding: str) -> None:
            raise problem("not here")

    monkeypatch.setattr(priority, "_SESSION", Session())
    monkeypatch.setattr(priority, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(priority.os, "nice", lambda _: 0)
    priority.step_back(4)
