"""Where a job begins in the logs it reads: noted when it is assigned, until it has a checkpoint.

A job that is new begins with what comes from now on, whatever the log holds of earlier days. A job
whose computation changes goes on where the old one was.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from fogline.agent.jobs import AgentJob, job_reader
from fogline.log import SiteLog, disk, get_position, set_position
from fogline.model.jobs import Assignment


def note_starts(folder: Path, job: AgentJob, logs: SiteLog) -> None:
    """Before the job is told to anybody; a repetition changes nothing."""
    path = _path(folder, job.assignment)
    if path.exists() or not job.computes:
        return
    starts = {log: _start(log, job.name, logs) for log in job.logs()}
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(path, json.dumps(starts) + "\n")


def load_starts(folder: Path, assignment: Assignment) -> dict[str, int]:
    """Nothing for a job that begins with the oldest message that is kept."""
    with contextlib.suppress(FileNotFoundError):
        found = json.loads(_path(folder, assignment).read_text(encoding="utf-8"))
        return {str(log): int(position) for log, position in found.items()}
    return {}


def _start(log: str, job: str, logs: SiteLog) -> int:
    folder = logs.folder(log)
    if not folder.exists():
        return 0
    known = get_position(folder, job_reader(job))
    if known is not None:
        return known
    with logs.reader(log) as reader:
        end = reader.committed()
    set_position(folder, job_reader(job), end)
    return end


def _path(folder: Path, assignment: Assignment) -> Path:
    return folder / "starts" / f"{assignment.computation}.json"
