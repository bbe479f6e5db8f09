"""What Spark leaves behind when it is killed does not stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fogline.spark.session.scratch import own_folder, remove_left

pytestmark = pytest.mark.site

HOLDER = """
import sys, time
from pathlib import Path
from fogline.spark.session.scratch import own_folder
print(own_folder(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def held_elsewhere(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    command = [sys.executable, "-c", HOLDER, str(parent)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    (folder / "state").write_bytes(b"of Spark")
    return process, folder


def test_it_goes_with_its_process(tmp_path: Path) -> None:
    process, folder = held_elsewhere(tmp_path)
    assert folder.is_dir()
    process.communicate()
    assert not folder.exists()


def test_that_of_a_killed_process_goes_when_the_next_one_comes(tmp_path: Path) -> None:
    process, folder = held_elsewhere(tmp_path)
    process.kill()
    process.communicate()
    assert (folder / "state").exists()
    own = own_folder(tmp_path)
    assert own.is_dir()
    assert not folder.exists()


def test_others_at_work_are_left_alone(tmp_path: Path) -> None:
    process, folder = held_elsewhere(tmp_path)
    own = own_folder(tmp_path)
    other = tmp_path / "fogline-spark-without-a-lock"
    other.mkdir()
    remove_left(tmp_path)
    assert own.is_dir()
    assert other.is_dir()
    assert (folder / "state").read_bytes() == b"of Spark"
    process.communicate()
