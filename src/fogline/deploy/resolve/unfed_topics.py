"""Whether everything that is read is written by somebody."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from fogline.deploy.resolve.flow import Flow, FlowKey
from fogline.model.topics import TopicTree, is_filter

_DIGITS = re.compile(r"[0-9]+")
_SHORTEST, _LONGEST = 4, 200
_ANYWHERE = ""
MOST_PLACES = 5
"""In a note."""
_OWN_TOPICS = ("metrics/", "insights/", "bad/", "late/")
"""What every site writes by itself."""


class UnfedTopic(NamedTuple):
    """A topic that nobody writes where it is read. Without `wrong` it is only worth a note."""

    topic: str
    place: str
    wrong: str = ""
    hint: str = ""


def note_of(topic: str, places: Sequence[str]) -> str:
    """That a topic is written by no job at these places."""
    more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    where = ", ".join(places[:MOST_PLACES]) + more
    return f"{topic} at {where} is written by no job: devices must publish it"


def find_unfed(
    flow: Flow, nodes: Mapping[str, object], inputs: list[FlowKey] | None
) -> Iterator[UnfedTopic]:
    """What is read at nodes but written by no job there; `inputs` is what devices publish."""
    fed, listed = flow.fed_filters, _Inputs(inputs or [])
    elsewhere, similar = _Elsewhere(flow), _Similar(flow)
    for key in flow.readers:
        topic, place = key
        if key in fed or place not in nodes or listed.has(key):
            continue
        if topic.startswith(_OWN_TOPICS):
            continue
        there = elsewhere.of(key)
        meant = similar.to(key)
        if there:
            wrong = f"{topic} is written at {there}, not at {place}"
            yield UnfedTopic(topic, place, wrong, "write or read it at the other place")
        elif meant:
            wrong = f"{topic} at {place} is written by no job, and nobody reads {meant}"
            yield UnfedTopic(topic, place, wrong, f"did you mean {meant}?")
        elif inputs is not None:
            wrong = f"{topic} at {place} is written by no job and not listed under inputs"
            yield UnfedTopic(topic, place, wrong, "list it under inputs: when devices publish it")
        else:
            yield UnfedTopic(topic, place)


class _Inputs:
    """What devices publish; without a place it may come anywhere."""

    def __init__(self, keys: list[FlowKey]) -> None:
        self._trees: dict[str, TopicTree[bool]] = defaultdict(TopicTree)
        for topic, place in keys:
            self._trees[place].add(topic, True)

    def has(self, key: FlowKey) -> bool:
        if not self._trees:
            return False
        topic, place = key
        trees = (self._trees[where] for where in (place, _ANYWHERE) if where in self._trees)
        return any(found for tree in trees for found in tree.find_overlapping(topic))


class _Elsewhere:
    """Topics written at other places, by jobs that do not just pass on what has the same name."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._written = {topic for topic, _ in flow.writers}

    def of(self, key: FlowKey) -> str:
        topic, place = key
        if topic not in self._written or is_filter(topic):
            return ""
        return " and ".join(sorted({at for at in self._places.get(topic, ()) if at != place})[:3])

    @cached_property
    def _places(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        reading: dict[str, set[str]] = defaultdict(set)
        for (topic, _), names in self._flow.readers.items():
            for name in names:
                reading[name].add(topic)
        for (topic, place), names in self._flow.writers.items():
            if any(topic not in reading[name] for name in names):
                found[topic].append(place)
        return found


class _Similar:
    """Topics that are written but not read, by what is left of them without one letter.

    Two topics are alike when they become equal by leaving out a letter of either; numbers must be
    the same, because `room/1` and `room/2` are two topics, not a slip of the finger.
    """

    def __init__(self, flow: Flow) -> None:
        self._known: dict[tuple[str, ...], str] = {}
        self._found: dict[str, str] = {}
        """Of topics that were asked for: the same one may be read at many places."""
        for topic in dict.fromkeys(key[0] for key, patterns in flow.meets.items() if not patterns):
            if not topic.startswith(_OWN_TOPICS):
                for shape in _shapes(topic):
                    self._known.setdefault(shape, topic)

    def to(self, key: FlowKey) -> str:
        topic = key[0]
        if topic not in self._found:
            known = (self._known[s] for s in _shapes(topic) if s in self._known)
            self._found[topic] = "" if is_filter(topic) else next(known, "")
        return self._found[topic]


def _shapes(topic: str) -> Iterator[tuple[str, ...]]:
    if len(topic) > _LONGEST:
        return
    numbers = tuple(_DIGITS.findall(topic))
    letters = _DIGITS.sub("0", topic.casefold().replace("_", "-"))
    if len(letters) < _SHORTEST:
        return
    yield (letters, *numbers)
    for place, sign in enumerate(letters):
        if sign != "0":
            yield (letters[:place] + letters[place + 1 :], *numbers)
