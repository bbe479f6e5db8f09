"""Request bodies: read with a limit, told apart by their Content-Type."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request

from fogline.common.errors import DataError
from fogline.coordinator.errors import TooLargeError
from fogline.coordinator.pipelines.ports import INSIGHTS, PLAN, YAML

LARGEST_TEXT = 8 << 20

FORMAT_OF = {
    "application/yaml": YAML,
    "application/x-yaml": YAML,
    "text/yaml": YAML,
    "text/x-yaml": YAML,
    "application/json": PLAN,
    "text/x-insights": INSIGHTS,
}
_NOTHING_SAID = ("", "application/x-www-form-urlencoded", "application/octet-stream", "text/plain")
"""What clients send when nobody told them a type."""


async def read_text(request: Request) -> str:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_TEXT:
            raise TooLargeError(f"a text has at most {LARGEST_TEXT >> 20} MiB")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"the text is not UTF-8: byte {error.start} is wrong") from error


async def read_pipeline(request: Request) -> tuple[str, str]:
    """A text and its format."""
    told = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if told not in FORMAT_OF and told not in _NOTHING_SAID:
        raise DataError(f"no pipeline is a {told[:80]!r}", ", ".join(FORMAT_OF))
    text = await read_text(request)
    guess = PLAN if text.lstrip().startswith("{") else YAML
    return text, FORMAT_OF.get(told, guess)


async def read_object(request: Request) -> dict[str, Any]:
    text = await read_text(request)
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the body is not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise DataError("the body is no JSON object", "names and values in { }")
    return data


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")
