"""Requests to a node's REST interface: connections that are kept, limits, errors as exceptions."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from fogline.common.errors import DataError, FoglineError, UsageError
from fogline.fabric.errors import NodeAway, NodeRefused, NotThere, TokenRefused
from fogline.fabric.http.secrets import Secrets
from fogline.storage.errors import BadQuery, BadValue, QueryLimit

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_ANSWER = 1 << 30
_PIECE = 1 << 20
_QUESTIONS = ("/v1/latest", "/v1/sql")
"""What is asked by POST and may be asked twice."""
_ERRORS: dict[int, type[FoglineError]] = {
    400: BadQuery,
    401: TokenRefused,
    403: NodeRefused,
    404: NotThere,
    409: DataError,
    413: QueryLimit,
    429: QueryLimit,
}

Parameters = Iterable[tuple[str, str | int | float]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: for a connection, and for the whole of an answer."""

    connect: float = 1.0
    answer: float = 15.0


class Door:
    """One node's address and the token for it, or the fabric's secrets, of which that is shown
    that the node accepts; for any thread. `close` ends everything, also what is being asked.

    Raises `NodeAway` when there is no answer, or none that can be understood, `NodeRefused` when
    the token is not accepted, `BadQuery` and `QueryLimit` as the node itself would.
    """

    def __init__(self, url: str, token: str | Secrets, patience: Patience | None = None) -> None:
        parts = urlsplit(url)
        try:
            self._port = parts.port
        except ValueError as error:
            raise UsageError(f"no port in {url!r:.200}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"the address of a store is http://host:port, not {url!r:.200}")
        self.url = url.rstrip("/")
        self._https = parts.scheme == "https"
        self._host, self._path = parts.hostname, parts.path.rstrip("/")
        self._secrets, self._shown = token, ""
        self._patience = patience or Patience()
        self._free: list[http.client.HTTPConnection] = []
        self._busy: set[socket.socket] = set()
        self._ended = False
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"Door({self.url!r})"

    def json(
        self, method: str, path: str, parameters: Parameters = (), body: Any = None
    ) -> dict[str, Any]:
        """What the node answers, an object."""
        data = None if body is None else json.dumps(body).encode()
        found = self._ask(method, _target(path, parameters), data, "application/json")
        try:
            told = json.loads(found)
        except (ValueError, RecursionError) as error:
            raise NodeAway(f"{self.url} answers with what is no JSON") from error
        if not isinstance(told, dict):
            raise NodeAway(f"{self.url} answers with what is no object")
        return told

    def arrow(
        self, method: str, path: str, parameters: Parameters = (), body: Any = None
    ) -> tuple[pa.Table, dict[str, Any]]:
        """The table of an answer and what was told with it."""
        from fogline.fabric.http.arrow import ARROW_TYPE, from_arrow  # heavy, and not all need it

        data = None if body is None else json.dumps(body).encode()
        found = self._ask(method, _target(path, parameters), data, ARROW_TYPE)
        try:
            return from_arrow(found)
        except BadValue as error:
            raise NodeAway(f"{self.url} answers with what is no table: {error.message}") from error

    def close(self) -> None:
        self._ended = True
        for connected in list(self._busy):
            _cut(connected)
        with self._guard:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _ask(self, method: str, target: str, body: bytes | None, accept: str) -> bytes:
        """With each token that may be the right one; who refuses a token has done nothing yet."""
        refused: TokenRefused | None = None
        for token in self._tokens():
            try:
                answer = self._ask_with(token, method, target, body, accept)
            except TokenRefused as error:
                refused = error
            else:
                self._shown = token
                return answer
        assert refused is not None
        raise refused

    def _tokens(self) -> list[str]:
        """The one that was accepted last comes first."""
        if isinstance(self._secrets, str):
            return [self._secrets]
        known = self._secrets.accepted() or ("",)
        return sorted(known, key=lambda token: token != self._shown)

    def _ask_with(
        self, token: str, method: str, target: str, body: bytes | None, accept: str
    ) -> bytes:
        headers = {"Authorization": f"Bearer {token}", "Accept": accept}
        if body is not None:
            headers["Content-Type"] = "application/json"
        repeatable = method != "POST" or target.partition("?")[0] in _QUESTIONS
        kept = self._take() if repeatable else None
        until = time.monotonic() + self._patience.answer
        if kept is not None:
            try:
                return self._exchange(kept, method, target, body, headers)
            except (http.client.HTTPException, ConnectionError) as error:
                kept.close()  # closed by the other side meanwhile: once more, anew
                if time.monotonic() >= until:
                    raise self._away(error) from error  # it was not: we closed it
            except OSError as error:
                kept.close()
                raise self._away(error) from error
        fresh = self._connect()
        try:
            return self._exchange(fresh, method, target, body, headers)
        except (http.client.HTTPException, OSError, ValueError) as error:
            fresh.close()
            raise self._away(error) from error

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._patience.connect)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._away(error) from error
        connection.sock.settimeout(self._patience.answer)
        return connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> bytes:
        """An answer that never stops coming is no answer: it is cut off when its time is over."""
        connected = connection.sock
        timer = threading.Timer(self._patience.answer, _cut, [connected])
        timer.daemon = True
        self._busy.add(connected)
        timer.start()
        try:
            if self._ended:
                raise ConnectionAbortedError("nobody waits for it any more")
            return self._answer(connection, method, target, body, headers)
        finally:
            timer.cancel()
            self._busy.discard(connected)

    def _answer(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> bytes:
        connection.request(method, self._path + target, body, dict(headers))
        reply = connection.getresponse()
        found = self._read(reply)
        if reply.will_close:
            connection.close()
        else:
            self._keep(connection)
        if reply.status // 100 != 2:
            raise self._error(reply.status, found)
        return found

    def _read(self, reply: http.client.HTTPResponse) -> bytes:
        pieces, size = [], 0
        while piece := reply.read(_PIECE):
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise http.client.HTTPException("the answer does not end")
            pieces.append(piece)
        return b"".join(pieces)

    def _take(self) -> http.client.HTTPConnection | None:
        with self._guard:
            return self._free.pop() if self._free else None

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._guard:
            self._free.append(connection)

    def _away(self, error: Exception) -> NodeAway:
        hint = "fogline agent --config site.yaml starts the site"
        return NodeAway(f"{self.url} does not answer: {error}", hint)

    def _error(self, status: int, body: bytes) -> FoglineError:
        try:
            told = json.loads(body)
            message, hint = str(told["error"]), str(told.get("hint", ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return NodeAway(f"{self.url} answers with status {status}")
        return _ERRORS.get(status, NodeAway)(message, hint)


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def part(name: str) -> str:
    """A name as part of an address."""
    return quote(name, safe="")


def _target(path: str, parameters: Parameters) -> str:
    query = urlencode(list(parameters))
    return f"{path}?{query}" if query else path
