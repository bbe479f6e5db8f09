"""Assignments as JSON, many at a time: what they have in common is written once.

The jobs of one operation, on however many gateways, differ in their names only.
"""

from __future__ import annotations

import json
from typing import Any

from fogline.common.errors import DataError
from fogline.model.jobs import Assignment, canonical, digest_of

MOST_KNOWN = 256
_ENCODE = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class AssignmentTexts:
    """The canonical JSON of assignments, of which their versions are the digests. For any number
    of threads."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[str, str, Assignment]] = {}
        """What is written before and after a job's name, and of which assignment: as long as that
        is there, the parts of no other can be the very same objects."""
        self._last: tuple[Assignment, str] | None = None
        """One that is asked for is asked for again soon, with its version."""

    def of(self, assignment: Assignment) -> str:
        last = self._last
        if last is None or last[0] is not assignment:
            self._last = last = (assignment, self._text(assignment))
        return last[1]

    def _text(self, assignment: Assignment) -> str:
        key = shared_parts(assignment)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = known = (*_around_name(assignment), assignment)
        before, after, _ = known
        return f"{before}{canonical(assignment.job)}{after}"

    def version(self, assignment: Assignment) -> str:
        return digest_of(self.of(assignment))


def nameless_text(assignment: Assignment) -> str:
    """Its JSON without the job's name. Raises `DataError` for numbers that JSON does not have."""
    told = assignment.as_json()
    del told["job"]
    try:
        return _ENCODE(told)
    except ValueError as error:
        raise DataError(f"job {assignment.job}: {error}") from error


def named(assignments: Any, jobs: Any) -> Any:
    """Assignments that were told without names, with those of their jobs; all of them as JSON. What
    is not of that form is left as it is."""
    if not isinstance(assignments, list) or not isinstance(jobs, list):
        return assignments
    if len(assignments) != len(jobs) or not all(isinstance(item, dict) for item in assignments):
        raise DataError(f"there are {len(assignments)} assignments and {len(jobs)} names of jobs")
    return [{**item, "job": job} for item, job in zip(assignments, jobs, strict=True)]


def shared_parts(assignment: Assignment) -> tuple[object, ...]:
    """Everything but the name, to be compared with that of others that are there. What it is made
    of counts by its object: that is quick, and 1, 1.0 and true are equal to Python but not to JSON.
    Those of equal parts that are not shared are different."""
    return (
        assignment.pipeline,
        id(assignment.work),
        *map(id, assignment.reads),
        None,
        *map(id, assignment.routes),
        id(assignment.parameters),
        id(assignment.input),
        assignment.running,
        assignment.made,
        assignment.muted,
        tuple(assignment.signed.items()),
    )


def _around_name(assignment: Assignment) -> tuple[str, str]:
    told = assignment.as_json()
    before = canonical({key: value for key, value in told.items() if key < "job"})
    after = canonical({key: value for key, value in told.items() if key > "job"})
    return f'{before[:-1]},"job":', f",{after[1:]}"
