"""Waiting for logs to grow: rung by whoever writes, at once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fogline.log import Bell, SiteLog
from tests.log import kit

LONG = 20.0
needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="the system tells nothing")
WRITER = """
import sys
from pathlib import Path
from fogline.log import SiteLog
sys.stdin.readline()
with SiteLog(Path(sys.argv[1]), min_free_bytes=0).writer("a") as writer:
    writer.append([("a", b"1")])
    writer.commit()
"""


@pytest.fixture
def bell() -> Iterator[Bell]:
    made = Bell()
    yield made
    made.close()


def waited(bell: Bell, longest: float = LONG) -> float:
    begun = time.monotonic()
    bell.wait(longest)
    return time.monotonic() - begun


def quiet(bell: Bell) -> None:
    """Takes what has rung so far."""
    while waited(bell, 0.2) < 0.15:
        pass


@pytest.mark.site
@needs_inotify
def test_rings_for_what_another_process_writes(bell: Bell, tmp_path: Path) -> None:
    site = SiteLog(tmp_path / "log", min_free_bytes=0)
    with site.writer("a"):
        pass
    with site.reader("a") as reader:
        bell.watch([site.folder("a")])
        quiet(bell)
        command = [sys.executable, "-c", WRITER, str(site.root)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            process.communicate(b"\n")
            while reader.committed() == 0:
                assert waited(bell) < LONG


@needs_inotify
def test_rings_for_a_log_that_is_not_there_yet_and_for_one_that_comes_again(
    bell: Bell, tmp_path: Path
) -> None:
    site = SiteLog(tmp_path / "log", min_free_bytes=0)
    folder = site.folder("a")
    bell.watch([folder])
    for _ in range(2):
        with site.writer("a") as writer, site.reader("a") as reader:
            quiet(bell)
            writer.append(kit.records(1))
            writer.commit()
            assert waited(bell) < LONG
            assert reader.committed() > 0
        shutil.rmtree(site.root)
        assert waited(bell) < LONG


def test_is_rung_by_another_thread(bell: Bell, tmp_path: Path) -> None:
    bell.watch([tmp_path])
    bell.ring()
    assert waited(bell) < LONG
    quiet(bell)
    threading.Timer(0.1, bell.ring).start()
    assert waited(bell) < LONG


def test_where_the_system_cannot_tell_waits_are_short(tmp_path: Path) -> None:
    bell = Bell(same_machine=False)
    bell.watch([tmp_path])
    assert waited(bell) < 1
    bell.close()


@needs_inotify
def test_with_nothing_to_watch_it_does_not_look_again_and_again(bell: Bell) -> None:
    assert waited(bell, 0.3) >= 0.29


@needs_inotify
def test_nothing_rings_while_nothing_is_written(bell: Bell, tmp_path: Path) -> None:
    site = SiteLog(tmp_path / "log", min_free_bytes=0)
    with site.writer("a") as writer, site.writer("b") as other:
        bell.watch([site.folder("a")])
        quiet(bell)
        other.append(kit.records(1))
        other.commit()
        assert waited(bell, 0.3) >= 0.29
        writer.append(kit.records(1))
        writer.commit()
        assert waited(bell) < LONG
