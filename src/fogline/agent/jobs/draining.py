"""Jobs that are removed and still have records to send: on disk until they are done with."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline.common.errors import DataError
from fogline.common.state_files import read_state, set_aside, write_state
from fogline.model.jobs import Assignment

_FILE = "endings.json"
_say = logging.getLogger(__name__)


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
        return [_read_owed(item) for item in json.loads(read_state(path))]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, DataError) as error:
        set_aside(path)
        _say.error("%s cannot be read, what removed jobs had to send is not sent: %s", path, error)
        return []


def store_endings(folder: Path, endings: Iterable[Owed]) -> None:
    """In place of those that were there."""
    items = [
        {"assignment": e.assignment.as_json(), "since": e.since, "ends": dict(e.ends)}
        for e in endings
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_state(folder / _FILE, json.dumps(items), copy=True)


def _read_owed(item: Any) -> Owed:
    ends = {str(log): int(end) for log, end in item["ends"].items()}
    return Owed(Assignment.from_json(item["assignment"]), float(item["since"]), ends)
