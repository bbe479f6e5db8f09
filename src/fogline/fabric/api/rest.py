"""The REST interface of a node: who is let in, what is read, and where the work is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fogline.common.errors import FoglineError, ForbiddenError
from fogline.common.http.auth import NeedsToken, caller_of
from fogline.common.http.bodies import BodyReader, media_type
from fogline.common.http.docs_page import page_of
from fogline.common.http.parameters import read_parameters
from fogline.common.http.replies import Html, Json
from fogline.fabric.api import openapi, routes_metrics, routes_nodes, routes_spaces, routes_values
from fogline.fabric.api.address import ALL, EACH, HERE, Address, ApiRequest, question_of
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.replies import ERRORS
from fogline.fabric.http.arrow import ARROW_TYPE
from fogline.storage.errors import BadQuery, QueryLimit

ROUTES = (
    *routes_values.ROUTES,
    *routes_metrics.ROUTES,
    *routes_spaces.ROUTES,
    *routes_nodes.ROUTES,
)
OPEN = ("/openapi.json", "/docs")
AT_ONCE = 16
"""Questions of each kind that are worked on at the same time; others wait."""
SQL_AT_ONCE = {HERE: 4, EACH: 2, ALL: 2}
"""Statements in SQL, one of which runs while the others wait; more are refused."""
LARGEST, LARGEST_JSON = 64 << 20, 16 << 20
"""Of a body. JSON takes many times its size in memory."""
SQL = "read:sql"


def make_app(node: FabricNode) -> Starlette:
    slots = RequestSlots()
    bodies = BodyReader()
    return Starlette(
        routes=[
            Route("/openapi.json", _describe),
            Route("/docs", _show),
            *(Route(a.path, _endpoint(a, node, slots, bodies), methods=[a.method]) for a in ROUTES),
        ],
        middleware=[
            Middleware(NeedsToken, find_caller=node.callers.who, open_paths=OPEN, errors=ERRORS)
        ],
        exception_handlers=ERRORS.handlers(),
    )


class RequestSlots:
    """Where blocking work is done: threads, never the event loop.

    Questions to all nodes wait for other nodes, which may wait for us; they have threads of their
    own, so that what a single node is asked for can always be answered. So has SQL, which takes as
    long as its author likes: whoever asks for too much of it is in nobody else's way.
    """

    def __init__(self) -> None:
        self._alone = anyio.CapacityLimiter(AT_ONCE)
        self._together = anyio.CapacityLimiter(AT_ONCE)
        self._sql = {scope: anyio.CapacityLimiter(most) for scope, most in SQL_AT_ONCE.items()}

    async def work(self, address: Address, node: FabricNode, ask: ApiRequest) -> Response:
        """Raises `QueryLimit` when there is no room for more SQL."""
        limiter = self._together if ask.values.get("scope") == ALL else self._alone
        if address.right == SQL:
            limiter = self._sql[ask.values["scope"]]
            if not limiter.available_tokens:
                raise QueryLimit("too many statements in SQL at once", "ask again later")
        return await run_sync(address.handler, node, ask, limiter=limiter)


def _endpoint(
    address: Address, node: FabricNode, slots: RequestSlots, bodies: BodyReader
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        caller = caller_of(request)
        right = address.right.format(**request.path_params)
        if right and not caller.may(right):
            raise ForbiddenError(f"the token lacks the right {right:.100}", "fogline tokens add")
        given = request.query_params.multi_items()
        kind, body = await _body(address, request, bodies)
        ask = ApiRequest(
            values=read_parameters(address.parameters, given),
            path=request.path_params,
            question=question_of(request.url.path, given),
            caller=caller,
            arrow=ARROW_TYPE in request.headers.get("accept", ""),
            body=body,
            type=kind,
        )
        try:
            return await slots.work(address, node, ask)
        except FoglineError:
            raise
        except Exception as error:
            return ERRORS.reply_unexpected(request, error)

    return answer


async def _body(address: Address, request: Request, bodies: BodyReader) -> tuple[str, bytes]:
    if not address.body:
        return "", b""
    given = media_type(request)
    if given == ARROW_TYPE and given not in address.body:
        raise BadQuery("no Arrow here", f"send {address.body[0]}")
    kind = given if given == ARROW_TYPE else address.body[0]
    largest = LARGEST if kind == ARROW_TYPE else LARGEST_JSON
    hint = "send it in parts; Arrow may be larger than JSON"
    return kind, await bodies.read(request, largest, hint)


def _describe(_request: Request) -> Response:
    return Json(openapi.openapi(ROUTES))


def _show(_request: Request) -> Response:
    return Html(page_of(openapi.openapi(ROUTES)))
