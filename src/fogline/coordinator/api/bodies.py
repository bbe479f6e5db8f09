"""What requests to the coordinator hold: JSON objects, and pipelines in several formats."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from fogline.common.errors import DataError
from fogline.common.http.bodies import decode_text, json_object, media_type
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
"""What clients send when no type was given."""


async def read_pipeline(request: Request) -> tuple[str, str]:
    """A text and its format."""
    kind = media_type(request)
    if kind not in FORMAT_OF and kind not in _NOTHING_SAID:
        raise DataError(f"no pipeline is a {kind[:80]!r}", ", ".join(FORMAT_OF))
    text = decode_text(await _read(request))
    guess = PLAN if text.lstrip().startswith("{") else YAML
    return text, FORMAT_OF.get(kind, guess)


async def read_object(request: Request) -> dict[str, Any]:
    return json_object(await _read(request))


async def _read(request: Request) -> bytes:
    body: bytes = await request.app.state.bodies.read(request, LARGEST_TEXT)
    return body
