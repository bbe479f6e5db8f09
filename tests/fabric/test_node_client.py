"""Another node may answer anything, or nothing: callers get right tables or one of our errors."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from fogline.common.errors import UsageError
from fogline.common.http import client as http_client
from fogline.common.http.client import Patience
from fogline.fabric.errors import NodeRefused, NodeUnreachable
from fogline.fabric.http.arrow import to_arrow
from fogline.fabric.membership.node_client import NodeClient, portions
from fogline.fabric.query.query_types import AggregateQuery, Range, Selected
from fogline.fabric.query.tables import ROWS
from fogline.storage.errors import BadQuery, QueryLimit, StoreError
from fogline.storage.values import from_values
from tests.fabric.kit_nodes import SECRET, running, some_values

ID = "a" * 32
SHORT = Patience(connect=5.0, answer=30.0)

Script = Callable[[socket.socket], None]


@contextmanager
def server(script: Script) -> Iterator[str]:
    """Does what a script says with every connection, after it has read the request."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                taken, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=[taken], daemon=True).start()

    def answer(taken: socket.socket) -> None:
        with taken:
            try:
                taken.recv(65_536)
                script(taken)
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(30)


def reply(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body


def says(data: bytes) -> Script:
    return lambda taken: taken.sendall(data)


def numbered(count: int = 3, first: int = 0) -> pa.Table:
    table = from_values(some_values(count))
    return table.append_column("seq", pa.array(range(first, first + count), pa.int64()))


def changes(table: pa.Table, **told: object) -> bytes:
    return reply(to_arrow(table, {"store": ID, "last": 2, "end": True, **told}))


WRONG_ANSWERS = [
    b"",
    b"\x00" * 100,
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/9.9 what\r\n\r\n",
    reply(b""),
    reply(b"no arrow"),
    reply(b"\xff" * 1_000),
    reply(b"", length=10),
    reply(b"x", length=1 << 62),
    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    reply(b"{}", "302 Found\r\nLocation: http://127.0.0.1:1/"),
    reply(b"{}", "500 Internal Server Error"),
    reply(b'{"error": "store full", "hint": ""}', "503 Service Unavailable"),
    reply(to_arrow(pa.table({"x": [1]}))),
    reply(to_arrow(numbered().drop_columns(["seq"]))),
    reply(to_arrow(numbered().set_column(0, "metric", pa.array([1, 2, 3])))),
    reply(to_arrow(numbered().set_column(0, "metric", pa.array(["a", None, "b"])))),
    reply(to_arrow(numbered().set_column(3, "value", pa.array(["a", "b", "c"])))),
    reply(to_arrow(numbered())[:-30]),
]


@pytest.mark.parametrize("data", WRONG_ANSWERS)
def test_wrong_answers_are_none(data: bytes) -> None:
    with server(says(data)) as address:
        client = NodeClient(address, SECRET, "n", SHORT)
        with pytest.raises(NodeUnreachable) as raised:
            client.range(Range())
        assert raised.value.message
        client.close()


@pytest.mark.parametrize(
    "data",
    [
        changes(numbered(), last="2"),
        changes(numbered(), last=1),
        changes(numbered(), last=1 << 70),
        changes(numbered(), end=None),
        changes(numbered(), store="x"),
        changes(numbered(), store=None),
        changes(numbered(5), last=10),
        changes(numbered(first=0), last=-1),
        reply(to_arrow(numbered())),
    ],
)
def test_wrong_changes(data: bytes) -> None:
    with server(says(data)) as address:
        client = NodeClient(address, SECRET, "n", SHORT)
        with pytest.raises(NodeUnreachable):
            client.changes(-1, None, 4)


def test_right_changes_are_taken() -> None:
    with server(says(changes(numbered()))) as address:
        page, store = NodeClient(address, SECRET, "n", SHORT).changes(-1, None, 4)
        assert (page.table.schema, page.last, page.end, store) == (ROWS, 2, True, ID)


def test_values_that_were_not_asked_for() -> None:
    place = (int(numbered()["time"].cast("int64")[1].as_py()), 1)
    with server(says(reply(to_arrow(numbered())))) as address:
        client = NodeClient(address, SECRET, "n", SHORT)
        assert len(client.range(Range())) == 3
        for wrong in (Range(limit=2), Range(limit=10)):
            with pytest.raises(NodeUnreachable):
                client.range(wrong, place)
        with pytest.raises(NodeUnreachable):
            client.range(Range(limit=2))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("400 x", BadQuery),
        ("401 x", NodeRefused),
        ("403 x", NodeRefused),
        ("404 x", BadQuery),
        ("409 x", NodeUnreachable),
        ("418 x", NodeUnreachable),
        ("429 x", QueryLimit),
        ("503 x", NodeUnreachable),
    ],
)
def test_errors_by_status(status: str, error: type[StoreError]) -> None:
    body = json.dumps({"error": "said so", "hint": "do this"}).encode()
    with server(says(reply(body, status))) as address:
        client = NodeClient(address, SECRET, "n", SHORT)
        for ask in (
            lambda: client.latest(Selected()),
            lambda: client.aggregate(AggregateQuery(1)),
            lambda: client.metrics(""),
            lambda: client.sql("SELECT 1"),
            lambda: client.state(),
            lambda: client.metadata_changes(0),
            lambda: client.changes(0, ("a",), 5),
        ):
            with pytest.raises(error, match="another secret" if status == "401 x" else "said so"):
                ask()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": [], "next": "1"},
        {"metadata": {}, "next": 1},
        {"metadata": [], "next": -1},
        {"metadata": [5], "next": 1},
        {"metadata": [{"metric": "m"}], "next": 1},
        {
            "metadata": [
                {
                    "metric": "m",
                    "entity": "",
                    "origin": "o",
                    "version": 1,
                    "removed": False,
                    "unit": 5,
                }
            ],
            "next": 1,
        },
    ],
)
def test_wrong_metadata(body: object) -> None:
    with server(says(reply(json.dumps(body).encode()))) as address, pytest.raises(NodeUnreachable):
        NodeClient(address, SECRET, "n", SHORT).metadata_changes(0)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NodeUnreachable):
        NodeClient(f"http://127.0.0.1:{port}", SECRET, "n").latest(Selected())


def dripping(taken: socket.socket) -> None:
    """An answer that never ends, and never stops for long."""
    taken.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        taken.sendall(b"X: y\r\n"[:1])
        time.sleep(0.05)


def silent(taken: socket.socket) -> None:
    taken.recv(1)


@pytest.mark.parametrize("script", [dripping, silent])
def test_an_answer_that_does_not_come_is_not_waited_for(script: Script) -> None:
    """Without the limit this would not end at all."""
    with server(script) as address:
        client = NodeClient(address, SECRET, "n", Patience(connect=5.0, answer=0.5))
        with pytest.raises(NodeUnreachable):
            client.state()


def test_one_that_falls_silent_is_not_waited_for_twice() -> None:
    """A kept connection that we cut was not closed by the other side."""
    connections = []

    def once(taken: socket.socket) -> None:
        connections.append(taken)
        if len(connections) == 1:
            taken.sendall(reply(b"{}"))
        taken.recv(65_536)
        taken.recv(1)

    with server(once) as address:
        client = NodeClient(address, SECRET, "n", Patience(connect=5.0, answer=0.5))
        assert client.state() == {}
        with pytest.raises(NodeUnreachable):
            client.state()
    assert len(connections) == 1


def test_closing_ends_what_is_being_asked() -> None:
    asked = threading.Event()

    def hold(taken: socket.socket) -> None:
        asked.set()
        taken.recv(1)

    with server(hold) as address:
        client = NodeClient(address, SECRET, "n", Patience(connect=5.0, answer=500.0))
        raised: list[StoreError] = []

        def ask() -> None:
            try:
                client.state()
            except StoreError as error:
                raised.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        assert asked.wait(30)
        client.close()
        thread.join(30)
        assert isinstance(raised[0], NodeUnreachable)


def test_an_answer_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "LARGEST_ANSWER", 1_000_000)
    large = server(says(reply(b"x" * 3_000_000)))
    with large as address, pytest.raises(NodeUnreachable, match="does not end"):
        NodeClient(address, SECRET, "n", SHORT).state()


@pytest.mark.parametrize(
    "address", ["ftp://host", "host:80", "", "file:///etc/passwd", "http://", "http://h:99999"]
)
def test_only_http(address: str) -> None:
    with pytest.raises(UsageError):
        NodeClient(address, SECRET)


def test_without_a_secret_nobody_is_asked(tmp_path: Path) -> None:
    with running(tmp_path, "north") as (north,):
        with pytest.raises(NodeRefused):
            NodeClient(north.address, "", "north").state()
        with pytest.raises(NodeRefused):
            NodeClient(north.address, "another secret than theirs", "north").state()


def test_names_in_parts_that_fit() -> None:
    assert portions(None) == [None]
    assert portions(()) == [()]
    names = tuple(f"é{i}" * 20 for i in range(1_000))
    found = portions(names)
    assert len(found) > 5
    assert tuple(name for part in found for name in part or ()) == names
    assert portions(("x" * 9_000, "y")) == [("x" * 9_000,), ("y",)]


@pytest.mark.site
def test_a_real_node(tmp_path: Path) -> None:
    with running(tmp_path, "north") as (north,):
        north.put(some_values(50))
        client = NodeClient(north.address, SECRET, "north")
        try:
            first = client.range(Range(Selected(("cpu%",)), limit=20))
            last = first.slice(19)
            place = int(last["time"].cast("int64")[0].as_py()), last["seq"][0].as_py()
            rest = client.range(Range(Selected(("cpu%",)), limit=100), place)
            found = [*first["value"].to_pylist(), *rest["value"].to_pylist()]
            assert found == list(range(50))
            back = client.range(Range(Selected(("cpu%",)), limit=100, descending=True), place)
            assert back["value"].to_pylist() == list(range(18, -1, -1))
            assert client.state()["id"] == north.store.id
            assert len(client.latest(Selected(("cpu1",), ("e1",)))) == 1
            with pytest.raises(BadQuery):
                client.copy_of("nobody").latest(Selected())
            with pytest.raises(BadQuery):
                client.sql("DELETE FROM history")
        finally:
            client.close()
