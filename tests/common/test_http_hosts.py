"""Requests that are meant for somebody else are refused, by every HTTP server of ours."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from fogline.agent.config.site import SiteConfig
from fogline.agent.config.site import parse_config as parse_site
from fogline.agent.supervisor.reporting import Reporter
from fogline.common.errors import UsageError
from fogline.common.http.hosts import Hosts
from fogline.common.http.server import Server
from fogline.coordinator.api.rest import make_app
from fogline.coordinator.api.tokens import Tokens
from fogline.coordinator.config import parse_config as parse_coordinator
from tests.coordinator.kit import FakeControl, Rig
from tests.fabric.kit_nodes import SECRET, running

TOKEN = "a-token-for-these-tests"
OURS = "fog.example.org"
HERE = "192.0.2.7"
"""Where requests arrive in the tests without a socket."""


def status(
    hosts: Hosts, *named: bytes, method: str = "GET", target: str = "/", origins: Any = ()
) -> int:
    refusal = hosts.refusal(method, target, named, origins, HERE)
    if refusal is None:
        return 200
    assert json.loads(refusal.body) == {"error": refusal.error, "hint": refusal.hint}
    assert "\n" not in refusal.body
    return refusal.status


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:80", "localhost.", "localhost:", "127.0.0.1", "127.9.9.9:7480"),
        *("[::1]", "[::1]:7480", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:1"),
        *(OURS, f"{OURS}:443", OURS.upper(), f"{OURS}.", "10.0.0.5:7480", HERE, f"{HERE}:1"),
        *("other.example.org:99", "[2001:db8::7]", "[2001:DB8:0::7]:9"),
    ],
)
def test_ours(host: str) -> None:
    hosts = Hosts("10.0.0.5", (OURS, "https://other.example.org:8443/x", "2001:db8::7", ""))
    assert status(hosts, host.encode()) == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:7480", "localhost.evil.example", "127.0.0.1.evil.example"),
        *("evil-localhost", "10.0.0.6", "[2001:db8::8]", "0.0.0.0", "[::]", "0", "2130706433"),
        *("0177.0.0.1", f"x{OURS}", f"x.{OURS}", f"{OURS}.evil.example", "192.0.2.8", "127.1"),
    ],
)
def test_foreign(host: str) -> None:
    for listens in ("10.0.0.5", "0.0.0.0", "::"):
        assert status(Hosts(listens, (OURS,)), host.encode()) == 421


@pytest.mark.parametrize(
    "host",
    [
        *(b"", b" ", b"localhost evil", b"localhost, evil", b"evil@localhost", b"localhost/", b"."),
        *(
            b"localhost:x",
            b"localhost:99999",
            b"localhost:123456",
            b"[::1",
            b"::1",
            b"[]",
            b"[::g]",
        ),
        *(b"[fe80::1%25eth0]", b"localhost\xff", b"\x00", b"http://localhost", b"localhost:80:80"),
        *(b"a" * 300, b"a" * 1_000_000, "lócalhost".encode(), b"localhost\\", b"*", b"?", b"[::g]"),
    ],
)
def test_broken(host: bytes) -> None:
    assert status(Hosts("127.0.0.1"), host) in (400, 421)
    if host != b".":
        assert status(Hosts("127.0.0.1"), host) == 400


def test_there_is_one_host_and_the_target_is_a_path() -> None:
    hosts = Hosts("127.0.0.1")
    assert status(hosts) == 400
    assert status(hosts, b"localhost", b"localhost") == 400
    assert status(hosts, b"localhost", b"evil.example") == 400
    for target in ("http://evil.example/", "evil", "", "//"):
        assert status(hosts, b"localhost", target=target) == (200 if target == "//" else 400)


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        *((b"http://localhost:3000", 200), (b"https://fog.example.org", 200)),
        *((b"http://[::1]:80", 200), (b"http://evil.example", 403), (b"null", 403), (b"", 403)),
        *((b"http://localhost.evil.example", 403), (b"http://localhost@evil.example", 403)),
        *((b"ftp://localhost", 403), (b"localhost", 403), (b"http://", 403), (b"\xff", 403)),
    ],
)
def test_origins_that_may_change_something(origin: bytes, code: int) -> None:
    hosts = Hosts("127.0.0.1", (OURS,))
    for method in ("POST", "PUT", "PATCH", "DELETE", "ANYTHING"):
        assert status(hosts, b"localhost", method=method, origins=[origin]) == code
        both = [b"http://localhost", origin]
        assert status(hosts, b"localhost", method=method, origins=both) == code
        assert status(hosts, b"localhost", method=method) == 200
    for method in ("GET", "HEAD", "OPTIONS"):
        assert status(hosts, b"localhost", method=method, origins=[origin]) == 200


@pytest.mark.parametrize("wrong", ["a b", "x:80", "http://", "http://[", "*", "a/b", "é", "[::"])
def test_hosts_of_the_configuration(wrong: str, tmp_path: Path) -> None:
    for parse, given in ((parse_site, {"site": "north"}), (parse_coordinator, {})):
        with pytest.raises(UsageError, match="host"):
            parse({**given, "hosts": [wrong]}, tmp_path, "file.yaml")
        assert parse({**given, "hosts": [OURS, "10.0.0.5"]}, tmp_path, "f").hosts[0] == OURS


# ── by a socket ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[str]:
    rig = Rig(tmp_path, FakeControl("north"))
    server = Server("127.0.0.1", 0, (OURS,))
    server.start(make_app(rig.service, Tokens([TOKEN])))
    yield server.address
    server.stop()
    rig.end()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    with running(tmp_path, "north") as (north,):
        yield north.address


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """What an agent tells of its site."""
    config = SiteConfig("north", tmp_path, hosts=(OURS,))
    told: Any = SimpleNamespace(
        config=config, folder=tmp_path, status=lambda: {"site": "north", "healthy": True}
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


def test_who_listens_everywhere_answers_at_each_address(tmp_path: Path) -> None:
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
