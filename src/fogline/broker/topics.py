"""Topics and filters as MQTT defines them: what is valid, and which filter takes which topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fogline.broker.errors import BrokerError, TopicError
from fogline.broker.interface import Message
from fogline.model.topics import LONGEST, SHARE, split_share, wrong_filter, wrong_topic

__all__ = [
    "LARGEST",
    "LONGEST",
    "SHARE",
    "check_filter",
    "check_filters",
    "check_messages",
    "check_topic",
    "matches",
    "split_share",
]

LARGEST = 268_000_000


def check_topic(topic: str) -> None:
    """Raises `TopicError` unless messages can be published to `topic`."""
    if wrong := wrong_topic(topic):
        raise TopicError(*wrong)


def check_messages(messages: Iterable[Message]) -> None:
    """Raises unless all messages can be published."""
    known: set[str] = set()
    for message in messages:
        if message.topic not in known:
            check_topic(message.topic)
            known.add(message.topic)
        if message.qos not in (0, 1, 2):
            raise BrokerError(f"no QoS {message.qos}", "0, 1 or 2")
        if len(message.payload) > LARGEST:
            raise BrokerError(f"a payload of {len(message.payload)} bytes", f"at most {LARGEST}")


def check_filter(text: str) -> None:
    """Raises `TopicError` unless `text` is a filter one can subscribe to; `$share/…` included."""
    if wrong := wrong_filter(text):
        raise TopicError(*wrong)


def check_filters(patterns: str | Sequence[str]) -> Sequence[str]:
    """One filter or several as several; raises `TopicError` when one of them is none."""
    several = [patterns] if isinstance(patterns, str) else patterns
    for pattern in several:
        check_filter(pattern)
    return several


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
    wanted, levels = pattern.split("/"), topic.split("/")
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place >= len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)
