"""What a site's store is fed with: readings of jobs, their insights, the site's own metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from fogline.agent.config.store import StoreConfig, StoredTopic
from fogline.agent.jobs.job import AgentJob, read_log
from fogline.agent.supervisor import metrics
from fogline.broker.topics import overlap, split_share
from fogline.model.jobs import FIRST, Code
from fogline.model.sites import out_log, stream_log
from fogline.model.streams import INSIGHT

OWN = (
    StoredTopic(metrics.NODE, entity="site", time="time", prefix="node."),
    StoredTopic(metrics.JOB, entity="job", time="time", labels=("site", "query"), prefix="job."),
    StoredTopic(metrics.BROKER, entity="site", time="time", prefix="broker."),
)
"""What a site measures about itself."""


def feeds(jobs: Iterable[AgentJob], config: StoreConfig) -> list[dict[str, Any]]:
    """One for each log that the store reads; what is declared first about a log holds.

    Every log has all messages of its pattern. A message that several patterns take is stored from
    the log of the first of them: the others leave it out (`except`).
    """
    found: dict[str, dict[str, Any]] = {}
    for feed in _all(list(jobs), config):
        found.setdefault(feed["log"], feed)
    return list(_each_once(found.values()))


def _each_once(found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    before: dict[str, list[str]] = {}
    for feed in found:
        if "pattern" in feed:
            broker, pattern = feed.pop("broker"), split_share(feed.pop("pattern"))[1]
            earlier = before.setdefault(broker, [])
            if common := [other for other in earlier if overlap(other, pattern)]:
                feed["except"] = [*feed.get("except", ()), *common]
            earlier.append(pattern)
        yield feed


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
        log = told.pop("topic")
        yield {"log": log, "kind": "readings", "pattern": log, "broker": "", **told}
    for job in jobs:
        if config.insights and job.loaded is not None and job.stage != FIRST:
            yield from ({"log": log, "kind": "insights"} for log in job.results())
        code = job.assignment.work if isinstance(job.assignment.work, Code) else None
        if config.insights and code is not None:
            yield _results(job)
        if config.readings:
            yield from _readings(job) if code is None else _code_readings(job)


def _results(job: AgentJob) -> dict[str, Any]:
    """What code computes: whatever its records turn out to hold."""
    names = {key: job.assignment.input.get(key) for key in ("entity", "time")}
    return {"log": out_log(job.name), "kind": "results", "job": job.name, **names}


def _code_readings(job: AgentJob) -> Iterator[dict[str, Any]]:
    """What code reads, as its `input` says, else json. What other jobs compute is kept there."""
    told = job.assignment.input
    header = [name.strip() for name in told["header"].split(",")] if "header" in told else None
    for place in job.places():
        taken = [topic for topic in job.assignment.made if overlap(place.topic, topic)]
        if place.topic in taken:
            continue
        feed = {
            "log": read_log(place),
            "kind": "readings",
            "pattern": place.topic,
            "broker": place.broker,
            "format": told.get("format") or "json",
            **{key: told.get(key) for key in ("entity", "time", "metric", "value")},
            "header": header,
        }
        yield feed | ({"except": taken} if taken else {})


def _readings(job: AgentJob) -> Iterator[dict[str, Any]]:
    """Insights of other sites are kept where they arise."""
    for stream in job.streams():
        if stream.provider == "mqtt" and stream.format != INSIGHT:
            yield {
                "log": stream_log(stream),
                "kind": "readings",
                "pattern": str(stream.parameter("topic")),
                "broker": str(stream.parameter("broker") or ""),
                "format": stream.format,
                "entity": stream.entity_field,
                "time": stream.time_field,
                "metric": stream.metric_field,
                "value": stream.value_field,
                "header": stream.header,
            }
