"""A writer killed at any moment loses nothing that it reported as committed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fogline.log import LogBusy, LogReader
from tests.log.kit import follow, writer

pytestmark = pytest.mark.site

CHILD = """
import os, sys
from pathlib import Path
from fogline.log import LogWriter

log = LogWriter(Path(sys.argv[1]), "city/+", segment_bytes=20_000, min_free_bytes=0)
number = int(sys.argv[2])
while True:
    size = number % 40 + 1
    log.append([("city/1", b"%d" % i) for i in range(number, number + size)])
    number += size
    os.write(1, b"%d %d\\n" % (number, log.commit()))
"""


def start(folder: Path, number: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(number)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )


def first_report(child: subprocess.Popen[bytes]) -> bytes:
    """Waits for the first commit."""
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line
    return line


def killed(child: subprocess.Popen[bytes], first: bytes) -> tuple[int, int]:
    """What the child last said: how many records are committed, up to which position."""
    assert child.stdout is not None
    child.kill()
    whole = (first + child.stdout.read()).rpartition(b"\n")[0]
    child.wait()
    child.stdout.close()
    number, position = whole.splitlines()[-1].split()
    return int(number), int(position)


@pytest.mark.parametrize("seed", range(5))
def test_everything_reported_is_there(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    child = start(folder, 0)
    first = first_report(child)
    time.sleep(chance.random() * 0.1)
    count, position = killed(child, first)
    with writer(folder) as log:
        assert log.position >= position
    with LogReader(folder) as reader:
        found = [int(payload) for _, payload in follow(reader, 0)]
        assert found == list(range(len(found)))
        assert len(found) >= count
        behind = [int(payload) for _, payload in follow(reader, position)]
        assert behind == found[count:]


def test_another_process_is_turned_away_until_the_writer_dies(folder: Path) -> None:
    child = start(folder, 0)
    first = first_report(child)
    with pytest.raises(LogBusy, match="another process"):
        writer(folder)
    killed(child, first)
    writer(folder).close()
