"""Application data of all nodes as one: merging against a plain dict, whoever is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import ConflictError
from fogline.fabric.api.tokens_file import add_token, own_token
from fogline.fabric.http.arrow import ARROW_TYPE, from_arrow
from fogline.fabric.query.space_pages import (
    KEY,
    SpaceInfo,
    SpacePage,
    merge_pages,
    to_table,
    visible_rows,
)
from fogline.storage.catalog.spaces import Space, SpaceRow
from fogline.storage.values import micros
from tests.fabric.kit_nodes import START, RunningNode, running, until

SITES = ("east", "north", "south")
ORDERS = {"columns": {"id": "text", "amount": "number"}, "key": ["id"]}
ROWS = "/v1/spaces/orders/rows"


# ── merging ──────────────────────────────────────────────────────────────────────────────────────

NODES = st.dictionaries(
    st.sampled_from(SITES),
    st.dictionaries(
        st.tuples(st.integers(0, 4), st.sampled_from(["", "a", "ä", "z", "𝄞"])),
        st.integers(0, 3),
        max_size=15,
    ),
    min_size=1,
)
"""Of each node: when the row of a time and key arrived."""


def info(**columns: str) -> SpaceInfo:
    return SpaceInfo(Space("orders", columns or {"n": "text"}))


def page_of(
    node: str, rows: dict[tuple[int, str], int], after: Any, limit: int, descending: bool
) -> SpacePage:
    """What a node answers."""
    found = [
        SpaceRow(key, time, {"n": f"{node}{arrived}"}, arrived)
        for (time, key), arrived in rows.items()
    ]
    found.sort(key=_place, reverse=descending)
    if after is not None:
        last = (after[0], after[1].encode())
        found = [r for r in found if (_place(r) < last if descending else _place(r) > last)]
    return SpacePage(info(), to_table({"n": "text"}, found[:limit]), len(found) > limit)


def _place(row: SpaceRow) -> tuple[int, bytes]:
    return row.time, row.key.encode()


@given(NODES, st.integers(1, 6), st.booleans())
def test_pages_against_a_plain_dict(
    nodes: dict[str, dict[tuple[int, str], int]], limit: int, descending: bool
) -> None:
    wanted: dict[tuple[int, bytes], tuple[int, str]] = {}
    for node, rows in nodes.items():
        for (time, key), arrived in rows.items():
            place = time, key.encode()
            wanted[place] = max(wanted.get(place, (-1, "")), (arrived, node))
    found, after = [], None
    while True:
        parts = {n: page_of(n, rows, after, limit, descending) for n, rows in nodes.items()}
        page = merge_pages(parts, limit, descending)
        assert len(page.table) <= limit
        times, keys = micros(page.table["time"]).tolist(), page.table[KEY].to_pylist()
        found += list(zip(times, keys, page.table["n"].to_pylist(), strict=True))
        if not page.more:
            break
        after = page.last
    expected = [
        (time, key.decode(), f"{node}{arrived}")
        for (time, key), (arrived, node) in sorted(wanted.items(), reverse=descending)
    ]
    assert found == expected


def test_columns_that_only_some_nodes_have() -> None:
    few = SpacePage(info(n="text"), to_table({"n": "text"}, [SpaceRow("a", 1, {"n": "x"})]), False)
    columns = {"n": "text", "ok": "boolean", "count": "integer"}
    more = to_table(columns, [SpaceRow("b", 1, {"ok": True, "count": 7})])
    whole = merge_pages({"north": few, "south": SpacePage(info(**columns), more, False)}, 5, False)
    found = visible_rows(whole).drop_columns(["time"]).to_pylist()
    assert found == [
        {"key": "a", "n": "x", "ok": None, "count": None},
        {"key": "b", "n": None, "ok": True, "count": 7},
    ]


def test_spaces_that_do_not_go_together() -> None:
    empty = to_table({"n": "text"}, [])
    north = SpacePage(info(n="text"), empty, False)
    other = SpacePage(info(n="number"), to_table({"n": "number"}, []), False)
    with pytest.raises(ConflictError, match=r"the column n .* at south"):
        merge_pages({"north": north, "south": other}, 5, False)
    keyed = SpacePage(SpaceInfo(Space("orders", {"n": "text"}), ("n",)), empty, False)
    with pytest.raises(ConflictError, match=r"the key .* at south"):
        merge_pages({"north": north, "south": keyed}, 5, False)


# ── whoever is asked ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningNode]]:
    """Two nodes have orders, one of them also one that the other has in another version."""
    with running(tmp_path_factory.mktemp("spaces"), *SITES) as found:
        made = {node.site: node for node in found}
        for site in ("north", "south"):
            with client(made[site]) as asked:
                assert asked.put("/v1/spaces/orders", json=ORDERS).status_code == 201
        put(made["north"], [order(n, "north") for n in range(0, 40, 2)])
        put(made["south"], [order(n, "south") for n in range(1, 40, 2)])
        put(made["south"], [order(10, "later")])
        yield made


def client(node: RunningNode, token: str | None = None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token or own_token(node.folder / 'store')}"}
    return httpx.Client(base_url=node.address, headers=headers, trust_env=False, timeout=120)


def order(number: int, where: str) -> dict[str, Any]:
    amount = {"north": 1.0, "south": 2.0, "later": 3.0}[where]
    return {"id": f"o{number:02}", "amount": amount, "time": START + number // 4 * 1_000_000}


def put(node: RunningNode, rows: list[dict[str, Any]]) -> None:
    with client(node) as asked:
        assert asked.post(ROWS, json={"rows": rows}).json() == {"stored": len(rows)}


def pages(node: RunningNode, **question: Any) -> list[dict[str, Any]]:
    found, cursor = [], {}
    with client(node) as asked:
        while True:
            told = asked.get(ROWS, params={**question, **cursor}).json()
            assert [n["state"] for n in told["nodes"]] == ["answered"] * 3
            found += told["rows"]
            if "next" not in told:
                return found
            cursor = {"cursor": told["next"]}


@pytest.mark.parametrize(("limit", "way"), [(3, "asc"), (7, "desc"), (1000, "asc")])
def test_every_node_tells_the_same_rows(
    nodes: dict[str, RunningNode], limit: int, way: str
) -> None:
    """Also the node that has no such space."""
    told = {site: pages(node, limit=limit, order=way) for site, node in nodes.items()}
    assert told["east"] == told["north"] == told["south"]
    ids = [row["id"] for row in told["east"]]
    assert ids == sorted((f"o{n:02}" for n in range(40)), reverse=way == "desc")
    amounts = {row["id"]: row["amount"] for row in told["east"]}
    assert (amounts["o08"], amounts["o09"], amounts["o10"]) == (1.0, 2.0, 3.0)


def test_one_key_one_stretch_of_time_one_node(nodes: dict[str, RunningNode]) -> None:
    east = nodes["east"]
    assert [row["amount"] for row in pages(east, key="o10")] == [3.0]
    assert [row["id"] for row in pages(east, to=START + 1)] == ["o00", "o01", "o02", "o03"]
    with client(nodes["north"]) as asked:
        alone = asked.get(ROWS, params={"scope": "node", "limit": 1000}).json()
        assert "nodes" not in alone
        assert {row["amount"] for row in alone["rows"]} == {1.0}
        wrong = asked.get(ROWS, params={"key": ["a", "b"]})
        assert (wrong.status_code, wrong.json()["error"]) == (400, "the key of this space is id")
        assert asked.get(ROWS, params={"arrived": "true"}).status_code == 400


def test_rows_as_arrow(nodes: dict[str, RunningNode]) -> None:
    with client(nodes["east"]) as asked:
        reply = asked.get(ROWS, params={"limit": 30}, headers={"Accept": ARROW_TYPE})
        table, told = from_arrow(reply.content)
        assert table.column_names == ["time", "id", "amount"]
        assert (len(table), len(told["nodes"])) == (30, 3)
        rest = asked.get(ROWS, params={"cursor": told["next"]}, headers={"Accept": ARROW_TYPE})
        assert len(from_arrow(rest.content)[0]) == 10


def test_a_space_that_nobody_has(nodes: dict[str, RunningNode]) -> None:
    with client(nodes["east"]) as asked:
        for name in ("nothing", "Odd Name", "orders%2F..%2Forders"):
            reply = asked.get(f"/v1/spaces/{name}/rows")
            assert reply.status_code == 404, name


def test_the_list_names_who_has_what(nodes: dict[str, RunningNode]) -> None:
    lists = []
    for node in nodes.values():
        with client(node) as asked:
            lists.append(asked.get("/v1/spaces").json())
    assert lists[0] == lists[1] == lists[2]
    (orders,) = lists[0]["spaces"]
    assert (orders["space"], orders["key"], orders["at"]) == ("orders", ["id"], ["north", "south"])
    with client(nodes["east"]) as asked:
        assert asked.get("/v1/spaces?scope=node").json() == {"spaces": []}


def test_rights_hold_where_rows_are_asked_for(nodes: dict[str, RunningNode]) -> None:
    folder = nodes["east"].folder / "store"
    other = add_token(folder, "other", ["read:space:other", "read:values"])
    with client(nodes["east"], other) as asked:
        assert asked.get(ROWS).status_code == 403
        assert asked.get("/v1/spaces").json()["spaces"] == []
    mine = add_token(folder, "mine", ["read:space:orders"])
    with client(nodes["east"], mine) as asked:
        assert len(asked.get(ROWS).json()["rows"]) == 40
        assert [space["space"] for space in asked.get("/v1/spaces").json()["spaces"]] == ["orders"]
    with client(nodes["north"], mine) as asked:
        assert asked.get(ROWS).status_code == 401, "a token of another site"


def test_the_command(
    nodes: dict[str, RunningNode], fogline: Callable[..., Any], tmp_path: Path
) -> None:
    node = nodes["east"]
    where = ("--url", node.address, "--token-file", node.folder / "store" / "token")
    told = fogline("query", "spaces", "--json", *where)
    assert told.code == 0, told.err
    assert json.loads(told.out)["columns"] == ORDERS["columns"]
    told = fogline("query", "space", "orders", "--key", "o10", "--json", *where)
    assert [json.loads(line)["amount"] for line in told.out.splitlines()] == [3.0]
    told = fogline("query", "space", "orders", "--limit", "5", "--newest", *where)
    assert [line.split()[1] for line in told.out.splitlines()[1:]] == [
        f"o{n}" for n in range(39, 34, -1)
    ]
    assert "more than 5" in told.err
    file = tmp_path / "orders.arrow"
    told = fogline("query", "space", "orders", "--arrow", file, *where)
    assert "40 rows" in told.err
    assert len(pa.ipc.open_file(str(file)).read_all()) == 40
    told = fogline("query", "space", "nothing", *where)
    assert (told.code, told.out) == (1, "")
    assert "no node has a space 'nothing'" in told.err


def test_spaces_that_differ_and_nodes_that_are_away(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        for node, kind in ((north, "text"), (south, "number")):
            with client(node) as asked:
                asked.put("/v1/spaces/orders", json={"columns": {"n": kind}})
        with client(north) as asked:
            reply = asked.get(ROWS)
            assert (reply.status_code, "south" in reply.json()["error"]) == (409, True)
            listed = asked.get("/v1/spaces").json()["spaces"]
            assert [(one["columns"]["n"], one["at"]) for one in listed] == [
                ("text", ["north"]),
                ("number", ["south"]),
            ]
            south.stop()
            until(lambda: north.fabric.peer_views()["south"].state == "away", "word of it")
            assert asked.post(ROWS, json={"rows": [{"key": "k", "n": "x"}]}).status_code == 200
            told = asked.get(ROWS).json()
            assert [row["n"] for row in told["rows"]] == ["x"]
            assert {n["node"]: n["state"] for n in told["nodes"]} == {
                "north": "answered",
                "south": "away",
            }
            missing = asked.get("/v1/spaces/elsewhere/rows")
            assert missing.status_code == 404
            assert "south" in missing.json()["hint"]
