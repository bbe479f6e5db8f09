"""Which jobs of a query file go on when the file is deployed again.

A job goes on as it is for the sake of every insight whose definition, site and origins are what
they were; what else it computes is muted. So nothing begins anew but what has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fogline.common import settings
from fogline.common.errors import FoglineError
from fogline.deploy.query.definitions import definition
from fogline.deploy.query.insight_jobs import feeds, relayed_topic, topic_of, travels
from fogline.model.jobs import FIRST, SECOND, Job, Pipeline, Place, Query
from fogline.model.streams import StreamSource
from fogline.plan.analysis.query_file import LoadedQuery, check_text
from fogline.plan.operators import Scan, walk


@dataclass(frozen=True, slots=True)
class NewInsight:
    """An insight of the new file, as a job of its own would be assigned."""

    name: str
    site: str
    loaded: LoadedQuery
    origins: Mapping[str, tuple[str, ...]]
    """Of every stream, the nodes that its messages come to."""

    @property
    def streams(self) -> list[StreamSource]:
        operators = walk(self.loaded.plan.emit(self.name))
        return [operator.stream for operator in operators if isinstance(operator, Scan)]


class Before:
    """A pipeline as it was deployed; none at all where it is new."""

    def __init__(self, pipeline: Pipeline | None) -> None:
        self._jobs = pipeline.jobs if pipeline is not None else ()
        self._mains = [_Main(job, self._jobs) for job in self._jobs if _is_main(job)]

    def outlet(self, insight: str, site: str) -> str:
        """Under whose name it was published at that site; empty where it was not."""
        return next((main.job.outlet for main in self._having(insight, site)), "")

    def going_on(self, new: NewInsight) -> str:
        """The job that computes just this already; empty where none does."""
        same = (main for main in self._having(new.name, new.site) if main.has(new))
        return next((main.job.name for main in same), "")

    def kept_jobs(self, published: Mapping[str, Collection[str]]) -> list[Job]:
        """The jobs that go on, each for the sake of some insights, and all that feed them."""
        found = []
        for job in self._jobs:
            if job.name in published:
                found.append(_mute_insights(job, published[job.name]))
            elif any(feeds(job, main) for main in published):
                found.append(replace(job, running=True))
        return found

    def readers(self, topic: str, kept: Collection[Job]) -> Iterator[str]:
        """The sites that these results were sent to and where a job that goes on reads them, be it
        for an insight that is muted: it may be asked for again."""
        for place in (place for job in self._jobs for place in job.writes if place.topic == topic):
            if any(place in job.reads for job in kept):
                yield place.node

    def _having(self, insight: str, site: str) -> list[_Main]:
        """Those that publish it come before those in which it is muted."""
        found = [main for main in self._mains if main.computes(insight, site)]
        return sorted(found, key=lambda main: insight in main.job.muted)


def _is_main(job: Job) -> bool:
    """Whether it computes insights of a query file; a query of a composition names none."""
    return isinstance(job.work, Query) and job.work.stage != FIRST and bool(job.work.insights)


def _mute_insights(job: Job, published: Collection[str]) -> Job:
    assert isinstance(job.work, Query)
    muted = tuple(name for name in job.work.insights if name not in published)
    return replace(job, running=True, muted=muted)


class _Main:
    """A job that computes insights, and where what it reads comes from."""

    def __init__(self, job: Job, others: Collection[Job]) -> None:
        assert isinstance(job.work, Query)
        self.job = job
        self._query = job.work
        self._feeders = [other for other in others if feeds(other, job.name)]

    def computes(self, insight: str, site: str) -> bool:
        return self.job.node == site and insight in self._query.insights

    def has(self, new: NewInsight) -> bool:
        """Whether it computes the same from the same."""
        if self._loaded_query is None:
            return False
        old = definition(self._loaded_query, new.name)
        if old.statements != definition(new.loaded, new.name).statements:
            return False
        return all(
            self._read(stream.name, old.topics[stream.name]) == self._would_read(stream, new)
            for stream in new.streams
        )

    @cached_property
    def _loaded_query(self) -> LoadedQuery | None:
        """Nothing where its text means nothing any more: a function it uses may be missing."""
        try:
            return check_text(self._query.text, settings.load())
        except FoglineError:
            return None

    def _read(self, stream: str, topic: str) -> set[Place]:
        relayed = relayed_topic(self.job.name, stream)
        if topic.startswith(relayed):
            senders = [job for job in self._feeders if job.writes[0].topic.startswith(relayed)]
            return {place for job in senders for place in job.reads}
        if self._query.stage == SECOND:
            read = (place for job in self._feeders for place in job.reads)
            return {place for place in read if place.topic == topic}
        return {Place(topic, self.job.node)}

    def _would_read(self, stream: StreamSource, new: NewInsight) -> set[Place]:
        origins = new.origins.get(stream.name, ())
        far = self._query.stage == SECOND or travels(stream, origins, new.site)
        return {Place(topic_of(stream), node) for node in (origins if far else (new.site,))}
