"""The HTTP client of commands, sites and nodes: kept connections, limits, errors as exceptions."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit

from fogline.common.errors import (
    ConflictError,
    DataError,
    FoglineError,
    ForbiddenError,
    NotFoundError,
    PipelineError,
    Problem,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    UsageError,
)

LARGEST_ANSWER = 1 << 30
ERRORS: Mapping[int, type[FoglineError]] = {
    400: DataError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    413: TooLargeError,
}
"""Of each status; any other means that it cannot be done now."""
JSON = "application/json"
_PIECE = 1 << 20

Parameters = Iterable[tuple[str, str | int | float]]
RequestBody = bytes | BinaryIO | None


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: for a connection, and for the whole of an answer."""

    connect: float = 1.0
    answer: float = 15.0


@dataclass(frozen=True, slots=True)
class RemoteService:
    """Who answers at an address, and what its answers mean."""

    name: str
    """In error texts, "the coordinator"."""
    start: str = ""
    """The hint where nobody answers: which command starts one."""
    errors: Mapping[int, type[FoglineError]] = field(default_factory=dict)
    """Of statuses that mean something else than in `ERRORS`."""
    unreachable: type[FoglineError] = UnavailableError
    """No answer, or none that can be understood."""
    questions: tuple[str, ...] = ()
    """Paths that POST asks, so that it may be repeated."""


class HttpClient:
    """One address and the token for it, for any thread. `close` ends everything, also what is
    being asked. No proxy is used, and no redirect is followed: a token is sent to nobody else.

    Raises what its `RemoteService` says; its text is the server's response. A connection is kept;
    where the other side has closed it meanwhile, what may be asked twice is asked again.
    """

    def __init__(
        self,
        url: str,
        service: RemoteService,
        token: str | Callable[[], Sequence[str]] = "",
        patience: Patience | None = None,
    ) -> None:
        """`token` may give several, newest first, of which the server may accept any."""
        parts = urlsplit(url)
        try:
            self._port = parts.port
        except ValueError as error:
            raise UsageError(f"no port in {url!r:.200}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"the address of {service.name} is http://host:port, not {url!r:.200}")
        self.url = url.rstrip("/")
        self._service = service
        self._https = parts.scheme == "https"
        self._host, self._path = parts.hostname, parts.path.rstrip("/")
        self._token, self._accepted = token, ""
        self._patience = patience or Patience()
        self._free: list[http.client.HTTPConnection] = []
        self._busy: set[socket.socket] = set()
        self._ended = False
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def json(
        self, method: str, path: str, parameters: Parameters = (), body: Any = None
    ) -> dict[str, Any]:
        """What the server answers, an object."""
        data = None if body is None else json.dumps(body).encode()
        found = self.ask(method, path, parameters, data, JSON if data is not None else "")
        if not isinstance(found, dict):
            raise self._service.unreachable(f"{self.url} answers with what is no object")
        return found

    def ask(
        self,
        method: str,
        path: str,
        parameters: Parameters = (),
        body: RequestBody = None,
        media_type: str = "",
    ) -> Any:
        """What the server answers, any JSON; a body of any type."""
        found = self.exchange(method, path, parameters, body, media_type)
        try:
            return json.loads(found)
        except (ValueError, RecursionError) as error:
            text = f"{self.url} answers with what is no JSON"
            raise self._service.unreachable(text) from error

    def exchange(
        self,
        method: str,
        path: str,
        parameters: Parameters = (),
        body: RequestBody = None,
        media_type: str = "",
        accept: str = JSON,
    ) -> bytes:
        """The body of an answer. Every token that may be right is tried; who refuses one has done
        nothing yet."""
        query = urlencode(list(parameters))
        target = f"{path}?{query}" if query else path
        headers = {"Accept": accept, **({"Content-Type": media_type} if media_type else {})}
        refused: FoglineError | None = None
        for token in self._tokens():
            status, found = self._send(method, target, body, headers | self._login(token))
            if status // 100 == 2:
                self._accepted = token
                return found
            refused = self._error(status, found)
            if status != 401 or _is_file(body):
                break
        assert refused is not None
        raise refused

    def close(self) -> None:
        self._ended = True
        for connected in list(self._busy):
            _cut(connected)
        with self._guard:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _tokens(self) -> list[str]:
        """The one that was accepted last comes first."""
        if isinstance(self._token, str):
            return [self._token]
        return sorted(self._token() or ("",), key=lambda token: token != self._accepted)

    def _login(self, token: str) -> dict[str, str]:
        """Raises `UsageError`, whose text holds nothing of the token."""
        if not (token.isascii() and token.isprintable()):
            hint = "it is one line of letters, digits and signs"
            raise UsageError(f"the token for {self._service.name} cannot be sent", hint)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _send(
        self, method: str, target: str, body: RequestBody, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        repeatable = method == "GET" or target.partition("?")[0] in self._service.questions
        kept = self._take() if repeatable and not _is_file(body) else None
        until = time.monotonic() + self._patience.answer
        if kept is not None:
            try:
                return self._answer(kept, method, target, body, headers)
            except (http.client.HTTPException, ConnectionError) as error:
                kept.close()  # closed by the other side meanwhile: once more, anew
                if time.monotonic() >= until:
                    raise self._no_answer(error) from error  # it was not: we closed it
            except OSError as error:
                kept.close()
                raise self._no_answer(error) from error
        fresh = self._connect()
        try:
            return self._answer(fresh, method, target, body, headers)
        except (http.client.HTTPException, OSError, ValueError) as error:
            fresh.close()
            raise self._no_answer(error) from error

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._patience.connect)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._no_answer(error) from error
        connection.sock.settimeout(self._patience.answer)
        return connection

    def _answer(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: RequestBody,
        headers: dict[str, str],
    ) -> tuple[int, bytes]:
        """Status and body. A file takes as long as it takes; what follows does not."""
        with contextlib.ExitStack() as limited:
            if not _is_file(body):
                limited.enter_context(self._limit_time(connection.sock))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                # Who refuses a body may answer and close before all of it is sent.
                connection.request(method, self._path + target, body, headers)
            if _is_file(body):
                limited.enter_context(self._limit_time(connection.sock))
            reply = connection.getresponse()
            found = _read(reply)
        if reply.will_close:
            connection.close()
        else:
            with self._guard:
                self._free.append(connection)
        return reply.status, found

    @contextlib.contextmanager
    def _limit_time(self, connected: socket.socket) -> Iterator[None]:
        """An answer that never stops coming is no answer: it is cut off when its time is over."""
        timer = threading.Timer(self._patience.answer, _cut, [connected])
        timer.daemon = True
        self._busy.add(connected)
        timer.start()
        try:
            if self._ended:
                raise ConnectionAbortedError("nobody waits for it any more")
            yield
        finally:
            timer.cancel()
            self._busy.discard(connected)

    def _take(self) -> http.client.HTTPConnection | None:
        with self._guard:
            return self._free.pop() if self._free else None

    def _no_answer(self, error: Exception) -> FoglineError:
        text = f"{self._service.name} at {self.url} does not answer: {error}"
        return self._service.unreachable(text, self._service.start)

    def _error(self, status: int, body: bytes) -> FoglineError:
        try:
            answer = json.loads(body)
            message, hint = str(answer["error"]), str(answer.get("hint", ""))
            problems = tuple(Problem(**problem) for problem in answer.get("problems", ()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            text = f"{self._service.name} at {self.url} answers with status {status}"
            return self._service.unreachable(text)
        if problems:
            return PipelineError(problems)
        known = {**ERRORS, **self._service.errors}
        return known.get(status, self._service.unreachable)(message, hint)


def _read(reply: http.client.HTTPResponse) -> bytes:
    pieces, size = [], 0
    while piece := reply.read(_PIECE):
        size += len(piece)
        if size > LARGEST_ANSWER:
            raise http.client.HTTPException("the answer does not end")
        pieces.append(piece)
    return b"".join(pieces)


def _is_file(body: RequestBody) -> bool:
    return not (body is None or isinstance(body, bytes))


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def part(name: str) -> str:
    """A name as part of an address."""
    return quote(name, safe="")
