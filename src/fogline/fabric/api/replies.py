"""Replies of the store: lists and tables, and the statuses of its own errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from starlette.responses import Response

from fogline.common.http.replies import ErrorReplies
from fogline.fabric.http.arrow import ARROW_TYPE, to_arrow
from fogline.storage.errors import BadQuery, BadValue, QueryLimit

ERRORS = ErrorReplies("store", ((QueryLimit, 429), (BadQuery, 400), (BadValue, 400)))


def list_reply(name: str, rows: bytes, extra: Mapping[str, Any]) -> Response:
    """A list that is JSON already, and what belongs to it."""
    rest = json.dumps(extra, ensure_ascii=False).encode("utf-8", "replace")[1:]
    comma = b"," if extra else b""
    body = b'{"' + name.encode() + b'":' + rows + comma + rest
    return Response(body, media_type="application/json")


def arrow_reply(table: pa.Table, extra: Mapping[str, Any]) -> Response:
    return Response(to_arrow(table, extra), media_type=ARROW_TYPE)
