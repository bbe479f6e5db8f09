"""Silence as the writer of a log tells it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fogline.common.state_files import read_state
from fogline.log.files.idleness import Silence
from fogline.log.files.lock import is_written
from tests.log import kit


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def told(folder: Path) -> str:
    return read_state(folder / "heard")


def test_silence_grows_until_something_comes(tmp_path: Path) -> None:
    clock = Seconds()
    silence = Silence(tmp_path, clock)
    for second in range(6):
        clock.now = 100.0 + second
        silence.note(10, listening=True)
    assert told(tmp_path) == "10 5000\n"
    silence.note(20, listening=True)
    clock.now += 3
    silence.note(20, listening=True)
    assert told(tmp_path) == "20 3000\n"


def test_while_nobody_listens_there_is_no_silence(tmp_path: Path) -> None:
    clock = Seconds()
    silence = Silence(tmp_path, clock)
    silence.note(10, listening=True)
    clock.now += 60
    silence.note(10, listening=False)
    clock.now += 2
    silence.note(10, listening=True)
    assert told(tmp_path) == "10 2000\n"


def test_a_folder_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    clock = Seconds()
    silence = Silence(tmp_path / "gone", clock)
    silence.note(0, listening=True)
    clock.now += 5
    silence.note(0, listening=True)


@pytest.mark.site
def test_whether_another_process_writes_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    assert not is_written(folder)
    kit.write(folder, [kit.records(1)])
    assert not is_written(folder)
    code = (
        "import sys; from pathlib import Path; from fogline.log import LogWriter\n"
        f"LogWriter(Path(sys.argv[1]), {kit.TOPIC!r}, min_free_bytes=0); print(1, flush=True)\n"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        process.stdout.readline()
        assert is_written(folder)
        process.stdin.close()
    assert not is_written(folder)
