"""The coordinator's REST interface: the routes, the tokens, the OpenAPI description."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

import fogline
from fogline.common.errors import DataError
from fogline.common.http.auth import NeedsToken
from fogline.common.http.bodies import BodyReader
from fogline.common.http.replies import ErrorReplies
from fogline.coordinator.api.routes import ROUTES, Endpoint
from fogline.coordinator.api.service import Service
from fogline.coordinator.api.tokens import Tokens

OPEN = ("/health", "/docs", "/openapi.json")
ABOUT = "Desired state and status of the nodes. All but /health and this page need a token."

ERRORS = ErrorReplies("coordinator", otherwise=400, fields={"problems": []})


def make_app(service: Service, tokens: Tokens) -> FastAPI:
    app = FastAPI(
        title="Fogline coordinator",
        version=fogline.__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.service, app.state.bodies = service, BodyReader()
    for address in ROUTES:
        _add(app, address)
    app.openapi = lambda: _describe_api(app)  # type: ignore[method-assign]
    for kind, handler in (ERRORS.handlers() | {RequestValidationError: _invalid}).items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(NeedsToken, find_caller=tokens.admit, open_paths=OPEN, errors=ERRORS)
    return app


def _describe_api(app: FastAPI) -> dict[str, Any]:
    schema = FastAPI.openapi(app)
    schemes = schema.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["token"] = {"type": "http", "scheme": "bearer", "description": "a line of tokens_file"}
    return schema


def _add(app: FastAPI, address: Endpoint) -> None:
    app.add_api_route(
        address.path,
        address.handler,
        methods=[address.method],
        summary=address.summary,
        operation_id=f"{address.method.lower()}_{address.handler.__name__}",
        response_model=None,
        responses=_responses(address),
        openapi_extra=_extra(address),
    )


def _responses(address: Endpoint) -> dict[int | str, dict[str, Any]]:
    schema = {
        "type": "object",
        "properties": {
            "error": {"type": "string"},
            "hint": {"type": "string"},
            "problems": {"type": "array", "items": {"type": "object"}},
        },
    }
    texts = {400: "asked wrong", 401: "no or a wrong token", 503: "not now"}
    if "{" in address.path:
        texts |= {404: "not there"}
    if address.types:
        texts |= {409: "does not go with what is there", 413: "too large", 422: "wrong text"}
    content = {"application/json": {"schema": schema}}
    return {code: {"description": text, "content": content} for code, text in texts.items()}


def _extra(address: Endpoint) -> dict[str, Any]:
    extra: dict[str, Any] = {"security": [] if address.path in OPEN else [{"token": []}]}
    if address.types:
        schema = address.schema or {"type": "string"}
        content = {kind: {"schema": schema} for kind in address.types}
        extra["requestBody"] = {"required": address.needs_body, "content": content}
    return extra


def _invalid(_request: Request, error: Exception) -> Response:
    """FastAPI's own check of parameters."""
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors())
    return ERRORS.reply(DataError(wrong))
