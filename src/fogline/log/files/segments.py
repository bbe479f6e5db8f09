"""The segment files of one log: which there are, where a position is, which frames they hold."""

from __future__ import annotations

import contextlib
import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fogline.log.errors import LogError
from fogline.log.files.frames import HEAD, VERSION, BadFrame, Frame, check, decode_head, find_head

HEADER = struct.Struct("<6sHQ")
_MAGIC = b"FOGLOG"
_OLD = 1
_DIGITS = 20
_TOO_HIGH = "0922"
_WINDOW = 16 << 10
_SCAN = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One file; `first` is the position of its first byte, where its header stands."""

    first: int
    path: Path

    @property
    def frames(self) -> int:
        """The position of the first frame."""
        return self.first + HEADER.size

    def size(self) -> int:
        return self.path.stat().st_size

    def end(self) -> int:
        """The position behind the last byte of the file."""
        return self.first + self.size()


def header(first: int) -> bytes:
    return HEADER.pack(_MAGIC, VERSION, first)


def segment(folder: Path, first: int) -> Segment:
    return Segment(first, folder / f"{first:0{_DIGITS}}.seg")


# ── which there are ──────────────────────────────────────────────────────────────────────────────


def list_segments(folder: Path) -> list[Segment]:
    """All segments in order; none where there is no folder yet. Other files are left alone, and so
    are stray copies of segments."""
    return _sorted_out(folder)[0]


def list_strays(folder: Path) -> list[Segment]:
    """Copies of segments under another name, within what another segment holds."""
    return _sorted_out(folder)[1]


def _sorted_out(folder: Path) -> tuple[list[Segment], list[Segment]]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return [], []
    stems = (name[:-4] for name in names if name.endswith(".seg"))
    kept: list[Segment] = []
    strays: list[Segment] = []
    end = 0
    for item in sorted(segment(folder, int(stem)) for stem in stems if _is_number(stem)):
        try:
            if item.first < end and _is_foreign(item):
                strays.append(item)
                continue
            end = item.end()
        except FileNotFoundError:
            continue
        kept.append(item)
    return kept, strays


def _is_foreign(segment: Segment) -> bool:
    """Whether neither the header nor any of the first heads belong to a segment of that name."""
    with segment.path.open("rb") as file:
        fd = file.fileno()
        stop = min(segment.end(), segment.frames + _SCAN)
        return not (has_header(fd, segment) or scan(fd, segment, segment.frames, stop))


def _is_number(stem: str) -> bool:
    return len(stem) == _DIGITS and stem.isascii() and stem.isdigit() and stem < _TOO_HIGH


def locate(segments: list[Segment], position: int) -> int:
    """The index of the segment that holds the byte at `position`, −1 when it is before all."""
    return bisect_right(segments, position, key=lambda item: item.first) - 1


def has_header(fd: int, segment: Segment) -> bool:
    return os.pread(fd, HEADER.size, 0) == header(segment.first)


def require_current(folder: Path) -> None:
    """Raises `LogError` when the log was written by a version whose frames had no numbers."""
    for item in list_segments(folder)[:1]:
        with contextlib.suppress(FileNotFoundError), item.path.open("rb") as file:
            if file.read(HEADER.size) == HEADER.pack(_MAGIC, _OLD, item.first):
                text = f"{folder} is a log of format {_OLD}, and only format {VERSION} can be read"
                raise LogError(text, "let the earlier version finish with it, or move it away")


# ── which frames they hold ───────────────────────────────────────────────────────────────────────


def scan(fd: int, segment: Segment, start: int, stop: int) -> Frame | None:
    """The first frame at or behind `start` with a whole head; its body may be damaged."""
    while start < stop:
        data = os.pread(fd, min(_SCAN, stop - start), start - segment.first)
        found = find_head(data, start, stop)
        if found is not None or len(data) < HEAD.size:
            return found
        start += len(data) - HEAD.size + 1
    return None


def heads(segment: Segment, start: int, stop: int) -> Iterator[Frame]:
    """The frames from `start` to `stop` by their heads, without their bodies and without checking
    these. Damaged heads are passed over."""
    with segment.path.open("rb", buffering=0) as file:
        fd = file.fileno()
        data, base = b"", start
        while start < stop:
            if start + HEAD.size > base + len(data):
                data, base = os.pread(fd, _WINDOW, start - segment.first), start
            try:
                frame: Frame | None = decode_head(data, start - base, start, stop)
            except BadFrame:
                frame = scan(fd, segment, start, stop)
            if frame is None:
                return
            yield frame
            start = frame.end


def checked_frames(segment: Segment, start: int) -> Iterator[Frame]:
    """The frames from `start` to the end of the file; raises `BadFrame` at the first bad one."""
    with segment.path.open("rb", buffering=0) as file:
        fd, stop = file.fileno(), segment.end()
        while start < stop:
            data = os.pread(fd, _WINDOW, start - segment.first)
            frame = decode_head(data, 0, start, stop)
            if frame.size > len(data):
                data = os.pread(fd, frame.size, start - segment.first)
                frame = decode_head(data, 0, start, stop)
            check(frame)
            yield frame
            start = frame.end


def first_arrival(segment: Segment, committed: int) -> int | None:
    """When the first frame of a segment arrived; nothing when there is none that can be read."""
    try:
        return next((frame.arrival for frame in heads(segment, segment.frames, committed)), None)
    except FileNotFoundError:
        return None
