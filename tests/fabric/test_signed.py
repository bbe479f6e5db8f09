"""Signed insights: for who lacks the key they are not there, whatever is asked, at every node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fogline.fabric.api.tokens_file import add_token, own_token
from fogline.fabric.http.arrow import ARROW_TYPE, from_arrow
from fogline.storage.catalog.metadata import Description
from fogline.storage.values import Value, from_values
from tests.fabric.kit_node import SECRET, SITE, START, Served, served
from tests.fabric.kit_nodes import RunningNode, running, slower, until

READ = ["read:values", "read:metadata", "read:sql", "write:metadata", "write:copies"]
HOLDERS = ("owner", "node", "holder")
OTHERS = ("reader", "all", "stranger")


def tokens(folder: Path, secret: str) -> dict[str, str]:
    """Those that may see what is signed with `plant-7`, and those that may not."""
    return {
        "owner": own_token(folder),
        "node": secret,
        "holder": add_token(folder, "holder", [*READ, "key:other", "key:plant-7"]),
        "reader": add_token(folder, "reader", READ),
        "all": add_token(folder, "all", ["read:*"]),
        "stranger": add_token(folder, "stranger", [*READ, "key:other"]),
    }


def values(first: int = 0, count: int = 30) -> list[Value]:
    """Every third one is of the signed insight."""
    numbers = range(first, first + count)
    return [Value(("mean", "o1", "o2")[i % 3], "e", START + i * 1_000, float(i)) for i in numbers]


# ── at one node ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    with served(tmp_path_factory.mktemp("signed")) as found:
        store = found.store
        store.metadata.put("mean", Description(unit="K"))
        store.metadata.put("o1", Description(unit="C"))
        store.metadata.sign({"mean": {"city": "plant-7"}})
        store.ingest(from_values(values(0, 15)))
        store.flush()
        store.ingest(from_values(values(15, 15)))
        yield found, tokens(found.folder, SECRET)


Signed = tuple[Served, dict[str, str]]


def seen(node: Signed, who: str, path: str, body: Any = None) -> set[str]:
    """The metrics in an answer, which must be the same in JSON and as Arrow."""
    found, known = node
    with found.client(known[who]) as client:
        reply = client.post(path, json=body) if body is not None else client.get(path)
        assert reply.status_code == 200, reply.text
        told = reply.json()
        rows = next(told[key] for key in ("values", "rows", "metrics") if key in told)
        plain = {row["metric"] for row in rows}
        method = "GET" if body is None else "POST"
        arrow = client.request(method, path, json=body, headers={"Accept": ARROW_TYPE})
        assert set(from_arrow(arrow.content)[0]["metric"].to_pylist()) == plain
        return plain


QUESTIONS = [
    ("/v1/latest", None),
    ("/v1/latest?scope=node", None),
    ("/v1/latest?metric=mean&metric=o%25", None),
    ("/v1/latest", {"metrics": ["mean", "o1", "o2"]}),
    ("/v1/range", None),
    ("/v1/range?scope=node&order=desc", None),
    ("/v1/range?metric=mean&metric=o1&metric=o2", None),
    ("/v1/aggregate?bucket=1h", None),
    ("/v1/aggregate?bucket=1h&scope=node&metric=m%25&metric=o%25", None),
    ("/v1/metrics", None),
    ("/v1/metrics?scope=node", None),
    ("/v1/sql", {"sql": "SELECT DISTINCT metric FROM history"}),
    ("/v1/sql?scope=all", {"sql": "SELECT DISTINCT metric FROM history"}),
    ("/v1/sql?scope=each", {"sql": "SELECT DISTINCT metric FROM history"}),
    ("/v1/sql", {"sql": "SELECT DISTINCT metric FROM latest"}),
    ("/v1/sql?scope=all", {"sql": "SELECT DISTINCT metric FROM latest"}),
]


@pytest.mark.site
@pytest.mark.parametrize(("path", "body"), QUESTIONS)
def test_every_question(node: Signed, path: str, body: Any) -> None:
    for who in HOLDERS:
        assert seen(node, who, path, body) == {"mean", "o1", "o2"}, who
    for who in OTHERS:
        assert seen(node, who, path, body) == {"o1", "o2"}, who


@pytest.mark.site
@pytest.mark.parametrize("scope", ["node", "all"])
def test_metadata_in_sql(node: Signed, scope: str) -> None:
    path, body = f"/v1/sql?scope={scope}", {"sql": "SELECT metric FROM metadata"}
    assert seen(node, "holder", path, body) == {"mean", "o1"}
    assert seen(node, "reader", path, body) == {"o1"}


def test_keys_of_a_question_only_take_away(node: Signed) -> None:
    assert seen(node, "holder", "/v1/latest?keys=plant-7") == {"mean", "o1", "o2"}
    assert seen(node, "owner", "/v1/latest?keys=plant-7,b") == {"mean", "o1", "o2"}
    for who, keys in (("owner", ""), ("holder", "other"), ("reader", "plant-7")):
        assert seen(node, who, f"/v1/latest?keys={keys}") == {"o1", "o2"}
    found, known = node
    with found.client(known["owner"]) as client:
        for keys in ("a,", ",", "a b", "*", "%0a", "%00"):
            assert client.get(f"/v1/latest?keys={keys}").status_code == 400


@pytest.mark.parametrize(("who", "count"), [("holder", 30), ("reader", 20)])
@pytest.mark.parametrize("scope", ["node", "all"])
def test_pages_lead_on(node: Signed, who: str, count: int, scope: str) -> None:
    found, known = node
    numbers: list[float] = []
    cursor: dict[str, str] = {}
    with found.client(known[who]) as client:
        while True:
            asked = {"limit": 4, "scope": scope} | cursor
            told = client.get("/v1/range", params=asked).json()
            numbers += [value["value"] for value in told["values"]]
            if "next" not in told:
                break
            assert len(told["values"]) == 4
            cursor = {"cursor": told["next"]}
    assert numbers == [i for i in range(30) if count == 30 or i % 3]


@pytest.mark.parametrize("who", [*HOLDERS, *OTHERS])
@pytest.mark.parametrize("of", ["", "&of=south"])
def test_changes(node: Signed, who: str, of: str) -> None:
    found, known = node
    found.store.flush()
    found.fabric.held["south"] = found.fabric._own
    found.store.metadata.merge(_signed_at("south"))
    with found.client(known[who]) as client:
        table, told = from_arrow(client.get(f"/v1/changes?limit=7{of}").content)
        rest, end = from_arrow(client.get(f"/v1/changes?after={told['last']}{of}").content)
    numbers = table["value"].to_pylist() + rest["value"].to_pylist()
    assert end["end"]
    assert numbers == [i for i in range(30) if who in HOLDERS or i % 3]
    assert ("signed" in told) == (who in ("owner", "node"))
    assert "mean" in str(told) or who not in ("owner", "node")


def _signed_at(site: str) -> list[Any]:
    from fogline.storage.catalog.database import Database
    from fogline.storage.catalog.metadata import MetadataStore

    other = MetadataStore(Database(None), site)
    other.sign({"mean": {"city": "plant-7"}})
    return other.changes(0)[0]


def test_metadata(node: Signed) -> None:
    found, known = node
    with found.client(known["holder"]) as client:
        assert client.get("/v1/metadata/mean").json()["unit"] == "K"
        assert "signed" not in client.get("/v1/metadata/changes?since=0").text
    with found.client(known["node"]) as client:
        assert "plant-7" in client.get("/v1/metadata/changes?since=0").text
    with found.client(known["reader"]) as client:
        assert client.get("/v1/metadata/o1").json()["unit"] == "C"
        assert client.get("/v1/metadata/mean").status_code == 404
        assert client.delete("/v1/metadata/mean").status_code == 404
        told = client.get("/v1/metadata/changes?since=0").json()
        assert [item["metric"] for item in told["metadata"]] == ["o1"]
        assert told["next"] == found.store.metadata.version


@pytest.mark.parametrize("who", ["owner", "holder", "reader"])
def test_nobody_takes_it_off_by_hand(node: Signed, who: str) -> None:
    found, known = node
    entity = {"entity": f"\x1fsigned at {SITE}"}
    with found.client(known[who]) as client:
        for method in ("GET", "PUT", "DELETE"):
            body = {"extra": {"city": "mine"}} if method == "PUT" else None
            reply = client.request(method, "/v1/metadata/mean", params=entity, json=body)
            assert reply.status_code == 400
        assert client.put("/v1/metadata/mean", json={"unit": "K"}).status_code == 200
    assert seen(node, "reader", "/v1/latest") == {"o1", "o2"}


def test_the_state_of_a_node_does_not_tell_names(node: Signed) -> None:
    found, known = node
    found.store.flush()
    sizes = {}
    for who in ("owner", "reader"):
        with found.client(known[who]) as client:
            sizes[who] = set(client.get("/v1/state?metrics=true").json()["metrics"])
    assert sizes["owner"] >= {"mean", "o1"}
    assert sizes["reader"] == sizes["owner"] - {"mean"}


def told_copies(node: RunningNode, token: str) -> list[Any]:
    """Both lists of the copy of north, wherever a caller can see them."""
    with asking(node, token) as client:
        nodes = client.get("/v1/nodes").json()["nodes"]
        state = client.get("/v1/state").json()
        found = [told["copies"]["north"] for told in (*nodes, state) if told.get("copies")]
    return [copy[key] for copy in found for key in ("metrics", "wanted") if key in copy]


def test_what_a_copy_is_of_does_not_tell_names(tmp_path: Path) -> None:
    """Neither do prefixes, which are written as a name that begins so."""
    kept = ("mea%", "mean", "mean\\%", "o%", "other", "%")
    with running(tmp_path, "north", "south") as (north, south):
        north.store.metadata.sign({"mean": {"city": "plant-7"}, "mean%": {"city": "plant-7"}})
        north.put(values())
        holder, reader = tokens_of(south)
        south.fabric.keep_copy("north", kept)
        until(lambda: numbers(south, holder, scope="node", of="north") == ALL, "a copy")
        shown = told_copies(south, holder)
        assert shown
        assert all(sorted(names) == sorted(kept) for names in shown)
        assert all(sorted(names) == ["%", "o%", "other"] for names in told_copies(south, reader))


# ── at another node ──────────────────────────────────────────────────────────────────────────────


@contextmanager
def asking(node: RunningNode, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=node.address, headers=headers, timeout=120, trust_env=False) as made:
        yield made


def numbers(node: RunningNode, token: str, **asked: Any) -> list[float]:
    with asking(node, token) as client:
        told = client.get("/v1/range", params={"metric": ["mean", "o%"], **asked}).json()
        return [value["value"] for value in told.get("values", ())]


def sql(node: RunningNode, token: str, scope: str) -> int:
    text = "SELECT count(*) AS n FROM history WHERE metric IN ('mean', 'o1', 'o2')"
    with asking(node, token) as client:
        told = client.post(f"/v1/sql?scope={scope}", json={"sql": text}).json()
        return sum(row["n"] for row in told["rows"])


def tokens_of(node: RunningNode) -> tuple[str, str]:
    known = tokens(node.folder / "store", "")
    return known["holder"], known["reader"]


ALL, OPEN = [float(i) for i in range(30)], [float(i) for i in range(30) if i % 3]


@pytest.mark.site
def test_a_node_that_was_never_told_what_is_signed_elsewhere(tmp_path: Path) -> None:
    """Each node leaves out its own: it does not matter whether metadata has arrived."""
    with running(tmp_path, "north", "south", options=slower(exchange_seconds=3.0)) as nodes:
        north, south = nodes
        holder, reader = tokens_of(south)
        until(lambda: numbers(south, holder) == [], "an answer of both")
        north.store.metadata.sign({"mean": {"city": "plant-7"}})
        north.put(values())
        assert numbers(south, holder) == ALL
        assert numbers(south, reader) == OPEN
        assert [sql(south, holder, scope) for scope in ("each", "all")] == [30, 30]
        assert [sql(south, reader, scope) for scope in ("each", "all")] == [20, 20]


def test_a_copy_knows_what_is_signed_before_it_has_it(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", options=slower(exchange_seconds=3.0)) as nodes:
        north, south = nodes
        holder, reader = tokens_of(south)
        south.fabric.keep_copy("north", None)
        north.store.metadata.sign({"mean": {"city": "plant-7"}})
        north.put(values())
        copy = {"scope": "node", "of": "north"}
        until(lambda: numbers(south, holder, **copy) == ALL, "a copy")
        assert numbers(south, reader, **copy) == OPEN


@pytest.mark.site
def test_a_copy_answers_for_a_node_that_is_away(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", "west") as (north, south, west):
        north.store.metadata.sign({"mean": {"city": "plant-7"}})
        north.put(values())
        south.fabric.keep_copy("north", None)
        known = {node.site: tokens_of(node) for node in (south, west)}
        copy = {"scope": "node", "of": "north"}
        until(lambda: numbers(south, known["south"][0], **copy) == ALL, "a copy")
        north.stop()
        for node in (south, west):
            holder, reader = known[node.site]
            until(lambda n=node, h=holder: numbers(n, h) == ALL, "the copy's answer")
            assert numbers(node, reader) == OPEN
            assert sql(node, reader, "each") == 20


def test_a_lost_disk_takes_back_what_was_signed(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.store.metadata.sign({"mean": {"city": "plant-7"}})
        north.put(values())
        south.fabric.keep_copy("north", None)
        holder, reader = tokens_of(south)
        copy = {"scope": "node", "of": "north"}
        until(lambda: numbers(south, holder, **copy) == ALL, "a copy")
        north.stop()
        north.lose_disk()
        north.start()
        holder, reader = tokens_of(north)
        until(lambda: numbers(north, holder, scope="node") == ALL, "all values back")
        assert numbers(north, reader, scope="node") == OPEN
