"""Which insights of a file run together in which job, beside those that go on as they were.

An insight that is new, or that has changed, never joins a job that goes on: it gets a job beside
it, with the next number that is free. Its results keep the name they had: `outlet`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fogline.common import settings
from fogline.deploy.query.insight_jobs import Group
from fogline.deploy.query.insight_text import group_text
from fogline.deploy.query.reuse import Before, NewInsight
from fogline.deploy.resolve.topology import Topology
from fogline.model.jobs import Job, Place
from fogline.model.sites import insight_log
from fogline.model.streams import StreamSource
from fogline.plan.analysis.query_file import LoadedQuery, check_text
from fogline.plan.operators import Emit, Operator, Requery, Scan, inputs_of, walk

Origins = Callable[[StreamSource], tuple[str, ...]]
"""The nodes that a stream's messages come to."""


@dataclass(frozen=True)
class InsightGroups:
    """The insights of a file, the sites they run at, and what ran there before."""

    pipeline: str
    loaded: LoadedQuery
    sites: Mapping[str, str]
    topology: Topology
    before: Before
    origins: Origins

    @cached_property
    def kept_jobs(self) -> list[Job]:
        """The jobs that go on, and all that feed them."""
        insights_by_job: dict[str, list[str]] = {}
        for insight, job in self._going_on.items():
            insights_by_job.setdefault(job, []).append(insight)
        found = self.before.kept_jobs(insights_by_job)
        return [
            replace(job, writes=self._writes(insights_by_job[job.name], found))
            if job.name in insights_by_job
            else job
            for job in found
        ]

    def groups(self) -> Iterator[Group]:
        """One for each site and one for each insight that others read from elsewhere, of those
        that no job computes yet."""
        members: dict[tuple[str, str], list[str]] = {}
        for insight, site in self.sites.items():
            if insight not in self._going_on:
                members.setdefault((site, self._outlets[insight]), []).append(insight)
        for (site, outlet), insights in members.items():
            yield Group(
                self._free_name(outlet),
                outlet,
                site,
                group_text(self.loaded, insights, self._foreign(insights)),
                tuple(insights),
                self._origins(insights),
                self._writes(insights, self.kept_jobs),
            )

    @cached_property
    def _exported_insights(self) -> set[str]:
        """Insights that others read from elsewhere."""
        return {
            fed
            for insight, site in self.sites.items()
            for fed in self._fed_by_insight[insight]
            if self.sites.get(fed, site) != site
        }

    @cached_property
    def _outlets(self) -> dict[str, str]:
        return {
            insight: self.before.outlet(insight, site) or self._first_outlet(insight, site)
            for insight, site in self.sites.items()
        }

    def _first_outlet(self, insight: str, site: str) -> str:
        """The same however many others there are, so that jobs go on when some are added."""
        if insight not in self._exported_insights:
            return f"{self.pipeline}-{site}"
        clashes = self.topology.node(insight) is not None
        return f"{self.pipeline}-{site}-{insight}" if clashes else f"{self.pipeline}-{insight}"

    @cached_property
    def _going_on(self) -> dict[str, str]:
        """Of the insights that are computed already: by which job."""
        known = (name for name, site in self.sites.items() if self.before.outlet(name, site))
        found = {insight: self.before.going_on(self._new_insight(insight)) for insight in known}
        return {insight: job for insight, job in found.items() if job}

    def _new_insight(self, insight: str) -> NewInsight:
        text = group_text(self.loaded, [insight], self._foreign([insight]))
        loaded = check_text(text, settings.load())
        return NewInsight(insight, self.sites[insight], loaded, self._origins([insight]))

    def _free_name(self, outlet: str) -> str:
        """The outlet's own, or with the first number that no job has and none could be given."""
        taken = {job.name for job in self.kept_jobs} | set(self._outlets.values()) - {outlet}
        taken |= {f"{self.pipeline}-{node}" for node in self.topology.nodes} - {outlet}
        name, number = outlet, 1
        while name in taken:
            number += 1
            name = f"{outlet}-{number}"
        return name

    def _foreign(self, insights: Iterable[str]) -> dict[str, str]:
        """Those that are read as streams of results, and under whose names they are published. What
        is published under the same name is computed along instead, hidden."""
        return {
            fed: self._outlets[fed]
            for insight in insights
            for fed in self._fed_by_insight[insight]
            if fed in self.sites and self._outlets[fed] != self._outlets[insight]
        }

    def _origins(self, insights: Iterable[str]) -> dict[str, tuple[str, ...]]:
        streams = (
            stream
            for insight in insights
            for stream in streams_of(self.loaded.plan.emit(insight), self._foreign([insight]))
        )
        return {stream.name: self.origins(stream) for stream in streams}

    def _writes(self, insights: Iterable[str], kept: Iterable[Job]) -> tuple[Place, ...]:
        """Where other sites read results of these."""
        kept = list(kept)
        found = []
        for insight in insights:
            topic = insight_log(self._outlets[insight], insight)
            readers = self._readers(insight)
            known = [*self.before.readers(topic, kept)]
            found += [Place(topic, node) for node in dict.fromkeys([*known, *readers])]
        return tuple(found)

    def _readers(self, insight: str) -> list[str]:
        here = self.sites[insight]
        sites = (
            site for other, site in self.sites.items() if insight in self._fed_by_insight[other]
        )
        return [site for site in sites if site != here]

    @cached_property
    def _fed_by_insight(self) -> dict[str, list[str]]:
        """Of every insight, those whose results it aggregates."""
        return {insight: fed_by(self.loaded.plan.emit(insight)) for insight in self.sites}


def fed_by(emit: Emit) -> list[str]:
    """Insights whose results an insight aggregates."""
    return list(dict.fromkeys(op.insight for op in walk(emit) if isinstance(op, Requery)))


def streams_of(emit: Emit, results: Collection[str] = ()) -> list[StreamSource]:
    """Those that an insight reads; not those of insights that it reads the results of."""
    found: list[StreamSource] = []
    waiting: list[Operator] = [emit]
    while waiting:
        operator = waiting.pop()
        if isinstance(operator, Scan):
            found.append(operator.stream)
        elif not isinstance(operator, Requery) or operator.insight not in results:
            waiting += inputs_of(operator)
    return list(dict.fromkeys(reversed(found)))
