"""Logs: their segments, what says how far they are, and the state files beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from fogline.fsck.findings import NOTHING, Finding, unreadable
from fogline.fsck.state import LOG, check_state, find_set_aside
from fogline.log import LogError
from fogline.log.check import check_log as find_problems
from fogline.log.files.names import MAX_TOPIC, folder_name


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
    """Every record of every segment is read once."""
    hint = "restore the file from a backup; without one, readers go on behind the damage"
    for found in find_problems(folder):
        where = f" at byte {found.offset}" if found.offset else ""
        yield Finding(found.path, found.text + where, _describe_lost(found.records), hint)


def _describe_lost(records: int) -> str:
    if not records:
        return NOTHING
    if records < 0:
        return "records, how many is not known"
    return f"{records:,} record{'s' * (records != 1)}"


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
