"""What changes between two versions of a pipeline, job by job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fogline.model.jobs import Job, Pipeline, Place, Query, Steps, Work

ADDED, REMOVED, UNCHANGED = "added", "removed", "unchanged"
MOVED, CHANGED, UPDATED = "moved", "changed", "updated"
REDIRECTED, STARTED, STOPPED = "redirected", "started", "stopped"
MUTED, UNMUTED = "muted", "unmuted"
KINDS = (
    *(ADDED, REMOVED, MOVED, CHANGED, UPDATED, REDIRECTED),
    *(MUTED, UNMUTED, STARTED, STOPPED, UNCHANGED),
)

_SIGNS = {ADDED: "+", REMOVED: "-", MOVED: ">", UNCHANGED: "="}


class Change(NamedTuple):
    """What happens to one job. `kinds` has several when several things happen to it."""

    job: str
    kinds: tuple[str, ...]
    old: Job | None = None
    new: Job | None = None

    @property
    def sign(self) -> str:
        return _SIGNS.get(self.kinds[0], "~")

    def __str__(self) -> str:
        return f"{self.sign} {self.job} " + ", ".join(map(self._describe, self.kinds))

    def _describe(self, kind: str) -> str:
        if self.old is None or self.new is None:
            job = self.new or self.old
            return f"{kind} at {job.node}{_besides(job)}" if job else kind
        if kind == MOVED:
            return f"moved from {self.old.node} to {self.new.node}"
        if kind == REDIRECTED and self.old.writes != self.new.writes:
            return f"redirected from {_places(self.old.writes)} to {_places(self.new.writes)}"
        if kind == MUTED:
            return f"muted {_list_missing(self.new.muted, self.old.muted)}"
        if kind == UNMUTED:
            return f"unmuted {_list_missing(self.old.muted, self.new.muted)}"
        return kind

    def as_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"job": self.job, "changes": list(self.kinds)}
        if self.old is not None:
            data["from"] = self.old.node
        if self.new is not None:
            data["to"] = self.new.node
        return data


@dataclass(frozen=True, slots=True)
class Diff:
    """One change for every job of either version: the new one's in their order, then the rest."""

    pipeline: str
    changes: tuple[Change, ...]

    def of(self, kind: str) -> tuple[str, ...]:
        """The names of the jobs this happens to."""
        return tuple(change.job for change in self.changes if kind in change.kinds)

    @property
    def empty(self) -> bool:
        return all(change.kinds == (UNCHANGED,) for change in self.changes)

    def apply(self, old: Pipeline | None) -> Pipeline | None:
        """The new version, from the old one and the changes alone; None when no job is left."""
        kept = {job.name: job for job in old.jobs} if old else {}
        jobs = tuple(
            kept[change.job] if change.kinds == (UNCHANGED,) else change.new
            for change in self.changes
            if change.new is not None
        )
        return Pipeline(self.pipeline, jobs) if jobs else None

    def counts(self) -> dict[str, int]:
        found = Counter(kind for change in self.changes for kind in change.kinds)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes))

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "counts": self.counts(),
            "jobs": [change.as_json() for change in self.changes],
        }


def diff(old: Pipeline | None, new: Pipeline | None) -> Diff:
    """What is to be done to make the new version of the old one; None is no pipeline at all."""
    before = {job.name: job for job in old.jobs} if old else {}
    after = {job.name: job for job in new.jobs} if new else {}
    changes = [_change(before.get(name), job) for name, job in after.items()]
    changes += [
        Change(name, (REMOVED,), job, None) for name, job in before.items() if name not in after
    ]
    named = new or old
    return Diff(named.name if named else "", tuple(changes))


def _change(old: Job | None, new: Job) -> Change:
    if old is None:
        return Change(new.name, (ADDED,), None, new)
    kinds = () if old is new else tuple(_kinds(old, new))
    return Change(new.name, kinds or (UNCHANGED,), old, new)


def _kinds(old: Job, new: Job) -> Iterator[str]:
    if old.node != new.node:
        yield MOVED
    computed = _works_alike(old.work, new.work) and old.input == new.input
    if not computed or not _same(old, old.reads, new, new.reads):
        yield CHANGED
    if not _alike(old.parameters, new.parameters):
        yield UPDATED
    if old.publish != new.publish or not _same(old, old.writes, new, new.writes):
        yield REDIRECTED
    if old.muted != new.muted:
        yield from _muting(set(old.muted), set(new.muted))
    if old.running != new.running:
        yield STARTED if new.running else STOPPED


def _muting(old: set[str], new: set[str]) -> Iterator[str]:
    if new - old:
        yield MUTED
    if old - new:
        yield UNMUTED


def _works_alike(old: Work, new: Work) -> bool:
    if isinstance(old, Steps) and isinstance(new, Steps):
        return _alike(old.steps, new.steps)
    return old == new


def _alike(old: object, new: object) -> bool:
    """Equal only for what is written alike: to Python, 1, 1.0 and true are the same."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_alike(old[key], new[key]) for key in old)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(_alike, old, new))
    return old is new or repr(old) == repr(new)


def _same(old: Job, was: tuple[Place, ...], new: Job, now: tuple[Place, ...]) -> bool:
    """Whether the places are the same, or go along with a job that moves."""
    return was == now or _seen_from(old, was) == _seen_from(new, now)


def _seen_from(job: Job, places: tuple[Place, ...]) -> list[Place]:
    return [Place(place.topic) if place.node == job.node else place for place in places]


def _besides(job: Job) -> str:
    """What a job computes that stands beside another one of its site."""
    if not isinstance(job.work, Query) or not job.work.outlet:
        return ""
    return f": {', '.join(job.work.insights)}"


def _list_missing(names: tuple[str, ...], others: tuple[str, ...]) -> str:
    return ", ".join(name for name in names if name not in others)


def _places(places: tuple[Place, ...]) -> str:
    return " and ".join(map(str, places)) or "nowhere"
