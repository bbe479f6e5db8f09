"""The REST interface of a node: every address, every right, and people who mean no good."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from fogline.common.http import bodies
from fogline.fabric.api.rest import AT_ONCE, LARGEST, LARGEST_JSON, ROUTES
from fogline.fabric.api.tokens_file import add_token, own_token
from fogline.fabric.http.arrow import ARROW_TYPE, from_arrow, to_arrow
from fogline.fabric.query.local_backend import StoreAnswers
from fogline.storage.errors import StoreFull
from fogline.storage.limits import QueryLimits, StoreLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, from_values, to_values
from tests.fabric.kit_node import SECRET, SITE, START, Alone, Served, served
from tests.waiting import wait_for

ARROW = {"Accept": ARROW_TYPE}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "store") as found:
        yield found


@pytest.fixture
def client(node: Served) -> Iterator[httpx.Client]:
    with node.client() as found:
        yield found


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """For questions that change nothing."""
    with served(tmp_path_factory.mktemp("asked")) as found, found.client() as made:
        fill(found)
        yield made


def fill(node: Served, count: int = 20) -> list[Value]:
    """Values of two metrics and three entities, a second apart."""
    values = [
        Value(f"cpu_{i % 2}", f"e{i % 3}", START + i * 1_000_000, float(i)) for i in range(count)
    ]
    node.store.ingest(from_values(values))
    return values


def refused(reply: httpx.Response, status: int) -> dict[str, Any]:
    assert reply.status_code == status, reply.text
    told = reply.json()
    assert set(told) == {"error", "hint"}
    assert told["error"]
    return dict(told)


def numbers(reply: httpx.Response) -> list[float]:
    assert reply.status_code == 200, reply.text
    return [value["value"] for value in reply.json()["values"]]


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def test_latest_values(node: Served, client: httpx.Client) -> None:
    fill(node)
    found = client.get("/v1/latest", params={"metric": "cpu_1", "entity": ["e0", "e1"]}).json()
    assert sorted(value["value"] for value in found["values"]) == [15.0, 19.0]
    assert found["values"][0]["node"] == SITE
    assert [item["state"] for item in found["nodes"]] == ["answered", "away"]
    assert len(client.get("/v1/latest?metric=cpu%25").json()["values"]) == 6
    body = {"metrics": ["cpu_1"], "entities": [f"e{i}" for i in range(5_000)]}
    assert len(client.post("/v1/latest", json=body).json()["values"]) == 3
    assert len(client.post("/v1/latest", json={}).json()["values"]) == 6
    assert client.post("/v1/latest", json={"metrics": []}).json()["values"] == []
    here = client.get("/v1/latest?scope=node&metric=cpu_0").json()
    assert (len(here["values"]), "nodes" in here) == (3, False)
    client.get("/v1/latest?stale=2.5")
    assert node.fabric.stale[-1] == 2.5


@pytest.mark.parametrize("scope", ["all", "node"])
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("arrow", [False, True])
def test_pages_give_every_value_once(node: Served, scope: str, order: str, arrow: bool) -> None:
    expected = [value.value for value in fill(node, 25)]
    question: dict[str, Any] = {"scope": scope, "order": order, "limit": 7, "from": "2026-01-01"}
    found, pages = [], 0
    with node.client() as client:
        while True:
            reply = client.get("/v1/range", params=question, headers=ARROW if arrow else {})
            if arrow:
                table, told = from_arrow(reply.content)
                assert table.column_names[0] == "node"
                found += [value.value for value in to_values(table)]
            else:
                told = reply.json()
                found += numbers(reply)
            pages += 1
            if pages == 2:
                node.store.flush()
            if "next" not in told:
                break
            question["cursor"] = told["next"]
    assert found == (expected if order == "asc" else expected[::-1])
    assert pages == 4


def test_the_last_page_has_no_next(node: Served, client: httpx.Client) -> None:
    fill(node, 10)
    assert "next" not in client.get("/v1/range?scope=node&limit=10").json()
    assert "next" in client.get("/v1/range?scope=node&limit=9").json()
    assert "next" not in client.get("/v1/range?scope=node&metric=none").json()


def test_relative_times_mean_the_same_on_every_page(node: Served, client: httpx.Client) -> None:
    node.store.ingest(from_values([Value("m", "e", START + i, float(i)) for i in range(4)]))
    question: dict[str, Any] = {"scope": "node", "from": "-10000w", "to": "now", "limit": 2}
    first = client.get("/v1/range", params=question).json()
    reply = client.get("/v1/range", params={**question, "limit": 9, "cursor": first["next"]})
    assert numbers(reply) == [2.0, 3.0]
    other = {**question, "metric": "m", "cursor": first["next"]}
    assert "another query" in refused(client.get("/v1/range", params=other), 400)["error"]


def test_aggregates(node: Served, client: httpx.Client) -> None:
    fill(node, 20)
    reply = client.get("/v1/aggregate?bucket=1h&function=count&function=max&metric=cpu_0")
    rows = reply.json()["rows"]
    assert [(row["entity"], row["count"], row["max"]) for row in rows] == [
        ("e0", 4, 18.0), ("e1", 3, 16.0), ("e2", 3, 14.0),
    ]  # fmt: skip
    assert rows[0]["bucket"] == "2026-01-01T00:00:00.000Z"
    assert reply.json()["nodes"]
    table, _ = from_arrow(client.get("/v1/aggregate?bucket=5m&scope=node", headers=ARROW).content)
    assert set(table.column_names) >= {"node", "metric", "entity", "bucket", "sum", "last"}
    refused(client.get("/v1/aggregate?bucket=5m&function=median"), 400)
    refused(client.get("/v1/aggregate"), 400)


def test_values_put_in_are_on_disk(node: Served, client: httpx.Client) -> None:
    body = {"values": [{"metric": "m", "entity": "e", "value": 1.5, "labels": {"a": "b"}},
                       {"metric": "m", "entity": "e", "value": "on", "time": START}]}  # fmt: skip
    assert client.post("/v1/values", json=body).json() == {"stored": 2}
    assert (node.store.state().rows, node.store.state().waiting) == (2, 0)
    table = from_values([Value("a", "b", START, 1.0)] * 3)
    headers = {"Content-Type": ARROW_TYPE}
    reply = client.post("/v1/values", content=to_arrow(table), headers=headers)
    assert reply.json() == {"stored": 3}
    assert node.store.state().rows == 5
    wrong = {"values": [*body["values"], {"metric": "m"}]}
    refused(client.post("/v1/values", json=wrong), 400)
    refused(client.post("/v1/values", content=b"\xff", headers=headers), 400)
    assert node.store.state().rows == 5
    assert client.post("/v1/values", json={"values": []}).json() == {"stored": 0}


@pytest.mark.site
def test_sql(node: Served, client: httpx.Client) -> None:
    fill(node, 10)
    reply = client.post("/v1/sql", json={"sql": "SELECT count(*) AS n FROM history"})
    assert reply.json() == {"rows": [{"n": 10}], "columns": ["n"]}
    reply = client.post("/v1/sql?scope=all", json={"sql": "SELECT count(*) AS n FROM history"})
    assert (reply.json()["rows"], len(reply.json()["nodes"])) == ([{"n": 10}], 2)
    reply = client.post("/v1/sql?scope=each", json={"sql": "SELECT count(*) AS n FROM history"})
    assert reply.json()["rows"] == [{"node": SITE, "n": 10}]
    for wrong in ("metric=cpu", "scope=each&from=0", "scope=all&of=south", "scope=here"):
        refused(client.post(f"/v1/sql?{wrong}", json={"sql": "SELECT 1"}), 400)
    hostile = ["DROP TABLE history", "SELECT * FROM read_csv('/etc/passwd')", "PRAGMA version",
               "SELECT 1; SELECT 2", "COPY (SELECT 1) TO '/tmp/x'", "", "SELECT '\0'"]  # fmt: skip
    for text in hostile:
        refused(client.post("/v1/sql", json={"sql": text}), 400)
    for body in ({}, {"sql": 1}, {"sql": "SELECT 1", "x": 1}):
        refused(client.post("/v1/sql", json=body), 400)
    refused(client.post("/v1/sql", json={"sql": "SELECT range FROM range(2000000)"}), 429)


def test_changes(node: Served, client: httpx.Client) -> None:
    fill(node, 10)
    node.store.flush()
    table, told = from_arrow(client.get("/v1/changes?after=3&limit=4").content)
    assert table["seq"].to_pylist() == [4, 5, 6, 7]
    assert (told["last"], told["end"], told["store"]) == (7, False, node.store.id)
    table, told = from_arrow(client.get("/v1/changes?metric=cpu_1").content)
    assert (len(table), told["end"]) == (5, True)
    refused(client.get("/v1/changes?of=south"), 404)


def test_a_copy_is_asked_by_its_origin(node: Served, client: httpx.Client, tmp_path: Path) -> None:
    refused(client.get("/v1/latest?scope=node&of=south"), 404)
    refused(client.get("/v1/latest?of=south"), 400)
    with SiteStore(tmp_path / "copy") as copy:
        copy.ingest(from_values([Value("m", "e", START, 7.0)]))
        node.fabric.held["south"] = StoreAnswers(copy, "south")
        found = client.get("/v1/range?scope=node&of=south").json()["values"]
        assert [(value["node"], value["value"]) for value in found] == [("south", 7.0)]
        own = client.get(f"/v1/range?scope=node&of={SITE}").json()["values"]
        assert own == []
        _, told = from_arrow(client.get("/v1/changes?of=south").content)
        assert told["store"] == "of another"


# ── names, spaces, nodes ─────────────────────────────────────────────────────────────────────────


def test_metrics_and_their_metadata(node: Served, client: httpx.Client) -> None:
    fill(node)
    assert client.put("/v1/metadata/cpu_0", json={"unit": "%"}).json()["version"] == 1
    first = client.get("/v1/metrics?limit=1").json()
    assert first["metrics"][0]["entities"] == ["e0", "e1", "e2"]
    assert first["metrics"][0]["nodes"] == [SITE]
    assert first["metrics"][0]["metadata"][0]["unit"] == "%"
    second = client.get("/v1/metrics", params={"limit": 1, "cursor": first["next"]}).json()
    assert [m["metric"] for m in second["metrics"]] == ["cpu_1"]
    assert "next" not in second
    table, _ = from_arrow(client.get("/v1/metrics?scope=node", headers=ARROW).content)
    assert (table.column_names, len(table)) == (["node", "metric", "entity"], 6)
    assert client.get("/v1/metrics?prefix=x").json()["metrics"] == []


def test_metadata(node: Served, client: httpx.Client) -> None:
    odd = "/v1/metadata/a%2Fb%20%C3%A9%25"
    refused(client.get(odd), 404)
    told = client.put(odd, json={"unit": "°C", "extra": {"a": "b"}, "minimum": -5}).json()
    assert (told["metric"], told["unit"], told["origin"]) == ("a/b é%", "°C", SITE)
    assert client.put(f"{odd}?entity=e", json={"unit": "K"}).json()["entity"] == "e"
    assert client.get(f"{odd}?entity=e").json()["unit"] == "K"
    assert client.get(f"{odd}?entity=other").json()["unit"] == "°C"
    changes = client.get("/v1/metadata/changes?since=0").json()
    assert [item["unit"] for item in changes["metadata"]] == ["°C", "K"]
    assert client.get(f"/v1/metadata/changes?since={changes['next']}").json()["metadata"] == []
    refused(client.get("/v1/metadata/changes"), 404)
    assert client.delete(f"{odd}?entity=e").status_code == 200
    refused(client.delete(f"{odd}?entity=e"), 404)
    wrongs: list[dict[str, Any]] = [
        {"x": 1}, {"unit": 1}, {"minimum": "1"}, {"extra": {"a": 1}}, {"extra": []},
        {"higher_is_better": 1}, {"interval_ms": 1.5}, {"interval_ms": 2**70}, {"minimum": True},
        {"unit": "x" * 70_000}, {"maximum": 10**400},
    ]  # fmt: skip
    for wrong in wrongs:
        refused(client.put(odd, content=json.dumps(wrong).encode()), 400)
    refused(client.put("/v1/metadata/" + "m" * 2_000, json={"unit": "x"}), 400)
    assert client.get(odd).json()["version"] == 1


def test_spaces(node: Served, client: httpx.Client) -> None:
    orders = {"columns": {"id": "text", "n": "integer", "x": "number"}, "key": ["id", "n"]}
    assert client.put("/v1/spaces/orders", json=orders).status_code == 201
    assert client.put("/v1/spaces/orders", json=orders).status_code == 200
    refused(client.put("/v1/spaces/orders", json={**orders, "key": ["id"]}), 409)
    refused(client.put("/v1/spaces/orders", json={**orders, "memory": True}), 409)
    rows = [{"id": "a", "n": n, "x": n / 2, "time": START + n % 2} for n in range(9)]
    assert client.post("/v1/spaces/orders/rows", json={"rows": rows}).json() == {"stored": 9}
    assert client.post("/v1/spaces/orders/rows", json={"rows": rows}).json() == {"stored": 9}
    for order in ("asc", "desc"):
        question: dict[str, Any] = {"limit": 2, "order": order}
        found: list[Any] = []
        while True:
            told = client.get("/v1/spaces/orders/rows", params=question).json()
            found += [row["n"] for row in told["rows"]]
            if "next" not in told:
                break
            question["cursor"] = told["next"]
        expected = [0, 2, 4, 6, 8, 1, 3, 5, 7]
        assert found == (expected if order == "asc" else expected[::-1])
    one = client.get("/v1/spaces/orders/rows?key=a&key=3").json()["rows"]
    assert one == [{"time": "2026-01-01T00:00:00.000001Z", "id": "a", "n": 3, "x": 1.5}]
    refused(client.get("/v1/spaces/orders/rows?key=a"), 400)
    assert client.delete("/v1/spaces/orders/rows?key=a&key=3").json() == {"deleted": 1}
    assert client.delete(f"/v1/spaces/orders/rows?to={START + 1}").json() == {"deleted": 5}
    assert client.get("/v1/spaces").json()["spaces"][0]["key"] == ["id", "n"]
    assert client.delete("/v1/spaces/orders").status_code == 200
    refused(client.get("/v1/spaces/orders/rows"), 404)
    refused(client.delete("/v1/spaces/orders"), 404)


def test_spaces_with_a_key_of_their_own(node: Served, client: httpx.Client) -> None:
    client.put("/v1/spaces/notes", json={"columns": {"text": "text"}, "memory": True, "rows": 5})
    row = {"key": "k", "text": "hello", "time": "2026-01-01"}
    assert client.post("/v1/spaces/notes/rows", json={"rows": [row]}).status_code == 200
    told = client.get("/v1/spaces/notes/rows?key=k").json()["rows"]
    assert told == [{"key": "k", "time": "2026-01-01T00:00:00.000Z", "text": "hello"}]
    wrong: list[Any] = [
        {"text": "x"}, {"key": 1, "text": "x"}, {"key": "k", "other": 1}, {"key": "k", "text": 5},
        {"key": "k", "time": "soon"}, {"key": "k", "time": []}, 5, {"key": "\ud800"},
        {"key": "k", "text": "\ud800"}, {"key": "k" * 2_000},
    ]  # fmt: skip
    for item in wrong:
        body = json.dumps({"rows": [row, item]}).encode()
        refused(client.post("/v1/spaces/notes/rows", content=body), 400)
    assert len(client.get("/v1/spaces/notes/rows").json()["rows"]) == 1


@pytest.mark.parametrize(
    "body",
    [{}, {"columns": {}}, {"columns": []}, {"columns": {"a": "blob"}}, {"columns": {"a": 1}},
     {"columns": {"A b": "text"}}, {"columns": {"key": "text"}}, {"columns": {"a": "text"}, "x": 1},
     {"columns": {"a": "text"}, "key": ["b"]}, {"columns": {"a": "text"}, "key": ["a", "a"]},
     {"columns": {"a": "text"}, "key": [1]}, {"columns": {"a": "text"}, "key": []},
     {"columns": {"a": "text"}, "memory": 1}, {"columns": {"a": "text"}, "hours": 0},
     {"columns": {"a": "text"}, "rows": 2**70}, {"columns": {f"c{i}": "text" for i in range(200)}}],
)  # fmt: skip
def test_spaces_that_cannot_be(asked: httpx.Client, body: dict[str, Any]) -> None:
    refused(asked.put("/v1/spaces/bad", json=body), 400)
    assert asked.get("/v1/spaces").json()["spaces"] == []


def test_keys_of_spaces_survive_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as node, node.client() as client:
        body = {"columns": {"id": "text"}, "key": ["id"]}
        assert client.put("/v1/spaces/kept", json=body).status_code == 201
    with served(tmp_path) as node, node.client() as client:
        assert client.get("/v1/spaces").json()["spaces"][0]["key"] == ["id"]


def test_nodes_state_and_copies(node: Served, client: httpx.Client) -> None:
    assert [item["node"] for item in client.get("/v1/nodes").json()["nodes"]] == [SITE, "south"]
    assert client.get("/v1/state").json()["metrics"] is None
    assert client.get("/v1/state?metrics=true").json()["metrics"] == {}
    assert client.put("/v1/copies/south", json={"metrics": ["cpu_%"]}).status_code == 200
    assert node.fabric.kept == {"south": ("cpu_%",)}
    assert client.put("/v1/copies/south", json={"metrics": None}).status_code == 200
    assert node.fabric.kept == {"south": None}
    refused(client.put(f"/v1/copies/{SITE}", json={}), 400)
    wrong: list[Any] = [["m" * 2_000], [1], "all", {}]
    for metrics in wrong:
        refused(client.put("/v1/copies/south", json={"metrics": metrics}), 400)
    assert client.delete("/v1/copies/south").status_code == 200
    refused(client.delete("/v1/copies/south"), 404)


# ── who may, and what is too much ────────────────────────────────────────────────────────────────


def test_every_address_needs_a_token_and_its_right(node: Served) -> None:
    few = add_token(node.folder, "few", ["read:space:nothing"])
    with httpx.Client(base_url=node.address, trust_env=False) as nobody, node.client(few) as client:
        for address in ROUTES:
            path = address.path.replace("{metric:path}", "m").format(space="s", origin="o")
            reply = nobody.request(address.method, path)
            refused(reply, 401)
            assert reply.headers["WWW-Authenticate"] == "Bearer"
            if address.right:
                told = refused(client.request(address.method, path, content=b"{"), 403)
                assert address.right.split(":")[1] in told["error"]
        refused(nobody.get("/nowhere"), 401)
        assert nobody.get("/docs").status_code == 200
        described = nobody.get("/openapi.json").json()
    paths = described["paths"].items()
    found = {(path, method.upper()) for path, item in paths for method in item}
    assert found == {(a.path.replace(":path", ""), a.method) for a in ROUTES}
    assert own_token(node.folder) not in json.dumps(described)


def test_rights_by_space(node: Served) -> None:
    token = add_token(node.folder, "orders", ["read:space:orders", "write:space:orders"])
    with node.client(token) as client, node.client() as owner:
        body = {"columns": {"id": "text"}}
        assert client.put("/v1/spaces/orders", json=body).status_code == 201
        refused(client.put("/v1/spaces/others", json=body), 403)
        assert owner.put("/v1/spaces/others", json=body).status_code == 201
        assert [s["space"] for s in client.get("/v1/spaces").json()["spaces"]] == ["orders"]
        for name in ("others", "*", "orders%2F..%2Fothers", "Orders"):
            assert client.get(f"/v1/spaces/{name}/rows").status_code in (403, 404), name


def test_other_nodes_read_and_copy_but_do_not_write(node: Served) -> None:
    with node.client(SECRET) as other:
        assert other.get("/v1/latest?scope=node").status_code == 200
        assert other.get("/v1/changes").status_code == 200
        assert other.put("/v1/copies/south", json={}).status_code == 200
        refused(other.post("/v1/values", json={"values": []}), 403)
        refused(other.put("/v1/metadata/m", json={}), 403)


@pytest.mark.parametrize(
    "query",
    ["x=1", "limit=0", "limit=1000001", "limit=-1", "limit=1e3", "limit=", "limit=" + "9" * 5_000,
     "limit=1&limit=2", "order=up", "scope=here", "from=soon", "to=", "cursor=x", "cursor=",
     "cursor=" + "A" * 10_000, "stale=-1", "stale=nan", "stale=inf", "stale=x", "scope=", "of=x",
     "metric=" + "m" * 2_000, "entity=" + "e" * 2_000, "limit=%D9%A3"],
)  # fmt: skip
def test_questions_that_are_wrong(asked: httpx.Client, query: str) -> None:
    refused(asked.get(f"/v1/range?{query}"), 400)


@pytest.mark.parametrize(
    "query", ["metric=", "metric=%25", "metric=\\%25", "metric=%00", "entity='%20OR%201=1--",
              "from=-99999999999999999999&to=99999999999999999999", "from=now&to=-1h",
              "metric=%ED%A0%80", "metric=a&metric=a"]
)  # fmt: skip
def test_odd_questions_have_answers(asked: httpx.Client, query: str) -> None:
    assert asked.get(f"/v1/range?{query}").status_code == 200


def test_addresses_and_methods_that_do_not_exist(client: httpx.Client) -> None:
    refused(client.get("/v2/latest"), 404)
    refused(client.delete("/v1/latest"), 405)
    refused(client.get("/v1/../v1/nowhere"), 404)


def test_bodies_that_are_too_large(
    node: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused(client.post("/v1/values", content=b" " * (LARGEST_JSON + 1)), 413)
    assert "16 MiB" in told["error"]
    monkeypatch.setattr(bodies, "AT_ONCE", 1 << 10)
    refused(client.post("/v1/values", content=b" " * (1 << 12)), 503)
    monkeypatch.undo()
    assert client.post("/v1/values", json={"values": []}).status_code == 200


def test_nobody_listens_to_what_never_ends(node: Served) -> None:
    port = int(node.address.rsplit(":", 1)[1])
    token = own_token(node.folder)
    head = f"POST /v1/values HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: {ARROW_TYPE}\r\nContent-Length: {1 << 50}\r\n\r\n"
    most = 4 * LARGEST
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode())
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            connection.sendall(bytes(most))


def test_arrow_only_where_it_is_understood(client: httpx.Client) -> None:
    headers = {"Content-Type": ARROW_TYPE}
    data = to_arrow(pa.table({"x": [1]}))
    refused(client.post("/v1/sql", content=data, headers=headers), 400)


def test_a_full_store_says_so(
    node: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> int:
        raise StoreFull("no space left")

    monkeypatch.setattr(node.store, "flush", full)
    body = {"values": [{"metric": "m", "entity": "e", "value": 1}]}
    assert "no space" in refused(client.post("/v1/values", json=body), 503)["error"]


def test_a_bug_is_told_without_its_details(
    node: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Alone, "latest", broken)
    told = refused(client.get("/v1/latest"), 500)
    assert "secret detail" not in str(told)
    assert client.get("/v1/latest?scope=node").status_code == 200


def test_clients_that_go_away_stop_nothing(node: Served, client: httpx.Client) -> None:
    port = int(node.address.rsplit(":", 1)[1])
    token = own_token(node.folder)
    head = f"POST /v1/values HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    for text in (head, f"{head}Content-Length: 1000\r\n\r\n{{", "\x00\xff\r\n\r\n", "GET"):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as gone:
            gone.sendall(text.encode("latin-1"))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/v1/range", headers={"Authorization": f"Bearer {token}"})
    connection.close()
    assert client.get("/v1/latest").status_code == 200


def test_a_node_that_waits_for_others_still_answers_for_itself(
    node: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes that ask each other must not wait for each other for ever."""
    release, begun = threading.Event(), threading.Semaphore(0)

    def waits(self: Alone, names: object, stale: float = 0.0) -> Any:
        begun.release()
        assert release.wait(60)
        return original(self, names, stale)  # type: ignore[arg-type]

    original = Alone.latest
    monkeypatch.setattr(Alone, "latest", waits)
    replies: list[int] = []

    def ask() -> None:
        with node.client() as other:
            replies.append(other.get("/v1/latest").status_code)

    threads = [threading.Thread(target=ask) for _ in range(AT_ONCE + 4)]
    for thread in threads:
        thread.start()
    for _ in range(AT_ONCE):
        assert begun.acquire(timeout=60)
    assert client.get("/v1/latest?scope=node").status_code == 200
    release.set()
    for thread in threads:
        thread.join(60)
    assert replies == [200] * (AT_ONCE + 4)


@pytest.mark.site
def test_sql_without_end_is_in_nobody_elses_way(tmp_path: Path) -> None:
    limits = StoreLimits(query=QueryLimits(seconds=2.0))
    with served(tmp_path / "store", limits) as node, node.client() as client:
        fill(node)
        client.post("/v1/sql", json={"sql": "SELECT 1"})
        replies: list[int] = []

        def ask(scope: str) -> None:
            body = {"sql": "SELECT count(*) FROM range(10000000) a, range(1000000) b"}
            with node.client() as other:
                reply = other.post(f"/v1/sql?scope={scope}", json=body)
                replies.append(reply.status_code)

        scopes = ["node", "all"] * 20
        threads = [threading.Thread(target=ask, args=[scope]) for scope in scopes]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(replies) >= 34, 60)
        assert sum(thread.is_alive() for thread in threads) <= 6
        for scope in ("node", "all"):
            assert client.get(f"/v1/latest?scope={scope}").status_code == 200
        for thread in threads:
            thread.join(60)
        assert replies == [429] * 40
        assert client.post("/v1/sql", json={"sql": "SELECT 1 AS n"}).status_code == 200
