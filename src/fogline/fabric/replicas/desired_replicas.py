"""Which copies this node is to keep: the file `copies.json`."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state
from fogline.fabric.membership.peers import read_metrics
from fogline.model.nodes import is_name
from fogline.storage.errors import BadValue, StoreError

NAME = "copies.json"

_say = logging.getLogger(__name__)
_Metrics = tuple[str, ...] | None


class DesiredCopies:
    """For any thread. A change is on disk when its call returns.

    A damaged file counts as none. Copies that are there are not removed for that: only an origin
    that was desired and is not any more loses its copy.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._guard = threading.Lock()
        self._desired = _load(self._path)

    def all(self) -> dict[str, _Metrics]:
        with self._guard:
            return dict(self._desired)

    def keep(self, origin: str, metrics: _Metrics) -> None:
        """Raises `StoreError` when it cannot be written down."""
        with self._guard:
            if origin not in self._desired or self._desired[origin] != metrics:
                self._store({**self._desired, origin: metrics})

    def drop(self, origin: str) -> None:
        with self._guard:
            if origin in self._desired:
                self._store({key: value for key, value in self._desired.items() if key != origin})

    def _store(self, desired: dict[str, _Metrics]) -> None:
        try:
            write_state(self._path, json.dumps({"copies": desired}, indent=1), copy=True)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error
        self._desired = desired


def _load(path: Path) -> dict[str, _Metrics]:
    try:
        copies = json.loads(read_state(path))["copies"]
        return {name: read_metrics(found) for name, found in copies.items() if is_name(name)}
    except FileNotFoundError:
        return {}
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError),
        *(BadValue, StateDamaged),
    ) as error:
        _say.warning("%s cannot be used: no copy is kept until it is asked for: %s", path, error)
        with contextlib.suppress(OSError):
            set_aside(path)
        return {}
