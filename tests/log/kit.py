"""What several test files of the log share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from fogline.log import LogReader, LogRecord, LogWriter
from fogline.log.files import committed
from fogline.log.files.segments import heads, list_segments

TOPIC = "city/+"


def writer(folder: Path, segment_bytes: int = 64 << 20, min_free_bytes: int = 0) -> LogWriter:
    return LogWriter(folder, TOPIC, segment_bytes=segment_bytes, min_free_bytes=min_free_bytes)


def records(count: int, start: int = 0, size: int = 20) -> list[LogRecord]:
    return [
        (f"city/{i % 3}", f"{i:08d}".encode().ljust(size, b"."))
        for i in range(start, start + count)
    ]


def write(folder: Path, commits: list[list[LogRecord]], segment_bytes: int = 64 << 20) -> list[int]:
    """One commit per list; returns the end of each."""
    with writer(folder, segment_bytes) as log:
        ends = []
        for commit in commits:
            log.append(commit)
            ends.append(log.commit())
    return ends


def read(folder: Path, position: int | None = None, max_bytes: int = 4 << 20) -> list[LogRecord]:
    """Everything that can be read from a position, or from the first one."""
    with LogReader(folder) as log:
        return follow(log, log.first() if position is None else position, max_bytes)


def follow(
    log: LogReader, position: int, max_bytes: int = 4 << 20, stop: int = 1 << 62
) -> list[LogRecord]:
    """Everything from a position on, up to the first read that ends at or behind `stop`."""
    found: list[LogRecord] = []
    while position < stop:
        more, position = log.read(position, max_bytes)
        if not more:
            break
        found += more
    return found


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.seg"))


def copy(folder: Path, target: Path) -> Path:
    """A copy of the log's files, without its lock."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target)
    target.mkdir()
    for path in folder.iterdir():
        if path.is_file() and path.name != "lock":
            (target / path.name).write_bytes(path.read_bytes())
    return target


def flip(path: Path, offset: int, size: int = 1) -> None:
    """Changes a bit of each byte."""
    data = bytearray(path.read_bytes())
    for at in range(len(data))[offset:][:size]:
        data[at] ^= 1
    path.write_bytes(data)


def set_committed(folder: Path, position: int) -> None:
    """`committed` as it was, or would be, when the log ended there."""
    fd = committed.create(folder)
    found = [f for s in list_segments(folder) for f in heads(s, s.frames, s.end())]
    number = sum(frame.count for frame in found if frame.end <= position)
    committed.store(fd, committed.End(position, number))
    os.close(fd)
