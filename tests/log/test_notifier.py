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

from fogline.log import LogNotifier, SiteLog
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
def notifier() -> Iterator[LogNotifier]:
    made = LogNotifier()
    yield made
    made.close()


def waited(notifier: LogNotifier, longest: float = LONG) -> float:
    begun = time.monotonic()
    notifier.wait(longest)
    return time.monotonic() - begun


def quiet(notifier: LogNotifier) -> None:
    """Takes what has rung so far."""
    while waited(notifier, 0.2) < 0.15:
        pass


@pytest.mark.site
@needs_inotify
def test_rings_for_what_another_process_writes(notifier: LogNotifier, tmp_path: Path) -> None:
    site = SiteLog(tmp_path / "log", min_free_bytes=0)
    with site.writer("a"):
        pass
    with site.reader("a") as reader:
        notifier.watch([site.folder("a")])
        quiet(notifier)
        command = [sys.executable, "-c", WRITER, str(site.root)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            process.communicate(b"\n")
            while reader.committed() == 0:
                assert waited(notifier) < LONG


@needs_inotify
def test_rings_for_a_log_that_is_not_there_yet_and_for_one_that_comes_again(
    notifier: LogNotifier, tmp_path: Path
) -> None:
    site = SiteLog(tmp_path / "log", min_free_bytes=0)
    folder = site.folder("a")
    notifier.watch([folder])
    for _ in range(2):
        with site.writer("a") as writer, site.reader("a") as reader:
            quiet(notifier)
            writer.append(kit.records(1))
            writer.commit()
            assert waited(notifier) < LONG
            assert reader.committed() > 0
        shutil.rmtree(site.root)
        assert waited(notifier) < LONG


def test_is_rung_by_another_thread(notifier: LogNotifier, tmp_path: Path) -> None:
    notifier.watch([tmp_path])
    notifier.notify()
    assert waited(notifier) < LONG
    quiet(notifier)
    threading.Timer(0.1, notifier.notify).start()
    assert waited(notifier) < LONG


def test_where_the_system_cannot_tell_waits_are_short(tmp_path: Path) -> None:
    notifier = LogNotifier(same_machine=False)
    notifier.watch([tmp_path])
    assert waited(notifier) < 1
    notifier.close()


@needs_inotify
def test_with_nothing_to_watch_it_does_not_look_again_and_again(notifier: LogNotifier) -> None:
    assert waited(notifier, 0.3) >= 0.29


@needs_inotify
def test_nothing_rings_while_nothing_is_written(notifier: LogNotifier, tmp_path: Path) -> None:
    site = SiteLog(tmp_path / "log", min_free_bytes=0)
    with site.writer("a") as writer, site.writer("b") as other:
        notifier.watch([site.folder("a")])
        quiet(notifier)
        other.append(kit.records(1))
        other.commit()
        assert waited(notifier, 0.3) >= 0.29
        writer.append(kit.records(1))
        writer.commit()
        assert waited(notifier) < LONG
