"""Who reads what whom writes: the graph of jobs, over topics at places.

An edge runs from a job over a topic and over a filter that takes it to the jobs that read with that
filter. Jobs that share a filter share its edges, so the graph stays about as large as what people
wrote down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fogline.deploy.resolve.query_topics import own_topics
from fogline.model.jobs import Job, Place, Query
from fogline.model.topics import TopicTree, is_filter

FlowKey = tuple[str, str]
"""A topic or filter, and the node or broker where it is."""


def key_of(place: Place) -> FlowKey:
    return place.topic, place.node or place.broker


def keys_of(places: tuple[Place, ...]) -> tuple[FlowKey, ...]:
    """Each once; most jobs have one place."""
    if len(places) == 1:
        return (key_of(places[0]),)
    return tuple(dict.fromkeys(map(key_of, places)))


@dataclass(frozen=True, slots=True)
class Flow:
    """The graph of some jobs; `readers` and `writers` by topic and place."""

    readers: Mapping[FlowKey, tuple[str, ...]]
    """By the filter a job reads with."""
    writers: Mapping[FlowKey, tuple[str, ...]]
    meets: Mapping[FlowKey, tuple[FlowKey, ...]]
    """Of each written topic: the filters that take it."""
    written: Mapping[str, tuple[FlowKey, ...]] = field(default_factory=dict)
    """Of each job: what it writes."""

    @classmethod
    def of(cls, jobs: Iterable[Job]) -> Flow:
        readers: dict[FlowKey, list[str]] = defaultdict(list)
        writers: dict[FlowKey, list[str]] = defaultdict(list)
        written: dict[str, tuple[FlowKey, ...]] = {}
        for job in jobs:
            name = job.name
            for key in keys_of(job.reads):
                readers[key].append(name)
            written[name] = keys = all_written(job)
            for key in keys:
                writers[key].append(name)
        return cls(_frozen(readers), _frozen(writers), _match_filters(readers, writers), written)

    def read_by(self, key: FlowKey) -> list[str]:
        """The jobs that read what is written there."""
        patterns = self.meets.get(key)
        return [name for pattern in patterns for name in self.readers[pattern]] if patterns else []

    @property
    def fed_filters(self) -> frozenset[FlowKey]:
        """The filters that take what some job writes."""
        return frozenset(pattern for patterns in self.meets.values() for pattern in patterns)

    def filters_of(self, job: str) -> Iterator[FlowKey]:
        """The filters that take what this job writes."""
        for key in self.written.get(job, ()):
            yield from self.meets.get(key, ())


def all_written(job: Job) -> tuple[FlowKey, ...]:
    """What a job writes: where it is assigned to, and what a query names itself."""
    keys = keys_of(job.writes)
    if not isinstance(job.work, Query):
        return keys
    return tuple(dict.fromkeys((*keys, *((topic, job.node) for topic in own_topics(job)))))


def find_cycle(flow: Flow, starts: Iterable[str] | None = None) -> tuple[str, ...]:
    """Jobs that feed one another, from one back to itself; empty where there are none. With
    `starts` only what is behind these jobs is looked at."""
    if not any(flow.meets.values()):
        return ()
    follows: dict[str | FlowKey, list[str | FlowKey]] = {}
    for name in flow.written:
        follows[name] = list(dict.fromkeys(flow.filters_of(name)))
    for key, names in flow.readers.items():
        follows[key] = list(names)
    done: set[str | FlowKey] = set()
    for start in flow.written if starts is None else starts:
        if start not in done and (found := _walk(start, follows, done)):
            return tuple(item for item in found if isinstance(item, str))
    return ()


def describe_cycle(cycle: tuple[str, ...]) -> str:
    return f"jobs feed one another in a circle: {' -> '.join(cycle[:20])}"


def _walk(
    start: str | FlowKey,
    follows: Mapping[str | FlowKey, list[str | FlowKey]],
    done: set[str | FlowKey],
) -> list[str | FlowKey]:
    """Depth first; the way from a node back to itself, or nothing."""
    path: list[str | FlowKey] = [start]
    on_path = {start}
    pending = [iter(follows[start])]
    while pending:
        following = next(pending[-1], None)
        if following is None:
            pending.pop()
            on_path.discard(path[-1])
            done.add(path.pop())
        elif following in on_path:
            return _from_a_job([*path[path.index(following) :]])
        elif following not in done:
            path.append(following)
            on_path.add(following)
            pending.append(iter(follows[following]))
    return []


def _from_a_job(loop: list[str | FlowKey]) -> list[str | FlowKey]:
    """The loop, begun at a job and closed."""
    first = next(place for place, item in enumerate(loop) if isinstance(item, str))
    turned = loop[first:] + loop[:first]
    return [*turned, turned[0]]


def _match_filters(
    readers: Mapping[FlowKey, object], writers: Iterable[FlowKey]
) -> dict[FlowKey, tuple[FlowKey, ...]]:
    """Most topics have no wildcards and meet the filter that is written like them: a tree is needed
    for the others only."""
    wild: dict[str, TopicTree[FlowKey]] = defaultdict(TopicTree)
    plain: dict[str, TopicTree[FlowKey]] = defaultdict(TopicTree)
    asked = {where for topic, where in writers if is_filter(topic)}
    for topic, where in readers:
        if is_filter(topic):
            wild[where].add(topic, (topic, where))
        elif where in asked:
            plain[where].add(topic, (topic, where))
    found: dict[FlowKey, tuple[FlowKey, ...]] = {}
    for key in writers:
        topic, where = key
        if is_filter(topic):
            found[key] = tuple(plain[where].find_overlapping(topic))
        else:
            found[key] = (key,) if key in readers else ()
        if where in wild:
            found[key] += tuple(wild[where].find_overlapping(topic))
    return found


def _frozen(lists: Mapping[FlowKey, list[str]]) -> dict[FlowKey, tuple[str, ...]]:
    return {key: tuple(names) for key, names in lists.items()}
