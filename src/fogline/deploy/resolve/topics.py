"""Topics and filters: what is valid, and which meet; finding them among many is quick."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Generic, TypeVar

LONGEST = 65535
RESERVED = "fogline/"
"""Topics of the control broker and of links."""

T = TypeVar("T")


@lru_cache(maxsize=1024)
def wrong_topic(topic: str, wildcards: bool) -> str | None:
    """What is wrong with a topic (with wildcards: a filter), or None."""
    if not topic or "\0" in topic or len(topic.encode()) > LONGEST:
        return "is empty" if not topic else "is no topic"
    if topic.startswith("$"):
        return "begins with $, which belongs to the broker"
    if topic.startswith(RESERVED):
        return f"begins with {RESERVED}, which belongs to Fogline itself"
    return _wrong_wildcards(topic, wildcards)


def _wrong_wildcards(topic: str, allowed: bool) -> str | None:
    if not is_filter(topic):
        return None
    if not allowed:
        return "has wildcards: they belong where topics are read"
    *front, last = topic.split("/")
    if any("#" in level for level in front) or ("#" in last and last != "#"):
        return "has # where it does not stand alone and last"
    if any("+" in level and level != "+" for level in (*front, last)):
        return "has + where it is not a whole level"
    return None


def is_filter(topic: str) -> bool:
    return "+" in topic or "#" in topic


class TopicTree(Generic[T]):
    """Things under topics or filters; finds all that meet a topic or filter."""

    def __init__(self) -> None:
        self._top: _Level[T] = _Level()

    def __bool__(self) -> bool:
        """Whether there is anything in it."""
        return bool(self._top.below)

    def add(self, pattern: str, thing: T) -> None:
        level = self._top
        for name in pattern.split("/"):
            level = level.below.setdefault(name, _Level())
        level.things.append(thing)

    def meeting(self, pattern: str) -> Iterator[T]:
        """Everything under a pattern that takes a topic which `pattern` takes too."""
        names = pattern.split("/")
        pending = [(self._top, 0)]
        while pending:
            level, depth = pending.pop()
            if "#" in level.below:
                yield from level.below["#"].things
            if depth == len(names):
                yield from level.things
            elif names[depth] == "#":
                yield from _all_below(level)
            else:
                pending += ((lower, depth + 1) for lower in _matching(level, names[depth]))


class _Level(Generic[T]):
    def __init__(self) -> None:
        self.below: dict[str, _Level[T]] = {}
        self.things: list[T] = []


def _matching(level: _Level[T], name: str) -> list[_Level[T]]:
    if name == "+":
        return [lower for key, lower in level.below.items() if key != "#"]
    return [level.below[key] for key in (name, "+") if key in level.below]


def _all_below(level: _Level[T]) -> Iterator[T]:
    """At a `#`: this level itself (`a/#` takes `a`) and everything under it but its own `#`."""
    yield from level.things
    pending = [lower for key, lower in level.below.items() if key != "#"]
    while pending:
        lower = pending.pop()
        yield from lower.things
        pending += lower.below.values()
