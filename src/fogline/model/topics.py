"""Topics and filters as MQTT defines them: what is wrong with one, in words and with a hint."""

from __future__ import annotations

LONGEST = 65535
SHARE = "$share/"

Wrong = tuple[str, str]


def wrong_topic(topic: str) -> Wrong | None:
    """Why messages cannot be published to `topic`."""
    if wrong := _wrong_text(topic, "topic"):
        return wrong
    if "+" in topic or "#" in topic:
        return f"cannot publish to {topic!r}", "wildcards (+ and #) belong in subscriptions"
    return None


def wrong_filter(text: str) -> Wrong | None:
    """Why one cannot subscribe to `text`; `$share/…` is a filter too."""
    if wrong := _wrong_text(text, "filter"):
        return wrong
    group, pattern = split_share(text)
    if group is not None and (not group or not pattern or "+" in group or "#" in group):
        return f"bad shared subscription {text!r}", "write $share/group/filter"
    levels = pattern.split("/")
    for place, level in enumerate(levels):
        last = place == len(levels) - 1
        if "#" in level and (level != "#" or not last):
            return f"bad filter {text!r}", "# stands alone and last, as in city/#"
        if level != "+" and "+" in level:
            return f"bad filter {text!r}", "+ stands for a whole level, as in city/+/t"
    return None


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
