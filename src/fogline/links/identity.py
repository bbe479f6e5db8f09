"""The number of a log, by which other logs know where records come from.

It is made at random, once, by whoever first needs it, and stays with the log's files: a log that is
deleted and made anew has another one, so its positions are not taken for the old ones.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
from hashlib import blake2b
from pathlib import Path

from fogline.common.state_files import StateDamaged, copy_of, read_state, sync, write_state
from fogline.log import LogDamaged
from fogline.log.errors import write_failed

_FILE = "id"
_HIGHEST = 1 << 62


def number_of(folder: Path) -> int:
    """The number of the log in `folder`: 62 bits, never 0; on disk when this returns."""
    path = folder / _FILE
    try:
        if not path.exists():
            _make(path)
        return _load(path)
    except OSError as error:
        raise write_failed(folder, error) from error


def source_of(number: int, topic: str) -> int:
    """The source under which logs store what the log of this number sends to a topic.

    A log may send its records to several topics, and one with wildcards takes more than one of
    them, so the number alone would not distinguish their positions.
    """
    key = number.to_bytes(8, "little")
    digest = blake2b(topic.encode(), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little") % (_HIGHEST - 1) + 1


def _make(path: Path) -> None:
    """Whole or not at all, and of several who try at once one wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{_FILE}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        write_state(new, str(random.SystemRandom().randrange(1, _HIGHEST)))
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)
    sync(path.parent)


def _load(path: Path) -> int:
    try:
        text = read_state(path)
    except StateDamaged as error:
        raise LogDamaged(path, 0, error.reason, "restore it from a backup") from error
    if not text.strip().isdecimal() or not 0 < int(text) < _HIGHEST:
        raise LogDamaged(path, 0, "it holds no number of a log", "restore it from a backup")
    if not copy_of(path).exists():
        write_state(copy_of(path), text)
    return int(text)
