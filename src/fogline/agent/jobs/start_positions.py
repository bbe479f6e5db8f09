"""Where a job begins in the logs it reads: noted when it is assigned, until it has a checkpoint.

A job that is new begins with what comes from now on, whatever the log holds of earlier days. A job
whose computation changes goes on behind the last batch that the old one has done. It never goes on
with what an earlier computation left, not even with one that is the same: every change begins
another life, with checkpoints of its own. A forwarder has no checkpoint: the offsets of its routes
say how far it is.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fogline.agent.jobs.job import AgentJob, job_reader, route_reader, sendings
from fogline.common.state_files import StateDamaged, read_state, remove_state, write_state
from fogline.links.start_position import END, starting_position
from fogline.log import SiteLog, get_position, set_position
from fogline.model.jobs import Assignment
from fogline.spark.jobs.checkpoints import committed_positions


@dataclass(frozen=True, slots=True)
class Life:
    """A job from one change of its computation to the next."""

    number: int
    computation: str
    starts: Mapping[str, int]
    """For every log it reads, where the one before was known to be, or where the log ended."""

    @property
    def name(self) -> str:
        """Of the folder with its checkpoints."""
        return f"{self.number}-{self.computation}"


def note_starts(folder: Path, job: AgentJob, logs: SiteLog, anew: bool = False) -> None:
    """Before any process gets the job; a repetition changes nothing. `anew`: what it did before
    is over, and it begins like one that is new."""
    if not job.computes:
        return
    lives = _load(folder)
    computation = job.assignment.computation
    if lives and lives[-1].computation == computation and not anew:
        return
    number = lives[-1].number + 1 if lives else 0
    lives = [] if anew else lives
    read_before = lives[-1].starts if lives else None
    starts = {}
    for log in job.logs():
        goes_on = not anew and (read_before is None or log in read_before)
        starts[log] = _start(log, job.name, logs, goes_on)
    _store(folder, [*lives, Life(number, computation, starts)])


def note_insight_routes(job: AgentJob, sent: Container[tuple[str, str]], logs: SiteLog) -> None:
    """Where the routes of single insights begin: those that are not `sent` yet by any job send what
    comes from now on, the others go on."""
    for sending in sendings(job):
        if sending.log == sending.route.topic and sending.key not in sent:
            _begin_now(logs, *sending.key)


def note_routes(job: AgentJob, before: AgentJob | None, logs: SiteLog) -> None:
    """Where the routes of a forwarder begin: those that `before` did not have send what comes from
    now on. Where there is no log yet, that is all of it."""
    if job.computes:
        return
    had = len(before.assignment.routes) if before is not None else 0
    read = before.results() if before is not None else []
    for log in job.results():
        for index in range(had if log in read else 0, len(job.assignment.routes)):
            _begin_now(logs, log, route_reader(job.name, index))


def _begin_now(logs: SiteLog, log: str, reader: str) -> None:
    if logs.folder(log).exists():
        starting_position(logs, log, reader, END)


def forget_starts(folder: Path, assignment: Assignment) -> None:
    """A job that has not begun yet begins with the oldest message that is kept."""
    if not (folder / "checkpoints" / life_name(folder, assignment)).exists():
        remove_state(_path(folder))


def load_starts(folder: Path, assignment: Assignment) -> dict[str, int]:
    """Nothing for a job that begins with the oldest message that is kept."""
    lives = _current(folder, assignment)
    return {log: _begin(folder, lives, log) for log in lives[-1].starts} if lives else {}


def life_name(folder: Path, assignment: Assignment) -> str:
    """Under which its checkpoints are; that of no other computation of this job before it."""
    lives = _current(folder, assignment)
    return lives[-1].name if lives else assignment.computation


def _current(folder: Path, assignment: Assignment) -> list[Life]:
    lives = _load(folder)
    return lives if lives and lives[-1].computation == assignment.computation else []


def _begin(folder: Path, lives: Sequence[Life], log: str) -> int:
    """Behind what the lives before the last one have done; where they have done nothing, as far as
    any of them was known to be."""
    *earlier, last = lives
    begin = last.starts[log]
    for life in reversed(earlier):
        if log not in life.starts:
            break
        done = committed_positions(folder / "checkpoints" / life.name).get(log)
        if done is not None:
            return max(done, begin)
        begin = max(begin, life.starts[log])
    return begin


def _start(log: str, job: str, logs: SiteLog, goes_on: bool) -> int:
    folder = logs.folder(log)
    if not folder.exists():
        return 0
    known = get_position(folder, job_reader(job))
    if known is not None and goes_on:
        return known
    with logs.reader(log) as reader:
        end = reader.committed()
    set_position(folder, job_reader(job), end)
    return end


def _load(folder: Path) -> list[Life]:
    """Raises `StateDamaged`: a job that does not know where it is must not begin anew by itself."""
    path = _path(folder)
    hint = f"restore it, or remove {folder}: the job then begins with what comes from now on"
    try:
        return [_life(item) for item in json.loads(read_state(path))]
    except FileNotFoundError:
        return []
    except StateDamaged as error:
        raise StateDamaged(path, error.reason, hint) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StateDamaged(path, f"it cannot be understood: {error!r:.100}", hint) from error


def _life(item: Any) -> Life:
    starts = {str(log): int(position) for log, position in item["starts"].items()}
    return Life(int(item["life"]), str(item["computation"]), starts)


def _store(folder: Path, lives: Sequence[Life]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    items = [
        {"life": life.number, "computation": life.computation, "starts": dict(life.starts)}
        for life in lives
    ]
    write_state(_path(folder), json.dumps(items), copy=True)


def _path(folder: Path) -> Path:
    return folder / "lives.json"
