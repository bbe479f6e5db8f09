"""Replies, and the status of every error."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from fogline.common.errors import DataError, FoglineError
from fogline.fabric.errors import NotThere
from fogline.fabric.http.arrow import ARROW_TYPE, to_arrow
from fogline.storage.errors import BadQuery, BadValue, QueryLimit

_say = logging.getLogger(__name__)


class NeedsTokenError(FoglineError):
    """The token is missing or wrong."""


class MayNotError(FoglineError):
    """The caller lacks a right."""


class ConflictError(FoglineError):
    """It does not go with what is there."""


class TooLargeError(FoglineError):
    """More than is taken at once."""


class BusyError(FoglineError):
    """It cannot be done now; later it may."""


STATUSES: tuple[tuple[type[FoglineError], int], ...] = (
    (NeedsTokenError, 401),
    (MayNotError, 403),
    (NotThere, 404),
    (ConflictError, 409),
    (DataError, 409),
    (TooLargeError, 413),
    (QueryLimit, 429),
    (BadQuery, 400),
    (BadValue, 400),
)
"""Everything else that is ours means that the store cannot do it now: 503."""


def json_reply(content: Mapping[str, Any], status: int = 200) -> Response:
    body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, media_type="application/json")


def list_reply(name: str, rows: bytes, extra: Mapping[str, Any]) -> Response:
    """A list that is JSON already, and what belongs to it."""
    rest = json.dumps(extra, ensure_ascii=False).encode("utf-8", "replace")[1:]
    comma = b"," if extra else b""
    body = b'{"' + name.encode() + b'":' + rows + comma + rest
    return Response(body, media_type="application/json")


def arrow_reply(table: pa.Table, extra: Mapping[str, Any]) -> Response:
    return Response(to_arrow(table, extra), media_type=ARROW_TYPE)


def error_reply(error: FoglineError) -> Response:
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 503)
    reply = json_reply({"error": error.message, "hint": error.hint}, status)
    if status == 401:
        reply.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooLargeError | BusyError):
        reply.headers["Connection"] = "close"  # nobody reads the rest of the body
    return reply


def http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    hint = "GET /docs lists every address" if error.status_code in (404, 405) else ""
    return json_reply({"error": str(error.detail), "hint": hint}, error.status_code)


def our_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, FoglineError)
    return error_reply(error)


def gone_client(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)


def unexpected_error(request: Request, error: Exception) -> Response:
    _say.error("%s %s failed", request.method, request.url.path, exc_info=error)
    told = {"error": "this is a bug in the store", "hint": "its log tells more"}
    return json_reply(told, 500)


HANDLERS = {
    FoglineError: our_error,
    HTTPException: http_error,
    ClientDisconnect: gone_client,
    Exception: unexpected_error,
}
