"""Topics and filters: what is wrong with one, which filter takes which topic, finding them among
many. MQTT defines most of the rules, Fogline reserves topics besides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

LONGEST = 65535
SHARE = "$share/"
RESERVED = "fogline/"
"""Topics of the control broker and of links."""

T = TypeVar("T")

Wrong = tuple[str, str]
"""What is wrong, and a hint."""


def wrong_topic(topic: str) -> Wrong | None:
    """Why messages cannot be published to `topic`."""
    if wrong := _wrong_text(topic, "topic"):
        return wrong
    if is_filter(topic):
        return f"cannot publish to {topic[:80]!r}", "wildcards (+ and #) belong in subscriptions"
    return None


def wrong_filter(text: str) -> Wrong | None:
    """Why one cannot subscribe to `text`; `$share/…` is a filter too."""
    if wrong := _wrong_text(text, "filter"):
        return wrong
    group, pattern = split_share(text)
    if group is not None and (not group or not pattern or "+" in group or "#" in group):
        return f"bad shared subscription {text[:80]!r}", "write $share/group/filter"
    levels = pattern.split("/")
    for place, level in enumerate(levels):
        last = place == len(levels) - 1
        if "#" in level and (level != "#" or not last):
            return f"bad filter {text[:80]!r}", "# stands alone and last, as in city/#"
        if level != "+" and "+" in level:
            return f"bad filter {text[:80]!r}", "+ stands for a whole level, as in city/+/t"
    return None


def wrong_job_topic(topic: str, reading: bool) -> Wrong | None:
    """Why a job cannot read from, or write to, `topic`."""
    return (wrong_filter(topic) if reading else wrong_topic(topic)) or reserved_topic(topic)


def reserved_topic(topic: str) -> Wrong | None:
    """Why jobs have no business with a topic that MQTT allows."""
    for prefix, owner in (("$", "the broker"), (RESERVED, "Fogline itself")):
        if topic.startswith(prefix):
            hint = f"topics that begin with {prefix} belong to {owner}"
            return f"{topic[:80]!r} begins with {prefix}", hint
    return None


def is_filter(topic: str) -> bool:
    return "+" in topic or "#" in topic


def split_share(text: str) -> tuple[str | None, str]:
    """The group and the filter proper; no group for a subscription that is not shared."""
    if not text.startswith(SHARE):
        return None, text
    group, _, pattern = text.removeprefix(SHARE).partition("/")
    return group, pattern


def _wrong_text(text: str, what: str) -> Wrong | None:
    if not text:
        return f"an empty {what}", ""
    if "\0" in text:
        return f"a {what} holds no zero character: {text[:80]!r}", ""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return f"a {what} that is not valid Unicode: {text[:80]!r}", ""
    if size > LONGEST:
        return f"a {what} of {size} bytes", f"at most {LONGEST} are allowed"
    return None


def overlap(first: str, second: str) -> bool:
    """Whether there may be a topic that both filters (without `$share/…`) take."""
    one, other = first.split("/"), second.split("/")
    for here, there in zip(one, other, strict=False):
        if "#" in (here, there):
            return True
        if here != there and "+" not in (here, there):
            return False
    rest = one[len(other) :] or other[len(one) :]
    return not rest or rest == ["#"]


def matches(pattern: str, topic: str) -> bool:
    """Whether a filter (without `$share/…`) takes a topic; wildcards do not open `$` topics."""
    if topic.startswith("$") and pattern[:1] in ("+", "#"):
        return False
    filter_levels, levels = pattern.split("/"), topic.split("/")
    for place, level in enumerate(filter_levels):
        if level == "#":
            return True
        if place >= len(levels) or level not in ("+", levels[place]):
            return False
    return len(filter_levels) == len(levels)


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

    def find_overlapping(self, pattern: str) -> Iterator[T]:
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
