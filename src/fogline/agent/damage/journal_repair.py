"""Repairing logs from the broker's journal: a damaged frame is made again as it was written.

A frame that came from the journal names, as its epoch, the journal's position behind its messages,
and its head holds the checksum of all of it. So what is made again is written only if it is, bit by
bit, what was there. It takes a whole head, and a journal that still holds the messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from fogline.broker.mosquitto.journal import load_registry
from fogline.broker.topics import matches, split_share
from fogline.common import atomic_files as log_disk
from fogline.links.batch import PREFIX
from fogline.log import LogError, LogReader, LogRecord
from fogline.log.files.damage import Damage
from fogline.log.files.frames import HEAD, BadFrame, Frame
from fogline.log.files.segments import Segment, heads, list_segments, locate
from fogline.log.pending import Pending

_MOST_TRIES = 1000
"""Messages that were left out as repetitions move those behind them; at most by so many."""


def repair_from_journal(folder: Path, topic: str, damage: Damage, journal: Path) -> bool:
    """Whether the damaged frame of the log of `topic` is whole again, on disk."""
    segments = list_segments(folder)
    index = locate(segments, damage.position)
    if index < 0:
        return False
    try:
        registry = load_registry(journal)
        frame = next(heads(segments[index], damage.position, damage.end), None)
        if frame is None or frame.position != damage.position or frame.source != registry.source:
            return False
        begin, before = _batch_of(segments[: index + 1], frame, registry.starts.get(topic, 0))
        found = list(_messages(journal, split_share(topic)[1], begin, frame.epoch))
    except (LogError, BadFrame, OSError):
        return False
    return any(_write_again(segments[index], frame, part) for part in _parts(found, frame, before))


def _batch_of(segments: list[Segment], frame: Frame, start: int) -> tuple[int, int]:
    """Where in the journal the frame's batch begins, and how many of its records are in frames
    before this one."""
    begin, before = start, 0
    for segment in segments[-2:]:
        for other in heads(segment, segment.frames, frame.position):
            if other.source != frame.source:
                continue
            if other.epoch < frame.epoch:
                begin, before = other.epoch, 0
            else:
                before += other.count
    return begin, before


def _messages(journal: Path, pattern: str, begin: int, end: int) -> Iterator[LogRecord]:
    with LogReader(journal) as reader:
        position = max(begin, reader.first())
        while position < end:
            frames, position = reader.frames(position)
            if not frames:
                return
            for frame in frames:
                if frame.end <= end:
                    matching = (record for record in frame.records() if matches(pattern, record[0]))
                    yield from (record for record in matching if not record[0].startswith(PREFIX))


def _parts(found: list[LogRecord], frame: Frame, before: int) -> Iterator[list[LogRecord]]:
    """What the frame may have held: so many messages one after the other."""
    starts = range(len(found) - frame.count + 1)
    likely = [at for at in starts if at >= before]
    for at in islice([*likely, *(at for at in starts if at < before)], _MOST_TRIES):
        yield found[at : at + frame.count]


def _write_again(segment: Segment, frame: Frame, records: list[LogRecord]) -> bool:
    pending = Pending(frame.source, frame.epoch, frame.arrival)
    if pending.fill(records) is not None:
        return False
    body = pending.body(frame.last)
    head = body.head(frame.position, frame.number)
    if head != frame.data[frame.at : frame.at + HEAD.size]:
        return False
    fd = os.open(segment.path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, head + body.records, frame.position - segment.first)
    finally:
        os.close(fd)
    log_disk.sync(segment.path)
    return True
