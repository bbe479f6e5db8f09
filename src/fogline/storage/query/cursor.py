"""Where the next page begins, as a text that means something only to the store."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass

from fogline.storage.errors import BadQuery
from fogline.storage.query.selection import Selection

_MAX = 200


@dataclass(frozen=True, slots=True)
class PageCursor:
    """The last value of a page: the next one begins behind it."""

    time: int
    seq: int

    def encode(self, selection: Selection, descending: bool) -> str:
        body = json.dumps([self.time, self.seq, _fingerprint(selection, descending)])
        return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def decode(text: str, selection: Selection, descending: bool) -> PageCursor:
    """Raises `BadQuery` for what is no cursor, or one of another question."""
    try:
        if len(text) > _MAX:
            raise ValueError("too long")
        data = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
        time, seq, fingerprint = (_check_whole(item) for item in data)
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise BadQuery("invalid cursor", "use the one that came with the page before") from error
    if fingerprint != _fingerprint(selection, descending):
        raise BadQuery("this cursor belongs to another query", "begin without a cursor")
    return PageCursor(time, seq)


def _check_whole(item: object) -> int:
    if not isinstance(item, int) or isinstance(item, bool) or not -(1 << 63) <= item < 1 << 63:
        raise ValueError("not a whole number")
    return item


def _fingerprint(selection: Selection, descending: bool) -> int:
    return zlib.crc32(repr((selection, descending)).encode("utf-8", "surrogatepass"))
