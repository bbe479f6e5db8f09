"""A store that dies at any moment loses nothing and doubles nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fogline.common import atomic_files
from fogline.log import lowest_position
from fogline.storage.ingest.log_to_store import Feeder
from fogline.storage.ingest.mapping import Readings
from fogline.storage.store import SiteStore
from tests.storage.kit import SMALL, numbers, write_log

pytestmark = pytest.mark.site

SOURCE = Readings(fields=("x",), entity="sensor", time="time")

CHILD = """
import os, sys
from pathlib import Path
from fogline.storage.ingest.log_to_store import Feeder
from fogline.storage.limits import StoreLimits
from fogline.storage.ingest.mapping import Readings
from fogline.storage.store import SiteStore

limits = StoreLimits(flush_rows=40, file_rows=1_000, merge_files=3)
store = SiteStore(Path(sys.argv[1]), limits=limits)
feeder = Feeder(store, Path(sys.argv[2]), Readings(fields=("x",), entity="sensor", time="time"))
while True:
    taken = feeder.step(2_000)
    store.maintain()
    os.write(1, b"%d %d\\n" % (store.state().rows, store.state().files))
    if not taken:
        store.flush()
        store.maintain()
        os.write(1, b"end\\n")
        sys.stdin.read()
"""


def start(store: Path, log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(store), str(log)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def kill_after(child: subprocess.Popen[bytes], lines: int, seconds: float) -> None:
    assert child.stdout is not None
    assert child.stdin is not None
    for _ in range(lines):
        line = child.stdout.readline()
        assert line
        if line == b"end\n":
            break
    time.sleep(seconds)
    child.kill()
    child.wait()
    child.stdout.close()
    child.stdin.close()


def finish(store: Path, log: Path) -> list[int]:
    with SiteStore(store, limits=SMALL) as opened:
        feeder = Feeder(opened, log, SOURCE)
        while feeder.step():
            pass
        found = numbers(opened)
        opened.flush()
        opened.maintain()
        assert numbers(opened) == found
        feeder.close()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    count, chance = 6_000, random.Random(seed)
    store, log = tmp_path / "store", tmp_path / "log"
    write_log(log, count)
    for _ in range(3):
        kill_after(start(store, log), chance.randint(1, 60), chance.random() * 0.02)
    assert finish(store, log) == list(range(count))


class Crash(BaseException):
    """The process is gone: nothing behind it runs."""


class Countdown:
    """Raises at the n-th call of anything that touches the disk, before or after it is done."""

    def __init__(self, calls: int, after: bool) -> None:
        self._left = calls
        self._after = after
        self.fired = False

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self.fired or (self._left < 0 and not self._after):
                self.fired = True
                raise Crash
            result = function(*arguments, **named)
            if self._left < 0:
                self.fired = True
                raise Crash
            return result

        return counted


def work(folder: Path, log: Path) -> None:
    """Feeds, flushes and merges; ends without closing, as if the power went."""
    store = SiteStore(folder, limits=SMALL)
    try:
        feeder = Feeder(store, log, SOURCE)
        while feeder.step(1_500):
            store.flush()
            store.maintain()
    finally:
        store._lock.close()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("calls", range(0, 60, 3))
def test_dead_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, after: bool
) -> None:
    count, log = 120, tmp_path / "log"
    write_log(log, count)
    countdown = Countdown(calls, after)
    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", countdown.wrap(pq.write_table))
        patch.setattr(atomic_files, "sync", countdown.wrap(atomic_files.sync))
        patch.setattr(Path, "replace", countdown.wrap(Path.replace))
        patch.setattr(Path, "unlink", countdown.wrap(Path.unlink))
        with pytest.raises(Crash):
            work(tmp_path / "store", log)
    assert countdown.fired
    assert finish(tmp_path / "store", log) == list(range(count))


def test_files_that_no_manifest_lists_are_removed(tmp_path: Path) -> None:
    log, store = tmp_path / "log", tmp_path / "store"
    write_log(log, 100)
    finish(store, log)
    kept = set((store / "data").iterdir())
    (store / "data" / "000000000099.parquet").write_bytes(b"half a file")
    assert finish(store, log) == list(range(100))
    assert set((store / "data").iterdir()) == kept


def test_the_log_keeps_what_is_only_in_memory(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_log(log, 100)
    with SiteStore(tmp_path / "store", limits=SMALL) as store:
        feeder = Feeder(store, log, SOURCE)
        assert feeder.step(500)
        assert lowest_position(log) == 0
        store.flush()
        feeder.step(500)
        assert lowest_position(log) == store.committed(log.name) > 0
        assert store.position(log.name) > store.committed(log.name)
