"""Which requests are meant for a server, by their Host and Origin; `test_http_servers` asks by a
socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.config.site import parse_config as parse_site
from fogline.common.errors import UsageError
from fogline.common.http.hosts import Hosts
from fogline.coordinator.config import parse_config as parse_coordinator

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
