"""Which data files are still what was written: all when the store opens, one that changed on disk
at the next question, and each again after a day.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fogline.storage.files import data_files
from fogline.storage.files.manifest import DataFile

AGAIN_US = 24 * 3600 * 1_000_000
_LOOK_US = 1_000_000

_Stamp = tuple[int, int, int]


class Verified:
    """For one thread at a time. Times are microseconds of a steady clock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[_Stamp, int]] = {}
        """By name: how the file looked when it was right, and when that was."""
        self._looked = -_LOOK_US

    def check(self, file: DataFile, now: int) -> str:
        """What is wrong with it, now; empty where nothing is."""
        path = self._folder / file.name
        stamp = _stamp(path)
        wrong = data_files.what_is_wrong(path, file)
        if not wrong and stamp is not None:
            self._known[file.name] = stamp, now
        return wrong

    def find_changed(self, listed: Iterable[DataFile], now: int) -> list[DataFile]:
        """Those that do not look as they did when they were right; none within a second of the last
        look, which costs a call of the system for each."""
        if now - self._looked < _LOOK_US:
            return []
        self._looked = now
        return [file for file in listed if self._looks(file) != _stamp(self._folder / file.name)]

    def due(self, listed: Iterable[DataFile], now: int) -> DataFile | None:
        """The first that was not looked at for a day."""
        for file in listed:
            if now - self._known.get(file.name, (None, -AGAIN_US))[1] >= AGAIN_US:
                return file
        return None

    def note_new(self, new: Iterable[DataFile], now: int) -> None:
        """They have just been written; those that are no more are forgotten."""
        for file in new:
            if (stamp := _stamp(self._folder / file.name)) is not None:
                self._known[file.name] = stamp, now

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._known.pop(name, None)

    def _looks(self, file: DataFile) -> _Stamp | None:
        known = self._known.get(file.name)
        return None if known is None else known[0]


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
