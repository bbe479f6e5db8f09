"""The servers of coordinator, store and agent by a socket: one table of requests for all three.

What is meant for somebody else, broken or hostile gets a line of JSON, and the server goes on.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from fogline.agent.config.site import SiteConfig
from fogline.agent.supervisor.reporting import Reporter
from fogline.common.http.server import Server
from fogline.coordinator.api.rest import make_app
from fogline.coordinator.api.tokens import Tokens
from tests.agent.kit import make_status
from tests.coordinator.kit import FakeControl, Rig
from tests.fabric.kit_nodes import SECRET, running

TOKEN = "a-token-for-these-tests"
OURS = "fog.example.org"


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    rig = Rig(tmp_path_factory.mktemp("coordinator"), FakeControl("north"))
    server = Server("127.0.0.1", 0, (OURS,))
    server.start(make_app(rig.service, Tokens([TOKEN])))
    yield server.address
    server.stop()
    rig.end()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("store"), "north") as (north,):
        yield north.address


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What an agent tells of its site."""
    folder = tmp_path_factory.mktemp("site")
    config = SiteConfig("north", folder, hosts=(OURS,))
    told: Any = SimpleNamespace(
        config=config,
        folder=folder,
        status=make_status,
        damage=SimpleNamespace(acknowledge=lambda log: 3 if log is None else 1),
    )
    reporter = Reporter(told)
    reporter.start()
    yield reporter.address
    reporter.stop()


@pytest.fixture(params=["coordinator", "store", "site"])
def server(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


PATHS = {"coordinator": "/openapi.json", "store": "/openapi.json", "site": "/status"}


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    return PATHS[request.node.callspec.params["server"]]


def exchange(address: str, request: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to these bytes; the server ends the connection."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), 30) as made:
        made.settimeout(30)
        try:
            made.sendall(request)
            answer = b"".join(iter(lambda: made.recv(65536), b""))
        except ConnectionError:
            return 0, b""  # it had seen enough
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def get(path: str, *headers: bytes, method: str = "GET", version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}".encode(), *headers, b"Connection: close", b"", b""]
    return b"\r\n".join(lines)


def refused(answer: tuple[int, bytes], *codes: int) -> None:
    code, body = answer
    assert code in codes
    if code:
        assert json.loads(body)["error"]
        assert body.strip().count(b"\n") == 0


def test_the_own_names_are_answered(server: str, path: str) -> None:
    port = str(urlsplit(server).port).encode()
    for host in (b"localhost", b"127.0.0.1:" + port, b"[::1]:1"):
        assert exchange(server, get(path, b"Host: " + host))[0] == 200


def test_foreign_names_are_refused(server: str, path: str) -> None:
    for host in (b"evil.example", b"evil.example:7480", b"127.0.0.1.evil.example"):
        refused(exchange(server, get(path, b"Host: " + host)), 421)
        with_token = b"Authorization: Bearer " + TOKEN.encode()
        refused(exchange(server, get("/", b"Host: " + host, with_token)), 421)


def test_broken_and_huge_headers_are_refused(server: str, path: str) -> None:
    for version in ("1.0", "1.1"):
        refused(exchange(server, get(path, version=version)), 400)
    twice = get(path, b"Host: localhost", b"Host: localhost")
    refused(exchange(server, twice), 400)
    refused(exchange(server, get(path, b"Host: localhost", b"Host: evil.example")), 400)
    for host in (b"", b"a b", b"localhost:x", b"[::1", b"x" * 5_000, b"user@localhost", b"\xff"):
        refused(exchange(server, get(path, b"Host: " + host)), 400)
    refused(exchange(server, get(path, b"Host: " + b"x" * 10_000_000)), 400, 431, 0)
    refused(exchange(server, get(path, b"Host : localhost")), 400)
    refused(exchange(server, get("http://evil.example/", b"Host: localhost")), 400)
    refused(exchange(server, b"\x00\x01\x02\r\n\r\n"), 400)
    assert exchange(server, get(path, b"Host: localhost"))[0] == 200


def test_foreign_origins_change_nothing(coordinator: str, store: str) -> None:
    for address, change, token in (
        (coordinator, "/fabric/rotate-secret", TOKEN),
        (store, "/v1/values", SECRET),
    ):
        headers = [b"Host: localhost", b"Authorization: Bearer " + token.encode()]
        headers.append(b"Content-Length: 0")
        foreign = [*headers, b"Origin: http://evil.example"]
        refused(exchange(address, get(change, *foreign, method="POST")), 403)
        refused(exchange(address, get(change, *headers, b"Origin: null", method="POST")), 403)
        own = get(change, *headers, b"Origin: http://localhost:1", method="POST")
        code, body = exchange(address, own)
        assert b"origin" not in body
        assert code in (400, 403, 503)


def curl(address: str, *options: str) -> tuple[int, str]:
    command = ["curl", "-q", "-sS", "--noproxy", "*", "-w", "\n%{http_code}", *options, address]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    body, _, code = done.stdout.rpartition("\n")
    return int(code), body


@pytest.mark.site
def test_by_curl(server: str, path: str, request: pytest.FixtureRequest) -> None:
    address = f"{server}{path}"
    assert curl(address)[0] == 200
    assert curl(address, "-H", "Host: localhost:99")[0] == 200
    configured = 421 if "store" in request.node.callspec.params["server"] else 200
    assert curl(address, "-H", f"Host: {OURS}")[0] == configured
    code, body = curl(address, "-H", "Host: evil.example")
    assert code == 421
    assert json.loads(body)["error"] == "this server is not evil.example"
    port = urlsplit(server).port
    rebound = f"http://evil.example:{port}{path}"
    assert curl(rebound, "--resolve", f"evil.example:{port}:127.0.0.1")[0] == 421
    assert curl(address, "-H", "Host:", "--http1.0")[0] == 400
    assert curl(address, "-H", "Host;")[0] == 400


@pytest.mark.site
def test_who_listens_everywhere_answers_at_each_address() -> None:
    async def app(scope: Any, receive: Any, send: Callable[..., Any]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    server = Server("0.0.0.0", 0)
    server.start(app)
    try:
        address = f"http://127.0.0.2:{server.port}"
        assert curl(address)[0] == 200
        assert curl(address, "-H", "Host: 192.0.2.7")[0] == 421
        assert curl(address, "-H", "Host: evil.example")[0] == 421
    finally:
        server.stop()


# ── broken and hostile requests ──────────────────────────────────────────────────────────────────

HOST = b"Host: localhost"
WRONG_REQUESTS = {
    "a length below 0": get("/", HOST, b"Content-Length: -1", method="POST"),
    "a length that is no number": get("/", HOST, b"Content-Length: ten", method="POST"),
    "a length in other digits": get("/", HOST, "Content-Length: ٣".encode(), method="POST"),
    "two lengths": get("/", HOST, b"Content-Length: 1", b"Content-Length: 2", method="POST"),
    "an unknown coding": get("/", HOST, b"Transfer-Encoding: gzip", method="POST"),
    "a name with a space": get("/", HOST, b"X y: z"),
    "a line without a name": get("/", HOST, b": z"),
    "a line without a colon": get("/", HOST, b"nothing"),
    "a zero byte": get("/", HOST, b"X: a\x00b"),
    "a line end within a value": get("/", HOST, b"X: a\rb"),
    "many headers": get("/", HOST, *(b"X-%d: y" % n for n in range(20_000))),
    "a target that is no path": get("status", HOST),
    "a space in the target": get("/a b", HOST),
    "no version": b"GET /\r\n\r\n",
    "no method": b" / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a header without end": b"GET / HTTP/1.1\r\nX: " + b"y" * 1_000_000,
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", WRONG_REQUESTS.values(), ids=WRONG_REQUESTS)
def test_what_is_no_request_is_refused(server: str, path: str, request_bytes: bytes) -> None:
    refused(exchange(server, request_bytes), 400, 0)
    assert exchange(server, get(path, HOST))[0] == 200


ODD_REQUESTS = {
    "a huge header": get("/nothing", HOST, b"X: " + b"y" * 60_000),
    "a huge target": get("/" + "x" * 60_000, HOST),
    "a version of its own": get("/nothing", HOST, version="9.9"),
    "a method of its own": get("/nothing", HOST, method="BREW"),
}
"""They may be HTTP."""


@pytest.mark.parametrize("request_bytes", ODD_REQUESTS.values(), ids=ODD_REQUESTS)
def test_odd_requests_have_answers(server: str, path: str, request_bytes: bytes) -> None:
    refused(exchange(server, request_bytes), 401, 404)
    assert exchange(server, get(path, HOST))[0] == 200


CHANGES = {
    "coordinator": ("/jobs", TOKEN, (400, 422)),
    "store": ("/v1/sql", SECRET, (400,)),
    "site": ("/damage/acknowledge", "", (200, 0)),
}
"""An address that takes a body, and what a wrong one gets; the site's reads none."""
Change = tuple[str, list[bytes], tuple[int, ...]]
WRONG_BODIES = {
    "nothing": b"",
    "half an object": b'{"a": 1',
    "a list": b"[]",
    "a text": b'"a"',
    "no UTF-8": b"\xff\xfe",
    "half a character": b'{"\\ud800": 1}',
    "NaN": b'{"a": NaN}',
    "deeper than a stack": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a number of many digits": b'{"a": ' + b"9" * 10_000 + b"}",
    "other names": b'{"nothing": 1}',
}


@pytest.fixture
def change(request: pytest.FixtureRequest) -> Change:
    where, token, codes = CHANGES[request.node.callspec.params["server"]]
    return where, [HOST, *([b"Authorization: Bearer " + token.encode()] if token else [])], codes


@pytest.mark.parametrize("body", WRONG_BODIES.values(), ids=WRONG_BODIES)
@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
def test_wrong_bodies(server: str, path: str, change: Change, body: bytes, chunked: bool) -> None:
    where, headers, codes = change
    if chunked:
        sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        headers = [*headers, b"Transfer-Encoding: chunked"]
    else:
        sent, headers = body, [*headers, b"Content-Length: %d" % len(body)]
    found, answer = exchange(server, get(where, *headers, method="POST") + sent)
    assert found in codes
    assert found in (0, 200) or set(json.loads(answer)) >= {"error", "hint"}
    assert exchange(server, get(path, HOST))[0] == 200


def test_bodies_that_do_not_end_as_they_say(server: str, path: str, change: Change) -> None:
    where, headers, _ = change
    broken = get(where, *headers, b"Transfer-Encoding: chunked", method="POST") + b"zz\r\nno\r\n"
    code, _ = exchange(server, broken)
    assert code in (0, 200, 400)
    parts = urlsplit(server)
    for told in (b"Content-Length: 1000", b"Transfer-Encoding: chunked"):
        with socket.create_connection((parts.hostname, parts.port), 30) as gone:
            gone.sendall(get(where, *headers, told, method="POST") + b"5\r\n{")
    assert exchange(server, get(path, HOST))[0] == 200


def test_unknown_addresses_and_methods(
    server: str, change: Change, request: pytest.FixtureRequest
) -> None:
    where, headers, _ = change
    for wrong in ("/nothing", "/%00", "/%ff", "/../../etc/passwd", "/" + "a/" * 1_000):
        refused(exchange(server, get(wrong, *headers)), 404)
    code, body = exchange(server, get(where, *headers, method="BREW"))
    assert (code, bool(json.loads(body)["hint"])) == (405, True)


@pytest.mark.parametrize("server", ["coordinator", "store"], indirect=True)
@pytest.mark.parametrize(
    "token", [b"", b"Bearer", b"Bearer ", b"Basic {}", b"{}", b"Bearer {}x", b"Bearer \xff"]
)
def test_no_token(server: str, change: Change, token: bytes) -> None:
    where, headers, _ = change
    right = headers[1].removeprefix(b"Authorization: Bearer ")
    wrong = b"Authorization: " + token.replace(b"{}", right)
    for given in ([HOST], [HOST, wrong]):
        code, body = exchange(server, get(where, *given, method="POST"))
        assert (code, json.loads(body)["error"]) == (401, "a token is needed")


def test_damage_is_acknowledged_by_a_known_parameter_only(site: str) -> None:
    def post(query: str) -> tuple[int, Any]:
        code, body = exchange(site, get(f"/damage/acknowledge{query}", HOST, method="POST"))
        return code, json.loads(body)

    assert post("") == post("?log=") == (200, {"acknowledged": 3})
    assert post("?log=a%2Fb") == (200, {"acknowledged": 1})
    for wrong in ("?logs=a", "?log=a&log=b"):
        assert post(wrong)[0] == 400
