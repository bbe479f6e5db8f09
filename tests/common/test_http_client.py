"""The client: what it repeats, what it never does, and which error each answer is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from fogline.common.errors import (
    ConflictError,
    DataError,
    FoglineError,
    ForbiddenError,
    NotFoundError,
    PipelineError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    UsageError,
)
from fogline.common.http.bodies import BodyReader
from fogline.common.http.client import HttpClient, Patience, RemoteService
from fogline.common.http.replies import ErrorReplies, Json
from fogline.common.http.server import Server

SITE = RemoteService("the site north", "start it")
LONG = Patience(5.0, 60.0)
SMALL = 1 << 20
PROBLEM = {"code": "x", "message": "m", "line": 1, "column": 2, "source": "", "hint": ""}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def scripted(script: Callable[[socket.socket, int], None]) -> Iterator[str]:
    """Does what a script says with each connection, which are counted from 1."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            number = 0
            while True:
                try:
                    taken, _ = listening.accept()
                except OSError:
                    return
                number += 1
                with taken:
                    script(taken, number)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(30)


@pytest.fixture
def echo() -> Iterator[str]:
    """Answers with what it was sent, up to a MiB."""
    bodies = BodyReader()

    async def answer(request: Request) -> Json:
        body = await bodies.read(request, SMALL)
        return Json({"size": len(body), "token": request.headers.get("authorization", "")})

    server = Server("127.0.0.1", 0)
    routes = [Route("/", answer, methods=["GET", "PUT", "POST"])]
    server.start(Starlette(routes=routes, exception_handlers=ErrorReplies("echo").handlers()))
    yield server.address
    server.stop()


def test_files_are_sent_as_they_are(echo: str, tmp_path: Path) -> None:
    file = tmp_path / "package"
    file.write_bytes(b"x" * SMALL)
    client = HttpClient(echo, SITE, patience=LONG)
    with file.open("rb") as body:
        assert client.ask("PUT", "/", (), body)["size"] == SMALL


def test_who_refuses_a_body_is_heard(echo: str, tmp_path: Path) -> None:
    """The server answers and closes while the body is still being sent."""
    file = tmp_path / "package"
    file.write_bytes(b"x" * (64 * SMALL))
    client = HttpClient(echo, SITE, patience=LONG)
    for _ in range(5):
        with pytest.raises(TooLargeError, match="1 MiB"):
            client.ask("POST", "/", (), b"x" * (64 * SMALL))
        with file.open("rb") as body, pytest.raises(TooLargeError, match="1 MiB"):
            client.ask("PUT", "/", (), body)


def test_the_token_is_shown_and_nothing_where_there_is_none(echo: str) -> None:
    assert HttpClient(echo, SITE, "abc").ask("GET", "/")["token"] == "Bearer abc"
    assert HttpClient(echo, SITE).ask("GET", "/")["token"] == ""


@pytest.mark.parametrize("token", ["secret\nX: y", "secret\x00", "sécret", "secret\r"])
def test_a_token_that_no_header_can_hold_is_not_told(echo: str, token: str) -> None:
    with pytest.raises(UsageError, match="cannot be sent") as refused:
        HttpClient(echo, SITE, token).ask("GET", "/")
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("method", "path", "connections"),
    [("GET", "/", 2), ("POST", "/ask", 2), ("POST", "/do", 2), ("PATCH", "/", 2)],
)
def test_a_connection_that_was_closed_meanwhile(method: str, path: str, connections: int) -> None:
    """Each request is answered once; what changes something is never sent twice."""
    requests: list[tuple[int, bytes]] = []

    def once(taken: socket.socket, number: int) -> None:
        requests.append((number, taken.recv(65_536).split()[0]))
        taken.sendall(OK)

    service = RemoteService("the site north", questions=("/ask",))
    with scripted(once) as address:
        client = HttpClient(address, service, patience=LONG)
        assert client.json("GET", "/") == {}
        assert client.json(method, path) == {}
    assert requests == [(1, b"GET"), (connections, method.encode())]


def test_what_changes_something_is_sent_once() -> None:
    requests = []

    def drop(taken: socket.socket, number: int) -> None:
        requests.append(taken.recv(65_536).split()[0])
        if number == 1:
            taken.sendall(OK)

    for method in ("POST", "PUT", "PATCH", "DELETE"):
        requests.clear()
        with scripted(drop) as address:
            client = HttpClient(address, SITE, patience=LONG)
            client.json("GET", "/")
            with pytest.raises(UnavailableError):
                client.json(method, "/")
        assert requests == [b"GET", method.encode()]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((400, DataError), (401, UnauthorizedError), (403, ForbiddenError), (404, NotFoundError)),
        *((409, ConflictError), (413, TooLargeError), (418, UnavailableError)),
        *((500, UnavailableError), (503, UnavailableError)),
    ],
)
def test_errors(status: int, kind: type[FoglineError]) -> None:
    body = Json({"error": "said so", "hint": "do this"}).body
    found = raised(f"HTTP/1.1 {status} x\r\n".encode(), bytes(body))
    assert type(found) is kind
    assert (found.message, found.hint) == ("said so", "do this")


def test_problems_of_a_text() -> None:
    body = Json({"error": "1 problem", "hint": "", "problems": [PROBLEM]}).body
    found = raised(b"HTTP/1.1 422 x\r\n", bytes(body))
    assert isinstance(found, PipelineError)
    assert found.problems[0].as_json() == PROBLEM


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"error": 1, "problems": [5]}'])
def test_answers_that_are_none(body: bytes) -> None:
    found = raised(b"HTTP/1.1 404 x\r\n", body)
    assert type(found) is UnavailableError
    assert "the site north" in found.message
    assert "404" in found.message


def test_no_redirect_is_followed_and_no_proxy_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    found = raised(b"HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:1/\r\n", b"")
    assert "302" in found.message


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = HttpClient(f"http://127.0.0.1:{taken.getsockname()[1]}", SITE)
        with pytest.raises(UnavailableError) as nobody:
            client.json("GET", "/status")
    assert "the site north" in nobody.value.message
    assert nobody.value.hint == "start it"
    with pytest.raises(UsageError, match="the site north"):
        HttpClient("ftp://host", SITE)


def raised(head: bytes, body: bytes) -> FoglineError:
    def answer(taken: socket.socket, _number: int) -> None:
        taken.recv(65_536)
        taken.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    with scripted(answer) as address, pytest.raises(FoglineError) as found:
        HttpClient(address, SITE, "token", LONG).json("GET", "/")
    return found.value
