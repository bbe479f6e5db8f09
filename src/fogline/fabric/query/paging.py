"""Where the next page begins, as a text that means something only to who gave it.

It is bound to its question, and keeps the question's stretch of time: `from=-15m` means the same
fifteen minutes on every page.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.fabric.query.query_types import ChangeOffset
from fogline.storage.errors import BadQuery
from fogline.storage.values import NAME_BYTES

_MAX = 1 << 20
_MAX_NODES = 100_000


@dataclass(frozen=True, slots=True)
class PageStart:
    """The places behind which a page begins, by node, and the stretch of time asked for."""

    places: Mapping[str, ChangeOffset] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None

    def encode(self, question: object) -> str:
        places = {node: list(place) for node, place in self.places.items()}
        return seal([places, self.start, self.end], question)

    @classmethod
    def decode(cls, text: str, question: object) -> PageStart:
        """Raises `BadQuery` for what is no cursor, or one of another question."""
        try:
            places, start, end = unseal(text, question)
            if not isinstance(places, dict) or len(places) > _MAX_NODES:
                raise ValueError("no places")
            checked = {_name(node): _place(place) for node, place in places.items()}
            return cls(checked, _time(start), _time(end))
        except (ValueError, TypeError) as error:
            raise no_cursor() from error


def seal(content: Any, question: object) -> str:
    """Any JSON as a text that only the same question accepts."""
    body = json.dumps([content, _fingerprint(question)], separators=(",", ":"))
    return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def unseal(text: str, question: object) -> Any:
    """What was sealed; it may be forged, so it is to be checked. Raises `BadQuery`."""
    try:
        if len(text) > _MAX:
            raise ValueError("too long")
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        content, fingerprint = json.loads(data)
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise no_cursor() from error
    if fingerprint != _fingerprint(question):
        raise BadQuery("this cursor belongs to another query", "begin without a cursor")
    return content


def no_cursor() -> BadQuery:
    return BadQuery("invalid cursor", "use the one that came with the page before")


def check_whole(item: object) -> int:
    if not isinstance(item, int) or isinstance(item, bool) or not -(1 << 63) <= item < 1 << 63:
        raise ValueError("not a whole number")
    return item


def _place(item: object) -> ChangeOffset:
    if not isinstance(item, list) or len(item) != 2:
        raise ValueError("not a place")
    return check_whole(item[0]), check_whole(item[1])


def _name(item: str) -> str:
    if len(item) > NAME_BYTES:
        raise ValueError("not a node")
    return item


def _time(item: object) -> int | None:
    return None if item is None else check_whole(item)


def _fingerprint(question: object) -> int:
    return zlib.crc32(repr(question).encode("utf-8", "surrogatepass"))
