"""The file in which a job keeps what it knows: there whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline.common.state_files import StateDamaged, read_state, write_state
from fogline.log import LogError
from fogline.log.errors import write_failed

_TOGETHER = 1000


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
        values = {name: getattr(checkpoint, name) for name in checkpoint.__dataclass_fields__}
        write_state(path, pieces(values))
    except OSError as error:
        raise write_failed(path.parent, error) from error


def load(path: Path) -> Checkpoint | None:
    """None where there is no file. Raises `LogError` for one that cannot be read."""
    try:
        return Checkpoint(**json.loads(read_state(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, StateDamaged) as error:
        raise LogError(
            f"{path} cannot be read: {error}", "remove it, or deploy the job anew, to begin anew"
        ) from error


def pieces(value: Any) -> Iterator[str]:
    """A value as JSON, bit by bit: of what many keys make, the whole text never is in memory."""
    if isinstance(value, Mapping):
        yield from _join_pieces(
            "{", ((json.dumps(key) + ":", item) for key, item in value.items()), "}"
        )
    elif isinstance(value, list) and len(value) > _TOGETHER:
        parts = (value[at : at + _TOGETHER] for at in range(0, len(value), _TOGETHER))
        texts = (json.dumps(part)[1:-1] for part in parts)
        yield "["
        for index, text in enumerate(texts):
            yield f",{text}" if index else text
        yield "]"
    elif isinstance(value, list):
        yield from _join_pieces("[", (("", item) for item in value), "]")
    else:
        yield json.dumps(value)


def _join_pieces(begin: str, items: Iterator[tuple[str, Any]], end: str) -> Iterator[str]:
    yield begin
    for index, (name, item) in enumerate(items):
        yield f",{name}" if index else name
        yield from pieces(item)
    yield end
