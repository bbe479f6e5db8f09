"""What a gateway was told to run, on disk: it goes on with it after a restart by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fogline.errors import DataError
from fogline.log import disk
from fogline.model.jobs import Assignment

_FILE = "jobs.json"


def save(folder: Path, assignments: Iterable[Assignment]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    told = {"jobs": [assignment.as_json() for assignment in assignments]}
    disk.replace(folder / _FILE, json.dumps(told, indent=1) + "\n")


def load(folder: Path) -> list[Assignment]:
    """Nothing where nothing was saved. Raises `DataError` for a file that cannot be read."""
    path = folder / _FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [Assignment.from_json(item) for item in data["jobs"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} cannot be read: {error}", "restore it or remove it") from error
