"""Bad and late messages as they are kept, in the form of a site."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import NamedTuple

_SHOWN = 64 << 10


class Reject(NamedTuple):
    """A message that is bad, or a record that is late; one that an operator made has no topic."""

    reason: str
    payload: bytes
    topic: str | None = None


def encode_reject(stream: str, kind: str, reject: Reject, position: int) -> bytes:
    """One of them, `position` being that of its frame in the input; long ones are cut."""
    about = {"stream": stream, "kind": kind, "reason": reject.reason, "position": position}
    topic = {} if reject.topic is None else {"topic": reject.topic}
    shown = reject.payload[:_SHOWN]
    try:
        cut = "ignore" if len(reject.payload) > _SHOWN else "strict"
        content = {"record": shown.decode("utf-8", cut)}
    except UnicodeDecodeError:
        content = {"base64": b64encode(shown).decode()}
    found = about | topic | content
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
