"""The rules of `fogline.model.topics`, as errors of brokers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fogline.broker.errors import BrokerError, TopicError
from fogline.broker.interface import Message
from fogline.model.topics import (
    LONGEST,
    SHARE,
    matches,
    overlap,
    split_share,
    wrong_filter,
    wrong_topic,
)

__all__ = [
    "LARGEST",
    "LONGEST",
    "SHARE",
    "check_filter",
    "check_filters",
    "check_messages",
    "check_topic",
    "matches",
    "overlap",
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
