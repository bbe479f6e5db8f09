"""How far queries came in the logs they read, as their checkpoints say when they have ended."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, write_state


def note_logs(checkpoint: Path, logs: Iterable[str]) -> None:
    """Before a query begins: the logs of its sources, in Spark's order; a source that reads no log
    has an empty name."""
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    write_state(_note(checkpoint), json.dumps(list(logs)))


def committed_positions(folder: Path) -> dict[str, int]:
    """For every log, the position behind the last batch that all queries with checkpoints in
    `folder` have done; nothing of a query that has done none."""
    found: dict[str, int] = {}
    for note in sorted(folder.glob("*.logs")) if folder.exists() else ():
        for log, position in _of_query(note.with_suffix("")).items():
            found[log] = min(found.get(log, position), position)
    return found


def _of_query(checkpoint: Path) -> dict[str, int]:
    batches = [int(path.name) for path in checkpoint.glob("commits/*") if path.name.isdecimal()]
    if not batches:
        return {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, StateDamaged):
        logs = json.loads(read_state(_note(checkpoint)))
        text = (checkpoint / "offsets" / str(max(batches))).read_text(encoding="utf-8")
        offsets = [json.loads(line) for line in text.splitlines()[2:]]
        pairs = zip(logs, offsets, strict=True)
        return {log: int(offset["files"]["log"]) for log, offset in pairs if log}
    return {}


def _note(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.logs")
