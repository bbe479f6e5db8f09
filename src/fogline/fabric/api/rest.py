"""The REST interface of a node: who is let in, what is read, and where the work is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fogline.common.errors import FoglineError
from fogline.fabric.api import openapi, routes_metrics, routes_nodes, routes_spaces, routes_values
from fogline.fabric.api.address import ALL, EACH, HERE, Address, Ask, question_of, read_parameters
from fogline.fabric.api.node import Node
from fogline.fabric.api.tokens_file import Callers
from fogline.fabric.http.arrow import ARROW_TYPE
from fogline.fabric.http.bodies import LARGEST, LARGEST_JSON, Intake
from fogline.fabric.http.replies import (
    HANDLERS,
    MayNotError,
    NeedsTokenError,
    error_reply,
    json_reply,
    unexpected_error,
)
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
_CALLER = "fogline.caller"
SQL = "read:sql"


def make_app(node: Node) -> Starlette:
    rooms = Rooms()
    intake = Intake()
    return Starlette(
        routes=[
            Route("/openapi.json", _describe),
            Route("/docs", _show),
            *(Route(a.path, _endpoint(a, node, rooms, intake), methods=[a.method]) for a in ROUTES),
        ],
        middleware=[Middleware(NeedsToken, callers=node.callers)],
        exception_handlers=HANDLERS,
    )


class Rooms:
    """Where blocking work is done: threads, never the event loop.

    Questions to all nodes wait for other nodes, which may wait for us; they have threads of their
    own, so that what a single node is asked for can always be answered. So has SQL, which takes as
    long as its author likes: whoever asks for too much of it is in nobody else's way.
    """

    def __init__(self) -> None:
        self._alone = anyio.CapacityLimiter(AT_ONCE)
        self._together = anyio.CapacityLimiter(AT_ONCE)
        self._sql = {scope: anyio.CapacityLimiter(most) for scope, most in SQL_AT_ONCE.items()}

    async def work(self, address: Address, node: Node, ask: Ask) -> Response:
        """Raises `QueryLimit` when there is no room for more SQL."""
        limiter = self._together if ask.values.get("scope") == ALL else self._alone
        if address.right == SQL:
            limiter = self._sql[ask.values["scope"]]
            if not limiter.available_tokens:
                raise QueryLimit("too many statements in SQL at once", "ask again later")
        return await run_sync(address.handler, node, ask, limiter=limiter)


class NeedsToken:
    """Refuses what comes without a token before anything else looks at it."""

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN:
            caller = self._callers.who(dict(scope["headers"]).get(b"authorization", b""))
            if caller is None:
                text = "a token is needed"
                refused = NeedsTokenError(text, "Authorization: Bearer and the token")
                await error_reply(refused)(scope, receive, send)
                return
            scope[_CALLER] = caller
        await self._app(scope, receive, send)


def _endpoint(
    address: Address, node: Node, rooms: Rooms, intake: Intake
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        caller = request.scope[_CALLER]
        right = address.right.format(**request.path_params)
        if right and not caller.may(right):
            raise MayNotError(f"the token lacks the right {right:.100}", "fogline tokens add")
        given = request.query_params.multi_items()
        kind, body = await _body(address, request, intake)
        ask = Ask(
            values=read_parameters(address.parameters, given),
            path=request.path_params,
            question=question_of(request.url.path, given),
            caller=caller,
            arrow=ARROW_TYPE in request.headers.get("accept", ""),
            body=body,
            type=kind,
        )
        try:
            return await rooms.work(address, node, ask)
        except FoglineError:
            raise
        except Exception as error:
            return unexpected_error(request, error)

    return answer


async def _body(address: Address, request: Request, intake: Intake) -> tuple[str, bytes]:
    if not address.body:
        return "", b""
    told = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if told == ARROW_TYPE and told not in address.body:
        raise BadQuery("no Arrow here", f"send {address.body[0]}")
    kind = told if told == ARROW_TYPE else address.body[0]
    return kind, await intake.read(request, LARGEST if kind == ARROW_TYPE else LARGEST_JSON)


def _describe(_request: Request) -> Response:
    return json_reply(openapi.openapi(ROUTES))


def _show(_request: Request) -> Response:
    return HTMLResponse(
        openapi.page(ROUTES), headers={"Content-Security-Policy": "default-src 'none'"}
    )
