"""A full disk: the log stays as it was, and the writer goes on when there is space again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fogline.log import LogError, LogFull, LogReader
from tests.log.kit import TOPIC, read, records, segments, writer

CHILD = """
import resource, signal, sys
from pathlib import Path
from fogline.log import LogFull, LogWriter

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = LogWriter(Path(sys.argv[1]), "t", min_free_bytes=0)
log.append([("t", b"a" * 1000)])
end = log.commit()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
for size in (100_000, 1_000_000):
    try:
        log.append([("t", b"b" * size)] * 10)
        log.commit()
        sys.exit("there should be no space")
    except LogFull:
        pass
    assert log.position == end
    [segment] = Path(sys.argv[1]).glob("*.seg")
    assert segment.stat().st_size == end
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
log.append([("t", b"c" * 1_000_000)])
log.commit()
log.close()
"""


@pytest.mark.site
def test_a_real_limit_on_the_size_of_files(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert [payload[:1] for _, payload in read(folder)] == [b"a", b"c"]


class Disk:
    """Stands in for `os`: the n-th call of one function fails, writing a part first."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str, fails_at: int, code: int) -> None:
        self.calls = 0
        real = getattr(os, name)

        def failing(*args: Any) -> Any:
            self.calls += 1
            if self.calls == fails_at:
                if name == "pwritev":
                    os.pwrite(args[0], bytes(args[1][0])[:5], args[2])
                raise OSError(code, os.strerror(code))
            return real(*args)

        patch.setattr(os, name, failing)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("name", ["pwritev", "fdatasync", "fsync", "pwrite", "open"])
@pytest.mark.parametrize("fails_at", [1, 2, 3])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 64 << 20])
def test_a_failing_call_takes_the_commit_back(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    fails_at: int,
    code: int,
    segment_bytes: int,
) -> None:
    with writer(folder, segment_bytes) as log:
        log.append(records(3))
        end = log.commit()
        with monkeypatch.context() as patch:
            disk = Disk(patch, name, fails_at, code)
            try:
                log.append([(TOPIC, bytes(600_000))] * 6)
                log.commit()
            except LogError as error:
                assert isinstance(error, LogFull) == (code != errno.EIO)  # noqa: PT017
            failed = disk.calls >= fails_at
        if failed:
            assert log.position == LogReader(folder).committed() == end
            assert len(segments(folder)) == 1
            assert segments(folder)[0].stat().st_size == end
        log.append(records(2, start=3))
        log.commit()
    small = [record for record in read(folder) if len(record[1]) < 600_000]
    assert small == records(5)


def test_when_taking_back_fails_the_writer_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = writer(folder)
    log.append(records(3))
    log.commit()
    with monkeypatch.context() as patch:
        Disk(patch, "fdatasync", 1, errno.EIO)
        Disk(patch, "truncate", 1, errno.EIO)
        log.append(records(1))
        with pytest.raises(LogError):
            log.commit()
    with pytest.raises(LogError, match="open it again"):
        log.append(records(1))
    log.close()
    with writer(folder) as again:
        again.append(records(1, start=3))
        again.commit()
    assert read(folder)[-1:] == records(1, start=3)


def test_some_space_is_kept_free(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs
    with writer(folder, min_free_bytes=1 << 20) as log:
        log.append(records(3))
        end = log.commit()
        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", lambda path: _Free(1 << 20))
            log.append(records(3))
            with pytest.raises(LogFull, match="kept free"):
                log.commit()
        assert os.statvfs is real
        assert log.commit() == end
        log.append(records(3, start=3))
        log.commit()
    assert read(folder) == records(6)


class _Free:
    f_frsize = 1

    def __init__(self, free: int) -> None:
        self.f_bavail = free


@pytest.mark.parametrize("new", [True, False])
def test_everything_is_on_disk_before_committed_moves(
    folder: Path, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    steps: list[tuple[str, int]] = []
    with writer(folder) as log, LogReader(folder) as reader:
        if not new:
            log.append(records(1))
            log.commit()
        before = log.position
        for name in ("fdatasync", "fsync"):
            note = partial(lambda name, fd: steps.append((name, reader.committed())), name)
            monkeypatch.setattr(os, name, note)
        log.append(records(1))
        log.commit()
        assert reader.committed() > before
    assert steps == [(name, before) for name in ("fdatasync", "fsync")[: 1 + new]]
