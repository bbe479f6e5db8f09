"""Finding the end of a log that was not closed, and cutting off what lies behind it.

At most one commit is in flight when a writer dies. So a place that cannot be read with two commits
or more behind it was acknowledged and got damaged later: that is reported, never cut off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from fogline.log import disk
from fogline.log.errors import LogDamaged
from fogline.log.frames import BadFrame
from fogline.log.segments import (
    Segment,
    check_header,
    checked_frames,
    has_header,
    heads,
    list_segments,
    locate,
)

_HINT = "truncate the file there, or move it away, to go on without what follows"


def find_end(folder: Path, claimed: int | None) -> int:
    """The end of the last whole commit, where `claimed` is what `committed` says, if anything.

    Raises `LogDamaged` rather than give up anything that was committed.
    """
    segments = list_segments(folder)
    if not segments:
        return claimed or 0
    if claimed is not None and _is_boundary(segments, claimed):
        for segment in segments[: locate(segments, claimed - 1) + 1]:
            check_header(segment)
        return _last_commit(segments, claimed) or claimed
    return _search(segments)


def cut(folder: Path, end: int) -> None:
    """Removes everything behind `end`; what is before it is on disk afterwards."""
    segments = list_segments(folder)
    for segment in reversed(segments):
        if segment.first >= end:
            segment.path.unlink()
        elif segment.first + segment.size() > end:
            os.truncate(segment.path, end - segment.first)
    disk.sync(folder)


def sync_from(folder: Path, position: int) -> None:
    """Everything from `position` on is on disk."""
    segments = list_segments(folder)
    for segment in segments[max(locate(segments, position), 0) :]:
        disk.sync(segment.path)
    disk.sync(folder)


def _search(segments: list[Segment]) -> int:
    """The end when `committed` is of no use: the last commit in the last segment that has one."""
    for segment in segments[:-1]:
        check_header(segment)
    for segment in reversed(segments):
        if end := _last_commit(segments, segment.first):
            return end
    return segments[0].first


def _is_boundary(segments: list[Segment], position: int) -> bool:
    """Whether a frame starts or ends at `position`, judged by as little reading as will do."""
    index = locate(segments, position)
    if index < 0:
        return False
    segment = segments[index]
    end = segment.first + segment.size()
    if position in (segment.first, segment.frames, end):
        return True
    return position < end and (_is_frame(segment, position) or _walk_meets(segment, position))


def _is_frame(segment: Segment, position: int) -> bool:
    try:
        return next(checked_frames(segment, position), None) is not None
    except BadFrame:
        return False


def _walk_meets(segment: Segment, position: int) -> bool:
    """Whether the frames from the segment's start on meet `position`; damage on the way leaves
    that open and is raised."""
    at = segment.frames
    try:
        for frame in heads(segment, at, segment.first + segment.size()):
            at = frame.end
            if at >= position:
                break
    except BadFrame as error:
        raise LogDamaged(segment.path, at, str(error), _HINT) from error
    return at == position


def _last_commit(segments: list[Segment], start: int) -> int:
    """The end of the last whole commit behind `start`, 0 when there is none."""
    end, at = 0, start
    for segment in segments[max(locate(segments, start), 0) :]:
        if segment.first > at or not has_header(segment):
            return _unless_damaged(segments, at, end)
        at = max(at, segment.frames)
        try:
            for frame in checked_frames(segment, at):
                at = frame.end
                end = at if frame.last else end
        except BadFrame:
            return _unless_damaged(segments, at, end)
    return end


def _unless_damaged(segments: list[Segment], bad: int, end: int) -> int:
    """`end`, where what follows is a commit that was in flight."""
    if len(list(islice(_commits_behind(segments, bad), 2))) > 1:
        file = segments[max(locate(segments, bad), 0)].path
        raise LogDamaged(file, bad, "there are whole commits behind this place", _HINT)
    return end


def _commits_behind(segments: list[Segment], bad: int) -> Iterator[int]:
    """The ends of the commits that can be read behind a bad place: behind the frame there if its
    length makes sense, and in all later segments."""
    for segment in segments[max(locate(segments, bad), 0) :]:
        start = segment.frames if bad <= segment.first else _behind(segment, bad)
        try:
            for frame in checked_frames(segment, start):
                if frame.last:
                    yield frame.end
        except BadFrame:
            continue


def _behind(segment: Segment, bad: int) -> int:
    """Where the bad frame at `bad` ends by its length, the end of the file when that is bad too."""
    end = segment.first + segment.size()
    try:
        return next(heads(segment, bad, end)).end
    except (BadFrame, StopIteration):
        return end
