"""Logs: their segments, what says how far they are, and the state files beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from fogline.errors import FoglineError
from fogline.fsck.findings import NOTHING, Finding, unreadable
from fogline.fsck.state import LOG, check_state, find_set_aside
from fogline.log import LogDamaged, LogError, LogReader
from fogline.log.names import MAX_TOPIC, folder_name
from fogline.log.segments import list_segments


def check_log(folder: Path) -> Iterator[Finding]:
    """All of one log."""
    try:
        yield from check_segments(folder)
        yield from _check_topic(folder)
    except OSError as error:
        yield unreadable(Path(error.filename or folder), error)
    yield from check_state(folder, LOG)
    yield from find_set_aside(folder, "")
    yield from find_set_aside(folder, "readers")


def check_segments(folder: Path) -> Iterator[Finding]:
    """Every record of every segment is read once, by the reader that sites use."""
    segments = list_segments(folder)
    if not segments:
        return
    ends = [segment.first for segment in segments[1:]]
    with LogReader(folder) as reader:
        committed = reader.committed()
        if committed < segments[-1].first:
            hint = "start the site: the end is found in the segments"
            yield Finding(folder / "committed", "it holds no position of the log", NOTHING, hint)
            committed = segments[-1].first + segments[-1].path.stat().st_size
        for segment, end in zip(segments, [*ends, committed], strict=True):
            yield from _check_segment(reader, segment.path, segment.first, min(end, committed))


def _check_segment(reader: LogReader, path: Path, position: int, end: int) -> Iterator[Finding]:
    lost = f"records of the log between the positions {position} and {end}"
    try:
        while position < end:
            before = position
            _, position = reader.frames(position)
            if position == before:
                break
    except LogDamaged as error:
        hint = "restore the file from a backup; without one, the rest of the segment is skipped"
        yield Finding(path, error.message, lost, error.hint or hint)
    except FoglineError as error:
        yield Finding(path, error.message, lost, error.hint or "restore the file from a backup")


def _check_topic(folder: Path) -> Iterator[Finding]:
    """The file `topic` fits the name of the folder, where that is made from the topic."""
    path = folder / "topic"
    with contextlib.suppress(FileNotFoundError):
        with path.open("rb") as file:
            topic = file.read(MAX_TOPIC + 1).decode("utf-8", "replace")
        if folder.parent.name in ("log", "logs") and _folder_of(topic) != folder.name:
            hint = "start the site: it is written anew"
            yield Finding(path, "it is not the topic of this log", NOTHING, hint)


def _folder_of(topic: str) -> str:
    try:
        return folder_name(topic)
    except LogError:
        return ""
