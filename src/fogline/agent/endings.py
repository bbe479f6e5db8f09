"""Jobs that are removed and still have records to send: on disk until they are done with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline.errors import DataError
from fogline.log import disk
from fogline.model.jobs import Assignment

_FILE = "endings.json"


@dataclass(frozen=True, slots=True)
class Owed:
    """What a removed job has still to send."""

    assignment: Assignment
    since: float
    """When it was removed, in seconds since the epoch."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """Of logs that others go on writing: up to where their records were for it."""


def load_endings(folder: Path) -> list[Owed]:
    path = folder / _FILE
    try:
        return [_owed(item) for item in json.loads(path.read_text("utf-8"))]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, DataError) as error:
        hint = "move it away to forget what removed jobs had to send"
        raise DataError(f"{path} cannot be read: {error}", hint) from error


def store_endings(folder: Path, endings: Iterable[Owed]) -> None:
    """In place of those that were there."""
    told = [
        {"assignment": e.assignment.as_json(), "since": e.since, "ends": dict(e.ends)}
        for e in endings
    ]
    folder.mkdir(parents=True, exist_ok=True)
    disk.replace(folder / _FILE, json.dumps(told) + "\n")


def _owed(item: Any) -> Owed:
    ends = {str(log): int(end) for log, end in item["ends"].items()}
    return Owed(Assignment.from_json(item["assignment"]), float(item["since"]), ends)
