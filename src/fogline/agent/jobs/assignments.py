"""The jobs that a coordinator gave this node, kept on disk: they run with or without it.

A file that is damaged, and its copy too, is set aside: the coordinator sends its jobs again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from fogline.common.errors import DataError
from fogline.common.state_files import read_state, set_aside, write_state
from fogline.model.jobs import Assignment

_FILE = "assignments.json"
_say = logging.getLogger(__name__)


class Assignments:
    """Read once, written as a whole at every change."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._jobs = _load(self._path)

    def all(self) -> dict[str, Assignment]:
        return dict(self._jobs)

    def install(self, assignments: Iterable[Assignment]) -> list[str]:
        """Takes them in place of those of the same name; returns the names of what changed."""
        given = {a.job: a for a in assignments}
        changed = [name for name, new in given.items() if self._jobs.get(name) != new]
        if changed:
            self._store(self._jobs | given)
        return changed

    def remove(self, names: Iterable[str]) -> list[Assignment]:
        """Forgets them; returns those that were there."""
        removed = [self._jobs[name] for name in dict.fromkeys(names) if name in self._jobs]
        if removed:
            left = {a.job for a in removed}
            self._store({name: a for name, a in self._jobs.items() if name not in left})
        return removed

    def _store(self, jobs: dict[str, Assignment]) -> None:
        text = json.dumps([a.as_json() for a in jobs.values()])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_state(self._path, text, copy=True)
        self._jobs = jobs


def _load(path: Path) -> dict[str, Assignment]:
    try:
        listed = [Assignment.from_json(item) for item in json.loads(read_state(path))]
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, RecursionError, DataError) as error:
        set_aside(path)
        _say.error("%s cannot be read, assigned jobs wait for the coordinator: %s", path, error)
        return {}
    return {a.job: a for a in listed}
