"""Replies: JSON and HTML, and the status and shape of every error, the same at all servers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from fogline.common.errors import (
    ConflictError,
    DataError,
    FoglineError,
    ForbiddenError,
    NotFoundError,
    ProblemsError,
    SetupError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    UsageError,
)
from fogline.common.http.bodies import BusyError
from fogline.common.state_files import StateDamaged

_say = logging.getLogger(__name__)

Statuses = tuple[tuple[type[FoglineError], int], ...]

STATUSES: Statuses = (
    (UnauthorizedError, 401),
    (ForbiddenError, 403),
    (NotFoundError, 404),
    (ConflictError, 409),
    (TooLargeError, 413),
    (ProblemsError, 422),
    (UnavailableError, 503),
    (SetupError, 503),
    (StateDamaged, 503),
    (DataError, 400),
    (UsageError, 400),
)


class Json(Response):
    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200, indent: int | None = None) -> None:
        self._indent = indent
        super().__init__(content, status)

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, indent=self._indent)
        return text.encode("utf-8", "replace")


class Html(Response):
    """A page that can load nothing from anywhere."""

    media_type = "text/html"

    def __init__(self, content: str) -> None:
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        super().__init__(content, headers={"Content-Security-Policy": policy})


@dataclass(frozen=True)
class ErrorReplies:
    """How one server answers what fails: `{"error", "hint"}`, and `problems` of a text."""

    server: str
    """Its name in the answer to a bug."""
    statuses: Statuses = ()
    """Of its own errors; they come after the common ones."""
    otherwise: int = 503
    """The status of errors in neither table."""
    routes: str = "GET /docs lists every address"
    """The hint where there is no such address."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What every answer has besides."""

    def reply(self, error: FoglineError) -> Response:
        known = (*STATUSES, *self.statuses)
        status = next((code for kind, code in known if isinstance(error, kind)), self.otherwise)
        if isinstance(error, ProblemsError):
            count = len(error.problems)
            text = f"{count} problem{'s' if count != 1 else ''} in the text"
            reply = self._reply(status, text, problems=[p.as_json() for p in error.problems])
        else:
            reply = self._reply(status, error.message, error.hint)
        if status == 401:
            reply.headers["WWW-Authenticate"] = "Bearer"
        if isinstance(error, TooLargeError | BusyError):
            reply.headers["Connection"] = "close"  # nobody reads the rest of the body
        return reply

    def reply_unexpected(self, request: Request, error: Exception) -> Response:
        _say.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return self._reply(500, f"this is a bug in the {self.server}", "see its log")

    def handlers(self) -> dict[Any, Callable[[Request, Exception], Response]]:
        """For an application."""
        return {
            FoglineError: self._reply_ours,
            HTTPException: self._reply_http,
            ClientDisconnect: lambda _request, _error: Response(status_code=400),
            Exception: self.reply_unexpected,
        }

    def _reply_ours(self, _request: Request, error: Exception) -> Response:
        assert isinstance(error, FoglineError)
        return self.reply(error)

    def _reply_http(self, _request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        hint = self.routes if error.status_code in (404, 405) else ""
        reply = self._reply(error.status_code, str(error.detail), hint)
        reply.headers.update(error.headers or {})
        return reply

    def _reply(self, status: int, text: str, hint: str = "", **more: Any) -> Response:
        return Json({"error": text, "hint": hint, **self.fields, **more}, status)
