"""The topics of queries: which they read and write, and redirecting one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from fogline.common.errors import QueryError
from fogline.language.ast import Parameter, QueryFile, Stream
from fogline.language.parser import parse
from fogline.language.printer import print_query
from fogline.model.jobs import Job, Query
from fogline.model.sites import insight_log

MQTT = "mqtt"
_FILLED = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class StreamTopic:
    """The topic of a query's stream; `broker` is empty for that of the job's own node."""

    stream: str
    topic: str
    broker: str


@dataclass(frozen=True, slots=True)
class _Output:
    insight: str
    to: str
    """What TO says, with + for its keys; empty where it says nothing."""
    key: str | None


def stream_topics(query: QueryFile) -> tuple[StreamTopic, ...]:
    """What a query reads over MQTT."""
    return tuple(
        StreamTopic(
            stream.name,
            str(stream.provider.get("topic") or ""),
            str(stream.provider.get("broker") or ""),
        )
        for stream in query.streams
        if stream.provider.name.lower() == MQTT
    )


def redirect_stream(query: QueryFile, stream: str, topic: str, broker: str) -> str:
    """The text of the query with another topic (and broker) for one stream."""
    statements = tuple(
        _with_topic(statement, topic, broker)
        if isinstance(statement, Stream) and statement.name == stream
        else statement
        for statement in query.statements
    )
    return print_query(replace(query, statements=statements))


def own_topics(job: Job) -> Iterator[str]:
    """What a query names itself: what TO says (with + for its keys), and without sinks of the job
    each insight. That other sites get an insight makes no sink of it."""
    if not isinstance(job.work, Query):
        return
    topics = [(topic, output.to) for topic, output in _insight_topics(job, job.work)]
    sinks = {place.topic for place in job.writes} - {topic for topic, _ in topics}
    for topic, to in topics:
        if not sinks:
            yield topic
        if to:
            yield to


def signed_topics(job: Job) -> Iterator[tuple[str, str]]:
    """The topics of a query's signed insights, and their keys."""
    if isinstance(job.work, Query):
        for topic, output in _insight_topics(job, job.work):
            if output.key is not None:
                yield topic, output.key


def _insight_topics(job: Job, work: Query) -> Iterator[tuple[str, _Output]]:
    """The topics of the insights that a job publishes."""
    for output in _outputs(work.text):
        selected = not work.insights or output.insight in work.insights
        if selected and output.insight not in job.muted:
            yield insight_log(job.outlet, output.insight), output


@lru_cache(maxsize=4096)
def _outputs(text: str) -> tuple[_Output, ...]:
    """Parsing a query takes a good part of a millisecond, and the graph of all jobs is made several
    times a deploy: kept by text, it is parsed once."""
    try:
        insights = parse(text).insights
    except QueryError:
        return ()
    return tuple(_Output(i.name, _to_filter(i.to), i.options.signature) for i in insights)


def _to_filter(to: object) -> str:
    topic = getattr(to, "get", lambda _: "")("topic")
    levels = str(topic or "").split("/")
    return "/".join("+" if _FILLED.search(level) else level for level in levels)


def _with_topic(stream: Stream, topic: str, broker: str) -> Stream:
    kept = tuple(p for p in stream.provider.parameters if p.key not in ("topic", "broker"))
    new = [Parameter("topic", topic)]
    if broker:
        new.append(Parameter("broker", broker))
    return replace(stream, provider=replace(stream.provider, parameters=(*new, *kept)))
