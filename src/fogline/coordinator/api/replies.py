"""Replies, and the status and shape of every error."""

from __future__ import annotations

import json
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fogline.common.errors import FoglineError, ProblemsError, SetupError
from fogline.coordinator.errors import (
    ConflictError,
    NotThereError,
    RefusedError,
    StoreError,
    TooLargeError,
    UnavailableError,
)

_say = logging.getLogger(__name__)

STATUSES: tuple[tuple[type[FoglineError], int], ...] = (
    (RefusedError, 401),
    (NotThereError, 404),
    (ConflictError, 409),
    (TooLargeError, 413),
    (ProblemsError, 422),
    (StoreError, 503),
    (UnavailableError, 503),
    (SetupError, 503),
    (FoglineError, 400),
)


class Json(Response):
    media_type = "application/json"

    def __init__(
        self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


class Html(Response):
    media_type = "text/html"

    def __init__(self, content: str) -> None:
        only_own = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        super().__init__(content, 200, only_own)


def error_json(error: FoglineError) -> dict[str, Any]:
    if isinstance(error, ProblemsError):
        count = len(error.problems)
        text = f"{count} problem{'s' if count != 1 else ''} in the text"
        problems = [problem.as_json() for problem in error.problems]
        return {"error": text, "hint": "", "problems": problems}
    return {"error": error.message, "hint": error.hint, "problems": []}


def error_reply(error: FoglineError) -> Json:
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return Json(error_json(error), status, headers)


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(FoglineError, _ours)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)


def _ours(_request: Request, error: Exception) -> Response:
    assert isinstance(error, FoglineError)
    return error_reply(error)


def _http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    hint = "GET /docs lists every address" if error.status_code in (404, 405) else ""
    told = {"error": str(error.detail), "hint": hint, "problems": []}
    return Json(told, error.status_code)


def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors())
    return Json({"error": wrong, "hint": "", "problems": []}, 400)


def _unexpected(request: Request, error: Exception) -> Response:
    _say.error("%s %s failed", request.method, request.url.path, exc_info=error)
    told = {"error": "this is a bug in the coordinator", "hint": "its log tells more"}
    return Json({**told, "problems": []}, 500)
