"""The file `manifest`: which data files there are, and up to where each log is in them.

It is replaced as a whole, so data and positions change together or not at all. What it does not
list does not exist. Its first line is the CRC-32 of the second, which is JSON.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from fogline.common.state_files import copy_of, set_aside
from fogline.common.state_files import replace as replace_file
from fogline.storage.errors import StoreDamaged

NAME = "manifest"
VERSION = 3
_READABLE = (1, 2, VERSION)
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file: event times `first` to `last`, arrivals `arrived` to `arrived_last`.

    `seq_first` and `seq_last` are the lowest and highest `seq`; a manifest of version 1 does not
    have them. `crc` is the CRC-32 of the whole file, not written before version 3.
    """

    name: str
    rows: int
    bytes: int
    first: int
    last: int
    arrived: int
    arrived_last: int
    seq_first: int = UNKNOWN
    seq_last: int = UNKNOWN
    crc: int | None = None


@dataclass(frozen=True, slots=True)
class LostFile:
    """A data file that was damaged and set aside: what was in it and is not here any more."""

    name: str
    rows: int
    first: int
    last: int
    seq_first: int
    seq_last: int
    reason: str
    found: int
    """When, in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A state of the history. Files are in the order in which their values arrived."""

    files: tuple[DataFile, ...] = ()
    positions: Mapping[str, int] = field(default_factory=dict)
    next_file: int = 0
    next_seq: int = 0
    version: int = VERSION
    """Of the file this was read from."""
    evicted_seq: int = UNKNOWN
    """The highest `seq` in a file that was evicted."""
    evicted_last: int | None = None
    """The latest event time in a file that was evicted."""
    lost: tuple[LostFile, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def with_flush(
        self, new: Iterable[DataFile], positions: Mapping[str, int], next_seq: int
    ) -> Manifest:
        files = (*self.files, *new)
        return replace(self, files=files, positions=dict(positions), next_seq=next_seq)

    def with_merge(self, old: Iterable[str], new: DataFile) -> Manifest:
        """The new file takes the place of the old ones, which are neighbours."""
        replaced = set(old)
        place = next(i for i, file in enumerate(self.files) if file.name in replaced)
        rest = [file for file in self.files if file.name not in replaced]
        return replace(self, files=(*rest[:place], new, *rest[place:]))

    def evict_files(self, names: Iterable[str]) -> Manifest:
        """These are evicted, and what was in them is noted."""
        left_out = set(names)
        evicted = [file for file in self.files if file.name in left_out]
        seqs, lasts = [file.seq_last for file in evicted], [file.last for file in evicted]
        before = [] if self.evicted_last is None else [self.evicted_last]
        return replace(
            self,
            files=tuple(file for file in self.files if file.name not in left_out),
            evicted_seq=max([self.evicted_seq, *seqs]),
            evicted_last=max([*before, *lasts], default=None),
        )

    def with_loss(self, file: DataFile, reason: str, now: int) -> Manifest:
        """It is damaged: what was in it counts as lost."""
        seqs = file.seq_first, file.seq_last
        lost = LostFile(file.name, file.rows, file.first, file.last, *seqs, reason, now)
        kept = tuple(other for other in self.files if other.name != file.name)
        return replace(self, files=kept, lost=(*self.lost, lost))

    def with_found(self, name: str, rows: int) -> Manifest:
        """So many of the rows of a lost file are here again."""
        left = (replace(f, rows=f.rows - rows) if f.name == name else f for f in self.lost)
        return replace(self, lost=tuple(file for file in left if file.rows > 0))

    @property
    def first_seq(self) -> int:
        """Nothing on disk has a lower number; 0 where there is nothing."""
        return min((file.seq_first for file in self.files), default=0)


def amount(rows: int, first: int, last: int) -> str:
    """So many values of a stretch of time, for people."""
    begin, end = (datetime.fromtimestamp(at / 1e6, UTC).isoformat() for at in (first, last))
    return f"{rows} values from {begin} to {end}"


def load(folder: Path) -> Manifest:
    """What the file says, or its copy where it is damaged; it is set aside then. An empty manifest
    where there is none. Raises `StoreDamaged`."""
    path = folder / NAME
    try:
        return read(path)
    except FileNotFoundError:
        return Manifest()
    except StoreDamaged as error:
        try:
            found = read(copy_of(path))
        except (FileNotFoundError, StoreDamaged):
            raise error from None
    set_aside(path)
    store(folder, found)
    return found


def read(path: Path) -> Manifest:
    """What one file says. Raises `FileNotFoundError` and `StoreDamaged`."""
    head, _, body = path.read_bytes().partition(b"\n")
    if head != b"%08x" % zlib.crc32(body):
        raise StoreDamaged(path, "the checksum is wrong")
    try:
        return _decode_manifest(json.loads(body))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreDamaged(path, "it cannot be understood") from error


def store(folder: Path, manifest: Manifest) -> None:
    """The manifest is on disk, twice, also after a power failure."""
    body = json.dumps(
        {
            "version": VERSION,
            "next_file": manifest.next_file,
            "next_seq": manifest.next_seq,
            "positions": dict(manifest.positions),
            "evicted": [manifest.evicted_seq, manifest.evicted_last],
            "files": [asdict(file) for file in manifest.files],
            "lost": [asdict(file) for file in manifest.lost],
        },
        separators=(",", ":"),
    )
    for path in (copy_of(folder / NAME), folder / NAME):
        replace_file(path, f"{zlib.crc32(body.encode()):08x}\n{body}")


def _decode_manifest(data: dict[str, object]) -> Manifest:
    version = data["version"]
    if not isinstance(version, int) or version not in _READABLE:
        raise ValueError("another version")
    files, positions = data["files"], data["positions"]
    next_file, next_seq = data["next_file"], data["next_seq"]
    if not isinstance(files, list) or not isinstance(positions, dict):
        raise TypeError("not a manifest")
    if not isinstance(next_file, int) or not isinstance(next_seq, int):
        raise TypeError("not a manifest")
    listed = tuple(DataFile(**file) for file in files)
    seq, last = _read_evicted(data.get("evicted", [UNKNOWN, None]))
    lost_files = data.get("lost", [])
    if not isinstance(lost_files, list):
        raise TypeError("not a manifest")
    lost = tuple(LostFile(**file) for file in lost_files)
    return Manifest(listed, positions, next_file, next_seq, version, seq, last, lost)


def _read_evicted(data: object) -> tuple[int, int | None]:
    """Older manifests do not contain it."""
    if not isinstance(data, list) or len(data) != 2:
        raise TypeError("not a manifest")
    seq, last = data
    if not isinstance(seq, int) or not isinstance(last, int | None):
        raise TypeError("not a manifest")
    return seq, last
