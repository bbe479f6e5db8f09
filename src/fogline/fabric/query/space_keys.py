"""Which columns are the key of a space: the store itself knows one text as a row's key.

Kept in a file beside the store. An entry is written before its space is made and removed after it
is deleted, so a crash leaves an entry too many at worst, which the next one of that name replaces.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, write_state
from fogline.storage.errors import BadValue, StoreDamaged, StoreError
from fogline.storage.ingest.mapping import scalar

NAME = "space-keys.json"


class SpaceKeys:
    """For any thread. Raises `StoreDamaged` when the file cannot be understood."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NAME
        self._guard = threading.Lock()
        self._keys = self._load()

    def of(self, space: str) -> tuple[str, ...]:
        """The columns; none when rows have a `key` of their own."""
        return self._keys.get(space, ())

    def set(self, space: str, columns: Sequence[str]) -> None:
        with self._guard:
            if self.of(space) != tuple(columns):
                self._save({**self._keys, space: tuple(columns)})

    def forget(self, space: str) -> None:
        with self._guard:
            if space in self._keys:
                self._save({name: key for name, key in self._keys.items() if name != space})

    def _save(self, keys: Mapping[str, tuple[str, ...]]) -> None:
        kept = {name: key for name, key in keys.items() if key}
        try:
            write_state(self._file, json.dumps(kept), copy=True)
        except OSError as error:
            raise StoreError(f"{self._file} cannot be written: {error.strerror}") from error
        self._keys = kept

    def _load(self) -> dict[str, tuple[str, ...]]:
        try:
            found = json.loads(read_state(self._file))
            return {str(name): tuple(map(str, key)) for name, key in found.items()}
        except FileNotFoundError:
            return {}
        except StateDamaged as error:
            raise StoreDamaged(self._file, error.reason) from error
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StoreDamaged(self._file, "it cannot be understood") from error


def key_text(parts: Sequence[object]) -> str:
    """The values of the key's columns as one text: one as it is, several as a list."""
    texts = [scalar(part) for part in parts]
    if None in texts:
        raise BadValue("a row has no value in a column of its key")
    return str(texts[0]) if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)
