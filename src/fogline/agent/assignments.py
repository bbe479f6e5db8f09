"""The jobs that a coordinator gave this node, kept on disk: they run with or without it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fogline.errors import DataError
from fogline.log import disk
from fogline.model.jobs import Assignment

_FILE = "assignments.json"


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
        gone = [self._jobs[name] for name in dict.fromkeys(names) if name in self._jobs]
        if gone:
            left = {a.job for a in gone}
            self._store({name: a for name, a in self._jobs.items() if name not in left})
        return gone

    def _store(self, jobs: dict[str, Assignment]) -> None:
        text = json.dumps([a.as_json() for a in jobs.values()])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(self._path, text + "\n")
        self._jobs = jobs


def _load(path: Path) -> dict[str, Assignment]:
    try:
        listed = [Assignment.from_json(item) for item in json.loads(path.read_text("utf-8"))]
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, RecursionError, DataError) as error:
        raise DataError(f"{path} cannot be read: {error}", "move it away to begin anew") from error
    return {a.job: a for a in listed}
