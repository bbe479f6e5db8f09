"""Bearer tokens: made, hashed, compared in constant time, and asked for before anything else."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fogline.common.errors import UnauthorizedError
from fogline.common.private_files import write_private

if TYPE_CHECKING:  # commands make tokens and start without a server's libraries
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from fogline.common.http.replies import ErrorReplies

SHORTEST = 16
_CALLER = "fogline.caller"

T = TypeVar("T")


def new_token() -> str:
    return secrets.token_urlsafe(32)


def ensure_token(file: Path) -> None:
    """Writes a new token into the file if there is none, for its owner's eyes only."""
    if not file.exists():
        write_private(file, new_token() + "\n")


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def find_holder(authorization: bytes, known: Iterable[tuple[bytes, T]]) -> T | None:
    """Who holds the token of this header, of hashes and their holders. Every hash is compared,
    whatever the others give."""
    scheme, _, token = authorization.partition(b" ")
    given = hashlib.sha256(token.strip()).digest()
    found = [holder for digest, holder in known if hmac.compare_digest(given, digest)]
    return found[0] if found and scheme.lower() == b"bearer" else None


class NeedsToken:
    """Refuses what comes without a token, before anything else looks at it."""

    def __init__(
        self,
        app: ASGIApp,
        find_caller: Callable[[bytes], Any],
        open_paths: tuple[str, ...],
        errors: ErrorReplies,
    ) -> None:
        """`find_caller` gives who a header stands for, or None."""
        self._app, self._find_caller = app, find_caller
        self._open_paths, self._errors = open_paths, errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._open_paths:
            caller = self._find_caller(dict(scope["headers"]).get(b"authorization", b""))
            if caller is None:
                hint = "Authorization: Bearer and the token"
                refused = UnauthorizedError("a token is needed", hint)
                await self._errors.reply(refused)(scope, receive, send)
                return
            scope[_CALLER] = caller
        await self._app(scope, receive, send)


def caller_of(request: Request) -> Any:
    """Whom `NeedsToken` let in."""
    return request.scope[_CALLER]
