"""What the store's tables say of pipelines, in memory: reading it back would take longer than most
of what is done with it. One coordinator at a time uses a store, so nobody else changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from fogline.coordinator.repository.pipelines_table import MOST_PAST, Stored

Upstream = Mapping[str, Iterable[str]]


@dataclass(frozen=True, slots=True)
class Kept:
    """Frozen: a change makes another one, so who has one sees all of it as it was."""

    pipelines: Mapping[str, Stored] = field(default_factory=dict)
    past: dict[str, frozenset[str]] = field(default_factory=dict)
    """Jobs that were ours once, with those that were upstream of them; the oldest first."""

    def put(self, stored: Stored, upstream: Upstream) -> Kept:
        now = dict(sorted({**self.pipelines, stored.name: stored}.items()))
        there = {job.name for job in stored.pipeline.jobs}
        past = self._past_without(stored.name, upstream, there)
        return replace(self, pipelines=now, past=past)

    def delete(self, name: str, upstream: Upstream) -> Kept:
        now = {key: stored for key, stored in self.pipelines.items() if key != name}
        return replace(self, pipelines=now, past=self._past_without(name, upstream, set()))

    def _past_without(
        self, pipeline: str, upstream: Upstream, there: set[str]
    ) -> dict[str, frozenset[str]]:
        """The past when of this pipeline's jobs only those `there` are left."""
        before = self.pipelines.get(pipeline)
        jobs = before.pipeline.jobs if before else ()
        past = self.past.copy()
        for name in there:
            past.pop(name, None)
        for job in jobs:
            if job.name not in there:
                past.pop(job.name, None)
                past[job.name] = frozenset(upstream.get(job.name, ()))
        for name in list(islice(past, max(len(past) - MOST_PAST, 0))):
            del past[name]
        return past
