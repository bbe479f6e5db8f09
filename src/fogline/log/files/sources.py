"""The file `sources`: the last epoch of every job that wrote to the log, up to a position.

It lets the last epoch of a source be found without reading the whole log, and after retention has
removed the frames that carried it. The file may lag behind the log, never lead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fogline.common.state_files import (
    StateDamaged,
    decode_state,
    has_checksum,
    set_aside,
    write_state,
)
from fogline.log.files.segments import Segment, heads, list_segments, locate

NAME = "sources"


@dataclass(slots=True)
class SourceEpochs:
    """The last epoch per source among all frames before `position`."""

    position: int = 0
    epochs: dict[int, int] = field(default_factory=dict)


def load(folder: Path) -> SourceEpochs:
    """What the file says; position 0 when there is none, or it is damaged and set aside. One of an
    older version counts as none: it could have lost lines."""
    path = folder / NAME
    try:
        data = path.read_bytes()
        return _decode_sources(decode_state(path, data)) if has_checksum(data) else SourceEpochs()
    except FileNotFoundError:
        return SourceEpochs()
    except (ValueError, StateDamaged):
        set_aside(path)
        return SourceEpochs()


def _decode_sources(text: str) -> SourceEpochs:
    head, *lines = text.splitlines()
    pairs = [line.split(" ") for line in lines]
    return SourceEpochs(int(head), {int(source): int(epoch) for source, epoch in pairs})


def store(folder: Path, position: int, epochs: dict[int, int]) -> None:
    lines = [str(position), *(f"{source} {epoch}" for source, epoch in sorted(epochs.items()))]
    write_state(folder / NAME, "\n".join(lines))


def load_until(folder: Path, committed: int) -> SourceEpochs:
    """The sources of everything committed: what the file says, and the frames behind that."""
    sources = load(folder)
    if sources.position > committed:
        sources = SourceEpochs()
    segments = list_segments(folder)
    try:
        for index in range(max(locate(segments, sources.position), 0), len(segments)):
            stop = segments[index + 1].first if index + 1 < len(segments) else committed
            _follow(segments[index], sources, min(stop, committed))
    except FileNotFoundError:
        # Retention was faster; by now the file knows about what it removed.
        return load_until(folder, committed)
    return SourceEpochs(committed, sources.epochs)


def _follow(segment: Segment, sources: SourceEpochs, stop: int) -> None:
    for frame in heads(segment, max(segment.frames, sources.position), stop):
        if frame.source:
            sources.epochs[frame.source] = frame.epoch
