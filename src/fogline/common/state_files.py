"""Small files that say how things are: whole or not at all on disk, and with a checksum.

The last line of a state file is `crc32 xxxxxxxx`, of all that is before it. Files of older versions
have none and are still read. What is rare to change and cannot be found out again is written twice:
when the file is damaged its copy takes its place. A damaged file is set aside, under a name that
begins with a dot and holds `.damaged-`, where `find_damaged` finds it until somebody removes it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from fogline.common.errors import DataError

_MARK = b"crc32 "
DAMAGED = ".damaged-"
"""In the name of a file that was set aside."""


class StateDamaged(DataError):  # noqa: N818
    """A file does not hold what was written to it."""

    def __init__(self, file: Path, reason: str, hint: str = "") -> None:
        super().__init__(f"{file} is damaged: {reason}", hint)
        self.file = file
        self.reason = reason


def sync(path: Path) -> None:
    """Everything written to this file, or every entry of this folder, is on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(path: Path, text: str) -> None:
    """A reader of `path` sees the old text or the new one, never a part."""
    replace_by(path, (text.encode(),))


def replace_by(path: Path, parts: Iterable[bytes]) -> None:
    """Like `replace`, with a text that need not be in memory as a whole."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, 0o666), "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    sync(path.parent)


def write_state(path: Path, text: str | Iterable[str], *, copy: bool = False) -> None:
    """On disk when this returns; with `copy`, twice. Raises `OSError`."""
    parts = (text,) if isinstance(text, str) else text
    if copy:
        parts = tuple(parts)
        replace_by(copy_of(path), _add_checksum(parts))
    replace_by(path, _add_checksum(parts))


def read_state(path: Path) -> str:
    """The text, with a line feed at its end. Where the file is damaged and its copy is not, the
    copy takes its place. Raises `FileNotFoundError`, `OSError` and `StateDamaged`."""
    data = path.read_bytes()
    try:
        if not has_checksum(data) and copy_of(path).exists():
            raise StateDamaged(path, "its checksum is missing")
        return decode_state(path, data)
    except StateDamaged:
        text = _of_copy(path)
        if text is None:
            raise
        with contextlib.suppress(OSError):
            set_aside(path)
            replace_by(path, _add_checksum((text,)))
        return text


def decode_state(path: Path, data: bytes) -> str:
    """The text of a state file with these bytes. Raises `StateDamaged`."""
    end = data.rfind(_MARK)
    body = memoryview(data)[: end if end >= 0 else len(data)]  # some are large
    if end >= 0 and data[end + len(_MARK) :] != b"%08x\n" % zlib.crc32(body):
        raise StateDamaged(path, "its checksum is wrong")
    if end < 0 and not data.endswith((b"\n", b"}")):  # older files end like this
        raise StateDamaged(path, "its end is missing" if data.strip(b"\0") else "it is empty")
    try:
        return str(body, "utf-8")
    except UnicodeDecodeError as error:
        raise StateDamaged(path, "it is not text") from error


def has_checksum(data: bytes) -> bool:
    return _MARK in data


def copy_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.copy")


def remove_state(path: Path) -> None:
    """With its copy, which goes first; one that is not there is no error."""
    copy_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def set_aside(path: Path) -> Path | None:
    """Out of the way, and found by `find_damaged`; nothing where it is not there any more."""
    aside = path.with_name(f".{path.name}{DAMAGED}{time.time_ns() // 1_000_000}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return None
    return aside


def find_damaged(folders: Iterable[Path]) -> Iterator[Path]:
    """What was set aside in these folders."""
    for folder in folders:
        with contextlib.suppress(OSError):
            names = sorted(name for name in os.listdir(folder) if DAMAGED in name)
            yield from (folder / name for name in names)


class SetAside:
    """What was set aside in the folders of somebody: looked for again and again, reported once
    each."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.files: list[str] = []
        self._report = report

    def look(self, folders: Iterable[Path]) -> None:
        found = [str(path) for path in find_damaged(folders)]
        for path in found:
            if path not in self.files:
                self._report(f"damaged, and set aside: {path}")
        self.files = found


def add_checksum(text: str) -> str:
    """A whole state file as text, for who writes it in another way."""
    return b"".join(_add_checksum((text,))).decode()


def _of_copy(path: Path) -> str | None:
    copy = copy_of(path)
    try:
        data = copy.read_bytes()
        return decode_state(copy, data) if has_checksum(data) else None
    except (OSError, StateDamaged):
        return None


def _add_checksum(parts: Iterable[str]) -> Iterator[bytes]:
    """The parts, a line feed if there is none at their end, and the checksum."""
    crc, last = 0, b""
    for part in parts:
        last = part.encode()
        crc = zlib.crc32(last, crc)
        yield last
    if not last.endswith(b"\n"):
        crc = zlib.crc32(b"\n", crc)
        yield b"\n"
    yield _MARK + b"%08x\n" % crc
