"""Request bodies: read with limits, of each and of all that come at the same time."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from fogline.fabric.http.replies import BusyError, TooLargeError
from fogline.storage.errors import BadQuery

LARGEST = 64 << 20
LARGEST_JSON = 16 << 20
"""Of JSON: it takes many times its size in memory."""
AT_ONCE = 4 * LARGEST


class Intake:
    """Reads bodies on the event loop. Together they have at most `AT_ONCE` bytes."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: Request, largest: int) -> bytes:
        """The body. Raises `TooLargeError`, and `BusyError` when there are too many at once."""
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                self._held += len(part)
                if len(body) > largest:
                    hint = "send it in parts; Arrow may be larger than JSON"
                    raise TooLargeError(f"a body has at most {largest >> 20} MiB", hint)
                if self._held > AT_ONCE:
                    raise BusyError("too many large requests at once", "try again")
            return bytes(body)
        finally:
            self._held -= len(body)


def json_object(body: bytes, known: frozenset[str]) -> dict[str, Any]:
    """An object with no other names than these. Raises `BadQuery`."""
    try:
        data = json.loads(body.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadQuery(f"the body is not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise BadQuery("the body is no JSON object", "names and values in { }")
    unknown = sorted(set(data) - known)
    if unknown:
        hint = f"there is {', '.join(sorted(known))}"
        raise BadQuery(f"the body has an unknown {unknown[0]!r:.80}", hint)
    return data


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")
