"""Where copies are on disk: a folder for each origin, and beside it one that is to replace it.

Whatever moment a crash takes, an origin's folder is the old copy or the new one, never a mixture.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

from fogline.fabric.replicas.copy import StoreCopy
from fogline.log.files.names import folder_name
from fogline.storage.catalog.metadata import MetadataStore
from fogline.storage.errors import StoreDamaged
from fogline.storage.limits import StoreLimits

FOLDER = "copies"
_NEXT, _OLD, _DAMAGED = ".next", ".old", ".damaged"

_say = logging.getLogger(__name__)


class CopyFolders:
    """For one thread. Raises `OSError` and what opening a store raises."""

    def __init__(self, site: Path, limits: StoreLimits, metadata: MetadataStore) -> None:
        self._folder = site / FOLDER
        # A merged file goes late by a 24th of the age. With the same limits no copy is to lose
        # values by their age that its origin still has.
        self._limits = replace(limits, age_us=limits.age_us + 2 * limits.merge_span_us)
        self._metadata = metadata

    def open(self, origin: str) -> StoreCopy:
        """The copy, an empty one where there is none."""
        return self._open(self._path(origin))

    def open_next(self, origin: str) -> StoreCopy:
        """The one that is to replace it."""
        return self._open(self._path(origin, _NEXT))

    def reopen(self, origin: str) -> StoreCopy | None:
        """What is there after a start. A switch that a crash interrupted is brought to its end, a
        damaged copy is set aside."""
        place, coming, old = (self._path(origin, end) for end in ("", _NEXT, _OLD))
        if not place.exists() and old.exists() and coming.exists():
            coming.rename(place)
        _remove(coming)
        if not place.exists():
            return None
        _remove(old)
        try:
            return self._open(place)
        except StoreDamaged as error:
            self.set_aside(origin, str(error))
            return None

    def set_aside(self, origin: str, why: str) -> None:
        """A damaged copy, which is closed; it is begun anew."""
        _say.warning("the copy of %s is set aside and begun anew: %s", origin, why)
        _remove(self._path(origin, _DAMAGED))
        self._path(origin).rename(self._path(origin, _DAMAGED))

    def switch(self, origin: str) -> StoreCopy:
        """The new copy in the place of the old one; both must be closed."""
        place, old = self._path(origin), self._path(origin, _OLD)
        _remove(old)
        place.rename(old)
        self._path(origin, _NEXT).rename(place)
        _remove(old)
        return self._open(place)

    def remove(self, origin: str) -> None:
        _remove(self._path(origin))

    def remove_next(self, origin: str) -> None:
        _remove(self._path(origin, _NEXT))

    def _open(self, folder: Path) -> StoreCopy:
        return StoreCopy(folder, self._limits, self._metadata)

    def _path(self, origin: str, end: str = "") -> Path:
        # No folder name of an origin holds a dot.
        return self._folder / f"{folder_name(origin)}{end}"


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
