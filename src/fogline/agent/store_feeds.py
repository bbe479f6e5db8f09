"""What a site's store is fed with: readings of jobs, their insights, the site's own metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from fogline.agent import metrics
from fogline.agent.jobs import AgentJob
from fogline.agent.store_config import StoreConfig, StoredTopic
from fogline.model.jobs import FIRST
from fogline.model.sites import insight_log, stream_log
from fogline.model.streams import INSIGHT

OWN = (
    StoredTopic(metrics.NODE, entity="site", time="time", prefix="node."),
    StoredTopic(metrics.JOB, entity="job", time="time", labels=("site", "query"), prefix="job."),
    StoredTopic(metrics.BROKER, entity="site", time="time", prefix="broker."),
)
"""What a site measures about itself."""


def feeds(jobs: Iterable[AgentJob], config: StoreConfig) -> list[dict[str, Any]]:
    """One for each log that the store reads; what is declared first about a log holds."""
    found: dict[str, dict[str, Any]] = {}
    for feed in _all(list(jobs), config):
        found.setdefault(feed["log"], feed)
    return list(found.values())


def topics(config: StoreConfig) -> list[dict[str, Any]]:
    """What must be subscribed to for the store alone."""
    return [
        {"pattern": t.topic, "log": t.topic, "broker": "", "deduplicate": t.time is not None}
        for t in _topics(config)
    ]


def _topics(config: StoreConfig) -> tuple[StoredTopic, ...]:
    if not config.enabled:
        return ()
    return (*config.topics, *(OWN if config.metrics else ()))


def _all(jobs: list[AgentJob], config: StoreConfig) -> Iterator[dict[str, Any]]:
    for topic in _topics(config):
        told = asdict(topic)
        yield {"log": told.pop("topic"), "kind": "readings", **told}
    for job in jobs:
        if config.insights and job.loaded is not None and job.stage != FIRST:
            for emit in job.loaded.plan.emits:
                if not emit.hidden:
                    yield {"log": insight_log(job.name, emit.name), "kind": "insights"}
        if config.readings:
            yield from _readings(job)


def _readings(job: AgentJob) -> Iterator[dict[str, Any]]:
    """Insights of other sites are kept where they arise."""
    for stream in job.streams():
        if stream.provider == "mqtt" and stream.format != INSIGHT:
            yield {
                "log": stream_log(stream),
                "kind": "readings",
                "format": stream.format,
                "entity": stream.entity_field,
                "time": stream.time_field,
                "metric": stream.metric_field,
                "value": stream.value_field,
                "header": stream.header,
            }
