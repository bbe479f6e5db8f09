"""Topics and filters as MQTT defines them: what is valid, and which filter takes which topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fogline.broker.errors import BrokerError, TopicError
from fogline.broker.interface import Message

LONGEST = 65535
LARGEST = 268_000_000
SHARE = "$share/"


def check_topic(topic: str) -> None:
    """Raises `TopicError` unless messages can be published to `topic`."""
    _check_text(topic, "topic")
    if "+" in topic or "#" in topic:
        hint = "wildcards (+ and #) belong in subscriptions"
        raise TopicError(f"cannot publish to {topic!r}", hint)


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
    _check_text(text, "filter")
    group, pattern = split_share(text)
    if group is not None and (not group or not pattern or "+" in group or "#" in group):
        raise TopicError(f"bad shared subscription {text!r}", "write $share/group/filter")
    levels = pattern.split("/")
    for place, level in enumerate(levels):
        last = place == len(levels) - 1
        if "#" in level and (level != "#" or not last):
            raise TopicError(f"bad filter {text!r}", "# stands alone and last, as in city/#")
        if level != "+" and "+" in level:
            raise TopicError(f"bad filter {text!r}", "+ stands for a whole level, as in city/+/t")


def check_filters(patterns: str | Sequence[str]) -> Sequence[str]:
    """One filter or several as several; raises `TopicError` when one of them is none."""
    several = [patterns] if isinstance(patterns, str) else patterns
    for pattern in several:
        check_filter(pattern)
    return several


def split_share(text: str) -> tuple[str | None, str]:
    """The group and the filter proper; no group for a subscription that is not shared."""
    if not text.startswith(SHARE):
        return None, text
    group, _, pattern = text.removeprefix(SHARE).partition("/")
    return group, pattern


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


def _check_text(text: str, what: str) -> None:
    if not text:
        raise TopicError(f"an empty {what}")
    if "\0" in text:
        raise TopicError(f"a {what} holds no zero character: {text[:80]!r}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise TopicError(f"a {what} that is not valid Unicode: {text[:80]!r}") from error
    if size > LONGEST:
        raise TopicError(f"a {what} of {size} bytes", f"at most {LONGEST} are allowed")
