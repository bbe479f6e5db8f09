"""Topics and the names of their folders: every topic has one name, no two topics share one.

A name is safe on every file system: it holds only `A-Z a-z 0-9 _ - % ~` and at most 217 characters.
"""

from __future__ import annotations

import hashlib
import string
from urllib.parse import unquote_to_bytes

from fogline.log.errors import LogError

_KEPT = frozenset((string.ascii_letters + string.digits + "_-").encode())
_LONGEST = 200
_CUT = "~"
"""Behind it, in names that are too long, the topic's digest."""
MAX_TOPIC = 0xFFFE
"""The longest topic in UTF-8 bytes."""


def topic_bytes(topic: str) -> bytes:
    """The topic in UTF-8, checked: not empty, not too long, no lone surrogates."""
    try:
        raw = topic.encode()
    except UnicodeEncodeError as error:
        raise LogError(f"the topic {topic!r} is not valid Unicode") from error
    if not 0 < len(raw) <= MAX_TOPIC:
        raise LogError(f"a topic has 1 to {MAX_TOPIC} bytes, not {len(raw)}")
    return raw


def folder_name(topic: str) -> str:
    """The name of the topic's folder below the site's log folder."""
    raw = topic_bytes(topic)
    name = "".join(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in raw)
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}{_CUT}{hashlib.sha256(raw).hexdigest()[:16]}"


def named_topic(name: str) -> str:
    """The topic whose folder has this name; empty where the name is not one, or is shortened."""
    topic = unquote_to_bytes(name).decode("utf-8", "replace")
    return topic if topic and folder_name(topic) == name else ""
