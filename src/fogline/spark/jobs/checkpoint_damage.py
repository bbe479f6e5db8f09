"""What is damaged in the checkpoint of a query: files that do not fit their checksums, and those
that cannot be what Spark wrote.

Spark checks a file when it reads it and ends the query then. Here all are looked at, so that it can
be said which file it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEAD = struct.Struct(">4sI")
_MAGIC = b"crc\0"
_READ_BYTES = 1 << 20
_TEXT_LOGS = ("offsets", "commits")
_WHAT_TO_DO = (
    "restore the file from a backup, or move {folder} away: the job then begins anew where it was "
    "deployed, or with the oldest that is kept, and results may come twice"
)


@dataclass(frozen=True, slots=True)
class CheckpointDamage:
    file: Path
    offset: int
    reason: str

    def text(self, checkpoint: Path) -> str:
        """In one line, with what to do."""
        what = f"its checkpoint is damaged: {self.file} at byte {self.offset}: {self.reason}"
        return f"{what}; the job does not run ({self.hint(checkpoint)})"

    def hint(self, checkpoint: Path) -> str:
        return _WHAT_TO_DO.format(folder=checkpoint)


def checkpoint_files(checkpoint: Path) -> Iterator[Path]:
    """All plain files but the checksums, in order; links are not followed."""
    for inner, folders, names in os.walk(checkpoint):
        folders.sort()
        for name in sorted(names):
            path = Path(inner, name)
            if not (name.startswith(".") or name.endswith(".tmp")) and _is_plain(path):
                yield path


def find_damage(checkpoint: Path) -> Iterator[CheckpointDamage]:
    """File by file; one that Spark has removed meanwhile is none."""
    for path in checkpoint_files(checkpoint):
        if (found := file_damage(checkpoint, path)) is not None:
            yield found


def find_useless_sums(checkpoint: Path) -> Iterator[Path]:
    """Checksum files that are none: what they are for is read unchecked."""
    for path in map(_sums_of, checkpoint_files(checkpoint)):
        with contextlib.suppress(FileNotFoundError):
            if not _chunk(path.read_bytes()):
                yield path


def file_damage(checkpoint: Path, path: Path) -> CheckpointDamage | None:
    """What is wrong with one file of it. Raises `OSError` where it cannot be read."""
    try:
        size = path.stat().st_size
        if not size:
            return CheckpointDamage(path, 0, "it is empty")
        bad = _first_bad_chunk(path, size)
        if bad is not None:
            return CheckpointDamage(path, bad, "the checksum is wrong")
        if path.parent.name in _TEXT_LOGS and path.parent.parent == checkpoint:
            return _wrong_text(path, path.read_bytes().split(b"\n"))
        if path == checkpoint / "metadata":
            return _wrong_text(path, [b"v1", path.read_bytes()])
    except FileNotFoundError:
        return None
    return None


def _sums_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _chunk(sums: bytes) -> int:
    """How many bytes each checksum is of; 0 where it is no file of checksums."""
    if len(sums) < _HEAD.size:
        return 0
    magic, chunk = _HEAD.unpack_from(sums)
    return int(chunk) if magic == _MAGIC and chunk <= _READ_BYTES else 0


def _first_bad_chunk(path: Path, size: int) -> int | None:
    """Where a file does not fit its checksum file; nothing also where there is none."""
    try:
        sums = _sums_of(path).read_bytes()
    except FileNotFoundError:
        return None
    chunk = _chunk(sums)
    if not chunk:
        return None  # Spark goes on without checksums, too
    if len(sums) != _HEAD.size + 4 * -(-size // chunk):
        return size
    return _find_mismatch(path, chunk, sums)


def _find_mismatch(path: Path, chunk: int, sums: bytes) -> int | None:
    at, place = 0, _HEAD.size
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES // chunk * chunk):
            for begin in range(0, len(data), chunk):
                crc = zlib.crc32(data[begin : begin + chunk])
                if crc.to_bytes(4, "big") != sums[place : place + 4]:
                    return at + begin
                place += 4
            at += len(data)
    return None


def _wrong_text(path: Path, lines: list[bytes]) -> CheckpointDamage | None:
    """A version, then JSON or, for a source without a position, a dash."""
    version, at = lines[0], len(lines[0]) + 1
    if not version.startswith(b"v") or not version[1:].isdigit():
        return CheckpointDamage(path, 0, "it does not begin with a version")
    for line in lines[1:]:
        try:
            if line.strip() not in (b"", b"-"):
                json.loads(line)
        except ValueError:
            return CheckpointDamage(path, at, "it is not JSON")
        at += len(line) + 1
    return None


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
