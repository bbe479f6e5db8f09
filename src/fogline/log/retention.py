"""Removing what nobody needs: whole segments, from the front, and never the one written last.

The decision is a pure function; it never gives up what a reader still needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fogline.log.files import removed, sources
from fogline.log.files.committed import Committed
from fogline.log.files.damage import forget_old
from fogline.log.files.positions import lowest_position
from fogline.log.files.segments import Segment, first_arrival, list_segments


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be kept: `age` in microseconds, `size` in bytes; nothing means no limit."""

    age: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A segment as the decision sees it; `newest` is an arrival none of its records is behind."""

    first: int
    end: int
    newest: int


def removable(stretches: Sequence[SegmentView], needed: int, limits: Limits, now: int) -> int:
    """How many of the stretches, counted from the front, are to be removed.

    The last one stays, and so does everything from position `needed` on.
    """
    end = stretches[-1].end if stretches else 0
    for count, stretch in enumerate(stretches[:-1]):
        too_old = limits.age is not None and stretch.newest < now - limits.age
        too_large = limits.size is not None and end - stretch.first > limits.size
        if stretch.end > needed or not (too_old or too_large):
            return count
    return max(len(stretches) - 1, 0)


def enforce(folder: Path, limits: Limits, now: int) -> int:
    """Removes what is to be removed; returns the bytes set free. May run beside a writer."""
    reader = Committed(folder)
    try:
        committed = reader.read()
    finally:
        reader.close()
    segments = [item for item in list_segments(folder) if item.first < committed]
    needed = min(_needed_position(folder, committed), sources.load(folder).position)
    stretches = _stretches(segments, committed)
    count = removable(stretches, needed, limits, now)
    if count:
        removed.store(folder, segments[count], committed)
    for segment in segments[:count]:
        segment.path.unlink(missing_ok=True)
    if not count:
        return 0
    forget_old(folder, stretches[count].first)
    return stretches[count].first - stretches[0].first


def _needed_position(folder: Path, committed: int) -> int:
    lowest = lowest_position(folder)
    return committed if lowest is None else lowest


def _stretches(segments: list[Segment], committed: int) -> list[SegmentView]:
    """Records of a segment are not newer than the first of the next one."""
    found = []
    for index, segment in enumerate(segments):
        following = segments[index + 1] if index + 1 < len(segments) else None
        end = following.first if following else committed
        arrival = first_arrival(following, committed) if following else None
        found.append(SegmentView(segment.first, end, arrival if arrival is not None else 1 << 62))
    return found
