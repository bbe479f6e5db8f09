"""What a site's store is fed with: readings of jobs, their insights, the site's own metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fogline.agent.config.store import StoreConfig, StoredTopic
from fogline.agent.contracts.ingest import Subscription
from fogline.agent.jobs.job import AgentJob, read_log
from fogline.agent.supervisor import metrics
from fogline.broker.topics import overlap, split_share
from fogline.fabric.contract import INSIGHTS, RESULTS, StoreFeed
from fogline.model.jobs import FIRST, Code
from fogline.model.sites import out_log, stream_log
from fogline.model.streams import INSIGHT

OWN = (
    StoredTopic(metrics.NODE, entity="site", time="time", prefix="node."),
    StoredTopic(metrics.JOB, entity="job", time="time", labels=("site", "query"), prefix="job."),
    StoredTopic(metrics.BROKER, entity="site", time="time", prefix="broker."),
)
"""What a site measures about itself."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The topics of a log, and their broker."""

    pattern: str
    broker: str = ""


def feeds(jobs: Iterable[AgentJob], config: StoreConfig) -> list[StoreFeed]:
    """One for each log that the store reads; what is declared first about a log holds.

    Every log has all messages of its pattern. A message that several patterns take is stored from
    the log of the first of them: the others leave it out.
    """
    found: dict[str, tuple[StoreFeed, _Pattern | None]] = {}
    for feed, source in _all_feeds(list(jobs), config):
        found.setdefault(feed.log, (feed, source))
    before: dict[str, list[str]] = {}
    return [_leave_out_earlier(feed, source, before) for feed, source in found.values()]


def _leave_out_earlier(
    feed: StoreFeed, source: _Pattern | None, before: dict[str, list[str]]
) -> StoreFeed:
    if source is None:
        return feed
    pattern, earlier = split_share(source.pattern)[1], before.setdefault(source.broker, [])
    common = [other for other in earlier if overlap(other, pattern)]
    earlier.append(pattern)
    return replace(feed, leave_out=(*feed.leave_out, *common))


def topics(config: StoreConfig) -> list[Subscription]:
    """What must be subscribed to for the store alone."""
    stored = _stored_topics(config)
    return [Subscription(t.topic, t.topic, "", deduplicate=t.time is not None) for t in stored]


def _stored_topics(config: StoreConfig) -> tuple[StoredTopic, ...]:
    if not config.enabled:
        return ()
    return (*config.topics, *(OWN if config.metrics else ()))


def _all_feeds(
    jobs: list[AgentJob], config: StoreConfig
) -> Iterator[tuple[StoreFeed, _Pattern | None]]:
    for topic in _stored_topics(config):
        feed = StoreFeed(
            topic.topic,
            format=topic.format,
            entity=topic.entity,
            time=topic.time,
            fields=topic.fields,
            labels=topic.labels,
            prefix=topic.prefix,
            header=topic.header,
        )
        yield feed, _Pattern(topic.topic)
    for job in jobs:
        if config.insights and job.loaded is not None and job.stage != FIRST:
            yield from ((StoreFeed(log, INSIGHTS), None) for log in job.results())
        is_code = isinstance(job.assignment.work, Code)
        if config.insights and is_code:
            yield _code_results(job), None
        if config.readings:
            yield from _code_readings(job) if is_code else _query_readings(job)


def _code_results(job: AgentJob) -> StoreFeed:
    """What code computes: whatever its records turn out to hold."""
    entity, time = (job.assignment.input.get(key) for key in ("entity", "time"))
    return StoreFeed(out_log(job.name), RESULTS, job=job.name, entity=entity, time=time)


def _code_readings(job: AgentJob) -> Iterator[tuple[StoreFeed, _Pattern]]:
    """What code reads, as its `input` says, else json. What other jobs compute is kept there."""
    given = job.assignment.input
    header = tuple(n.strip() for n in given["header"].split(",")) if "header" in given else None
    for place in job.places():
        computed = [topic for topic in job.assignment.made if overlap(place.topic, topic)]
        if place.topic in computed:
            continue
        feed = StoreFeed(
            read_log(place),
            leave_out=tuple(computed),
            format=given.get("format") or "json",
            entity=given.get("entity"),
            time=given.get("time"),
            metric=given.get("metric"),
            value=given.get("value"),
            header=header,
        )
        yield feed, _Pattern(place.topic, place.broker)


def _query_readings(job: AgentJob) -> Iterator[tuple[StoreFeed, _Pattern]]:
    """Insights of other sites are kept where they arise."""
    for stream in job.streams():
        if stream.provider == "mqtt" and stream.format != INSIGHT:
            feed = StoreFeed(
                stream_log(stream),
                format=stream.format,
                entity=stream.entity_field,
                time=stream.time_field,
                metric=stream.metric_field,
                value=stream.value_field,
                header=stream.header,
            )
            broker = str(stream.parameter("broker") or "")
            yield feed, _Pattern(str(stream.parameter("topic")), broker)
