"""The file in which a job keeps what it knows: there whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fogline.log import LogError
from fogline.log import disk as log_disk
from fogline.log.errors import write_failed


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a chain that has seen everything before `position` of its input."""

    life: str
    """Of the job whose state this is."""
    position: int
    out: int = 0
    """Where the output log ended."""
    flushing: bool = False
    """The chain is about to be flushed: what is in the output behind `out` is what that gave."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None


def store(path: Path, checkpoint: Checkpoint) -> None:
    """On disk when this returns. Raises what writing a log does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log_disk.replace(path, json.dumps(asdict(checkpoint)) + "\n")
    except OSError as error:
        raise write_failed(path.parent, error) from error


def load(path: Path) -> Checkpoint | None:
    """None where there is no file. Raises `LogError` for one that cannot be read."""
    try:
        return Checkpoint(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise LogError(f"{path} cannot be read: {error}", "remove it to begin anew") from error
