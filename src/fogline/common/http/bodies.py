"""Request bodies: read with limits, of each and of all that come at the same time."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from fogline.common.errors import DataError, TooLargeError, UnavailableError

AT_ONCE = 256 << 20


class BusyError(UnavailableError):
    """Too much comes at the same time."""


class BodyReader:
    """Reads bodies on the event loop. Together they have at most `AT_ONCE` bytes."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: Request, largest: int, hint: str = "") -> bytes:
        """The body. Raises `TooLargeError`, and `BusyError` when there are too many at once."""
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                self._held += len(part)
                if len(body) > largest:
                    raise TooLargeError(f"a body has at most {largest >> 20} MiB", hint)
                if self._held > AT_ONCE:
                    raise BusyError("too many large requests at once", "try again")
            return bytes(body)
        finally:
            self._held -= len(body)


def media_type(request: Request) -> str:
    """Of the body, without parameters; empty if the request does not say."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def decode_text(body: bytes) -> str:
    """Raises `DataError`."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the body is not UTF-8: byte {error.start} is wrong") from error


def json_object(body: bytes, known: frozenset[str] | None = None) -> dict[str, Any]:
    """An object; with `known`, with no other names than these. Raises `DataError`."""
    text = decode_text(body)
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the body is not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise DataError("the body must be a JSON object", "write it in { }")
    unknown = sorted(set(data) - known) if known is not None else ()
    if known is not None and unknown:
        hint = f"there is {', '.join(sorted(known))}"
        raise DataError(f"the body has an unknown {unknown[0]!r:.80}", hint)
    return data


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")
