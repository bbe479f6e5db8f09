"""Bad and late messages as they are kept, in the form of a site."""

from __future__ import annotations

import json
from base64 import b64encode

_SHOWN = 64 << 10


def reject(stream: str, kind: str, reason: str, position: int, payload: bytes) -> bytes:
    """One of them, `position` being that of its frame in the input; long ones are cut."""
    told = {"stream": stream, "kind": kind, "reason": reason, "position": position}
    shown = payload[:_SHOWN]
    try:
        cut = "ignore" if len(payload) > _SHOWN else "strict"
        content = {"record": shown.decode("utf-8", cut)}
    except UnicodeDecodeError:
        content = {"base64": b64encode(shown).decode()}
    return json.dumps(told | content, ensure_ascii=False, separators=(",", ":")).encode()
