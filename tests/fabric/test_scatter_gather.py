"""All nodes as one: merging against a plain list, and the same answer whoever is asked."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.fabric.errors import NodeRefused, NodeUnreachable
from fogline.fabric.federation import fabric as fabric_module
from fogline.fabric.federation.routing import ReplicaRoute, routes, to_follow
from fogline.fabric.federation.scatter_gather import Gather, Gathered
from fogline.fabric.membership.peers import CopyInfo, PeerReport, PeerView
from fogline.fabric.query import merge, tables
from fogline.fabric.query.query_types import (
    ANSWERED,
    REFUSED,
    UNREACHABLE,
    AggregateQuery,
    ChangeOffset,
    NodeAnswer,
    NodeBackend,
    Range,
    Selected,
    Whole,
)
from fogline.storage.errors import BadQuery, QueryLimit, StoreError
from fogline.storage.limits import QueryLimits
from fogline.storage.query.sql import needs
from fogline.storage.values import Value, to_values
from tests.fabric.kit_nodes import SMALL, START, RunningNode, numbers, pages, running, some_values

ID = "1" * 32
SITES = ("north", "south", "west")


# ── merging ──────────────────────────────────────────────────────────────────────────────────────

Rows = list[tuple[int, int]]
"""Time and number of each value of a node."""
NODES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "ä"]),
    st.lists(st.integers(0, 6), max_size=25).map(
        lambda times: list(zip(times, range(99), strict=False))
    ),
    min_size=1,
    max_size=4,
)


def as_table(rows: Rows) -> pa.Table:
    count = len(rows)
    return pa.table(
        {
            "metric": pa.array(["m"] * count, pa.string()),
            "entity": pa.array(["e"] * count, pa.string()),
            "time": pa.array([time for time, _ in rows], pa.int64()).cast(pa.timestamp("us")),
            "value": pa.array([float(seq) for _, seq in rows], pa.float64()),
            "text": pa.nulls(count, pa.string()),
            "labels": pa.nulls(count, pa.string()),
            "seq": pa.array([seq for _, seq in rows], pa.int64()),
        },
        schema=tables.ROWS,
    )


def page_of(rows: Rows, after: ChangeOffset | None, limit: int, descending: bool) -> pa.Table:
    """What a node answers."""
    ordered = sorted(rows, reverse=descending)
    if after is not None:
        ordered = [row for row in ordered if (row < after if descending else row > after)]
    return as_table(ordered[:limit])


@given(NODES, st.integers(1, 9), st.booleans())
def test_pages_against_a_sorted_list(nodes: dict[str, Rows], limit: int, descending: bool) -> None:
    everything = [(time, node, seq) for node, rows in nodes.items() for time, seq in rows]
    places: dict[str, ChangeOffset] = {}
    found: list[tuple[int, str, int]] = []
    while True:
        parts = {n: page_of(rows, places.get(n), limit, descending) for n, rows in nodes.items()}
        table, taken = merge.page(parts, tables.ROWS, limit, descending)
        assert len(table) == min(limit, sum(map(len, parts.values())))
        if not len(table):
            break
        found += [(row["time"].microsecond, row["node"], row["seq"]) for row in table.to_pylist()]
        places |= taken
    assert found == sorted(everything, reverse=descending)


@given(NODES, st.integers(1, 9), st.randoms(use_true_random=False))
def test_values_come_once_when_nodes_come_and_go(
    nodes: dict[str, Rows], limit: int, chance: object
) -> None:
    """A node that is away for a page is asked from its own place later."""
    places: dict[str, ChangeOffset] = {}
    found: list[tuple[str, int]] = []
    idle = 0
    while idle < 20:
        here = {n: rows for n, rows in nodes.items() if chance.random() < 0.6}  # type: ignore[attr-defined]
        parts = {n: page_of(rows, places.get(n), limit, False) for n, rows in here.items()}
        table, taken = merge.page(parts, tables.ROWS, limit, False)
        found += [(row["node"], row["seq"]) for row in table.to_pylist()]
        places |= taken
        idle = 0 if len(table) else idle + 1
    assert len(set(found)) == len(found)
    assert set(found) <= {(node, seq) for node, rows in nodes.items() for _, seq in rows}


def test_nothing_from_nobody() -> None:
    table, places = merge.page({}, tables.ROWS, 5, False)
    assert (len(table), places) == (0, {})
    assert table.column_names == ["node", *tables.ROWS.names]
    assert merge.by_names({}, tables.LATEST).column_names == ["node", *tables.LATEST.names]


def test_rows_of_any_columns() -> None:
    parts = {"b": pa.table({"x": [1]}), "a": pa.table({"x": [2.5]}), "c": pa.table({"x": [None]})}
    table = merge.stack_answers(parts)
    assert table.to_pylist() == [
        {"node": "a", "x": 2.5},
        {"node": "b", "x": 1.0},
        {"node": "c", "x": None},
    ]
    with pytest.raises(BadQuery):
        merge.stack_answers({"a": pa.table({"node": ["me"]})})
    with pytest.raises(BadQuery):
        merge.stack_answers({"a": pa.table({"x": [1]}), "b": pa.table({"x": ["text"]})})


def test_doubles() -> None:
    table = pa.table({"x": [1, 2, 1, 3, 2], "y": list("abcde")})
    assert merge.without_doubles(table, ["x"])["y"].to_pylist() == ["a", "b", "d"]
    assert merge.without_doubles(table, ["y"]) is table


# ── where to ask ─────────────────────────────────────────────────────────────────────────────────


def node(state: str = ANSWERED, latency: float | None = 5.0, **copies: CopyInfo) -> PeerView:
    return PeerView("http://x", state, latency_ms=latency, report=PeerReport(ID, copies=copies))


def at(found: list[ReplicaRoute]) -> list[str]:
    return [("copy " if route.copy else "") + route.at for route in found]


def test_the_node_itself_first_then_the_newest_copy() -> None:
    seen = {
        "o": node(),
        "p": node(o=CopyInfo(ID, until=10)),
        "q": node(o=CopyInfo(ID, until=30)),
        "r": node(o=CopyInfo(ID, until=99, metrics=("x",))),
        "s": node(UNREACHABLE, o=CopyInfo(ID, until=99)),
        "t": node(o=CopyInfo(ID)),
    }
    own = {"o": CopyInfo(ID, until=20)}
    every = ["copy q", "copy here", "copy p", "copy t", "copy r"]
    assert at(routes("o", "here", seen, own, None)) == ["o", *every]
    away = {**seen, "o": node(UNREACHABLE)}
    assert at(routes("o", "here", away, own, None)) == every
    assert at(routes("o", "here", {**seen, "o": node(REFUSED)}, own, None)) == every
    assert at(routes("o", "here", away, own, ("x",)))[0] == "copy r"
    found = routes("o", "here", away, own, None)
    assert [route.partial for route in found] == [False] * 4 + [True]


def test_the_nearest_that_is_fresh_enough() -> None:
    seen = {
        "o": node(latency=50.0),
        "p": node(latency=9.0, o=CopyInfo(ID, until=90)),
        "q": node(latency=1.0, o=CopyInfo(ID, until=70)),
        "r": node(latency=0.5, o=CopyInfo(ID, until=99, metrics=("x",))),
    }
    assert at(routes("o", "here", seen, {}, None, 80))[:2] == ["copy p", "o"]
    assert at(routes("o", "here", seen, {}, None, 60))[:3] == ["copy q", "copy p", "o"]
    assert at(routes("o", "here", seen, {}, None, 95))[0] == "o"
    assert at(routes("o", "here", seen, {"o": CopyInfo(ID, until=80)}, None, 80))[0] == "copy here"
    assert len(routes("o", "here", seen, {}, None, 60)) == 4


def test_what_is_followed() -> None:
    def followed(own: CopyInfo | None = None, metrics: Sequence[str] | None = None) -> str:
        copies = {} if own is None else {"o": own}
        route = to_follow("o", "here", seen, copies, metrics, 80)
        return "" if route is None else at([route])[0]

    seen = {"o": node(latency=20.0)}
    assert followed() == "o"
    assert followed(CopyInfo(ID, until=80)) == "copy here"
    assert followed(CopyInfo(ID, until=79)) == "o"
    assert followed(CopyInfo(ID)) == "o"
    assert followed(CopyInfo("b" * 32, until=99)) == "o"
    assert followed(CopyInfo(ID, ("x",), 99)) == "o"
    assert followed(CopyInfo(ID, ("x",), 99), ("x",)) == "copy here"
    seen["p"] = node(latency=15.0, o=CopyInfo(ID, until=99))
    assert followed() == "o"
    seen["q"] = node(latency=5.0, o=CopyInfo(ID, until=90))
    assert followed() == "copy q"
    assert followed(CopyInfo(ID, until=80)) == "copy here"
    for gone in (node(UNREACHABLE), node(REFUSED), PeerView("http://x", ANSWERED)):
        seen["o"] = gone
        assert followed() == "copy p"
    seen = {"o": node(UNREACHABLE)}
    assert followed() == ""
    assert followed(CopyInfo("b" * 32)) == "copy here"


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


class Fake:
    """Answers with its name, or raises."""

    def __init__(self, name: str, error: StoreError | None = None) -> None:
        self.name = name
        self.error = error
        self.asked = 0

    def sql(self, text: str) -> pa.Table:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return pa.table({"who": [self.name]})


@dataclass
class FakeAround:
    known: dict[str, PeerView]
    fakes: dict[str, Fake]
    copies: dict[str, CopyInfo] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def peer_views(self) -> Mapping[str, PeerView]:
        return self.known

    def own_copies(self) -> Mapping[str, CopyInfo]:
        return self.copies

    def answers(self, node: str, route: ReplicaRoute) -> NodeBackend:
        key = f"{route.at}/{node}" if route.copy else node
        return self.fakes[key]  # type: ignore[return-value]

    def note_failure(self, node: str, error: StoreError) -> None:
        self.failures.append(node)
        state = REFUSED if isinstance(error, NodeRefused) else UNREACHABLE
        self.known[node] = self.known[node].with_failure(error.message, state)


def gathered(around: FakeAround, own: Fake | None = None) -> Gathered[pa.Table]:
    gather = Gather("here", own or Fake("here"), around, 8)  # type: ignore[arg-type]
    try:
        return gather.all(lambda _, answers: answers.sql(""))
    finally:
        gather.close()


def who(found: Gathered[pa.Table]) -> dict[str, str]:
    return {name: table["who"][0].as_py() for name, table in found.tables.items()}


def test_a_node_that_fails_is_replaced_by_its_copy_at_once() -> None:
    known = {"a": node(), "b": node(a=CopyInfo(ID, until=7))}
    fakes = {"a": Fake("a", NodeUnreachable("gone")), "b": Fake("b"), "b/a": Fake("b/a")}
    around = FakeAround(known, fakes)
    found = gathered(around)
    assert who(found) == {"here": "here", "a": "b/a", "b": "b"}
    assert found.nodes == (
        NodeAnswer("a", "copy", "b", 7),
        NodeAnswer("b", "answered"),
        NodeAnswer("here", "answered"),
    )
    assert around.failures == ["a"]
    gathered(around)
    assert fakes["a"].asked == 1, "one that is known to be away is not asked again"


def test_nodes_without_a_copy_are_named_with_the_reason() -> None:
    known = {"a": node(), "b": node(), "c": node(UNREACHABLE).with_failure("since long")}
    fakes = {"a": Fake("a", NodeUnreachable("no route")), "b": Fake("b", NodeRefused("not you"))}
    found = gathered(FakeAround(known, fakes))
    assert set(found.tables) == {"here"}
    assert [(n.node, n.state, n.why) for n in found.nodes] == [
        ("a", "away", "no route"),
        ("b", "refused", "not you"),
        ("c", "away", "since long"),
        ("here", "answered", ""),
    ]


def test_a_copy_that_fails_is_replaced_by_the_next() -> None:
    known = {
        "a": node(UNREACHABLE),
        "b": node(a=CopyInfo(ID, until=9)),
        "c": node(a=CopyInfo(ID, until=5)),
        "d": node(a=CopyInfo(ID, until=3)),
    }
    fakes = {name: Fake(name) for name in ("b", "c", "d", "d/a")}
    fakes |= {"b/a": Fake("", BadQuery("no copy")), "c/a": Fake("", NodeUnreachable("gone"))}
    found = gathered(FakeAround(known, fakes))
    assert who(found)["a"] == "d/a"


def test_a_wrong_question_is_raised() -> None:
    around = FakeAround({"a": node()}, {"a": Fake("a", BadQuery("wrong"))})
    with pytest.raises(BadQuery):
        gathered(around)
    assert around.failures == []


@pytest.mark.parametrize("error", [BadQuery("wrong"), QueryLimit("too much")])
def test_what_this_node_cannot_answer_is_raised(error: StoreError) -> None:
    with pytest.raises(type(error)):
        gathered(FakeAround({}, {}), Fake("here", error))


def test_what_is_too_much_for_another_node_is_told() -> None:
    known = {"a": node(), "b": node(), "c": node(b=CopyInfo(ID, until=7))}
    fakes = {name: Fake(name, QueryLimit("too much")) for name in ("a", "b")}
    around = FakeAround(known, {**fakes, "c": Fake("c"), "c/b": Fake("c/b")})
    found = gathered(around)
    assert who(found) == {"here": "here", "b": "c/b", "c": "c"}
    assert found.nodes[0] == NodeAnswer("a", "limited", why="too much")
    assert around.failures == [], "it is there, and is asked again"


def test_all_nodes_are_asked_at_the_same_time() -> None:
    """Each waits until the others are being asked."""
    together = threading.Barrier(5, timeout=30)

    class Waiting(Fake):
        def sql(self, text: str) -> pa.Table:
            together.wait()
            return super().sql(text)

    names = ["a", "b", "c", "d"]
    around = FakeAround({name: node() for name in names}, {name: Waiting(name) for name in names})
    assert len(gathered(around, Waiting("here")).tables) == 5


# ── real nodes ───────────────────────────────────────────────────────────────────────────────────

ALL = Selected(("cpu%", "text"))


def divided(nodes: tuple[RunningNode, ...], count: int) -> list[tuple[str, Value]]:
    """Values over all nodes, some in files and some not."""
    chance = np.random.default_rng(7)
    whose = chance.integers(0, len(nodes), count)
    times = chance.integers(0, count // 4, count)
    known = []
    for number, one in enumerate(nodes):
        mine = [
            Value(f"cpu{i % 3}", f"e{i % 5}", START + int(times[i]), float(i), {"i": str(i % 2)})
            for i in range(count)
            if whose[i] == number
        ]
        half = len(mine) // 2
        one.put(mine[:half])
        one.put([*mine[half:], Value("text", one.site, START, "said by " + one.site)], flush=False)
        known += [(one.site, value) for value in mine]
        known.append((one.site, Value("text", one.site, START, "said by " + one.site)))
    return known


def content(whole: Whole) -> tuple[object, ...]:
    return whole.table.to_pylist(), [answer.as_json() for answer in whole.nodes]


@pytest.mark.site
def test_whoever_is_asked_answers_the_same(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", "west") as nodes:
        known = divided(nodes, 1_200)
        fabrics = [one.fabric for one in nodes]
        for limit in (7, 100, 5_000):
            for descending in (False, True):
                question = Range(ALL, limit=limit, descending=descending)
                if limit == 7:
                    question = Range(ALL, START, START + 20, limit, descending)
                found = [pages(fabric, question) for fabric in fabrics]
                assert found[0] == found[1] == found[2]
                wanted = [(n, v) for n, v in known if question.end is None or v.time < question.end]
                assert len(found[0]) == len(wanted)
                assert sorted(found[0], key=repr) == sorted(wanted, key=repr)
                times = [value.time for _, value in found[0]]
                assert times == sorted(times, reverse=descending)
        questions = [
            lambda fabric: fabric.latest(ALL),
            lambda fabric: fabric.latest(Selected(("cpu1",), ("e1", "e2"))),
            lambda fabric: fabric.aggregate(AggregateQuery(50, ALL)),
            lambda fabric: fabric.aggregate(
                AggregateQuery(
                    1_000_000, Selected(("cpu%",)), functions=("count", "last"), descending=True
                )
            ),
            lambda fabric: fabric.metrics("cpu"),
            lambda fabric: fabric.sql(
                "SELECT metric, count(*) AS n, min(value) AS low FROM history "
                "WHERE metric LIKE 'cpu%' GROUP BY metric ORDER BY metric"
            ),
        ]
        for ask in questions:
            answers = [content(ask(fabric)) for fabric in fabrics]
            assert answers[0] == answers[1] == answers[2]
            assert len(answers[0][0]) > 0
            assert [told["state"] for told in answers[0][1]] == ["answered"] * 3
        count = fabrics[1].aggregate(
            AggregateQuery(1_000_000, Selected(("cpu%",)), functions=("count",))
        )
        assert sum(count.table["count"].to_pylist()) == 1_200


def test_more_names_than_an_address_holds(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        values = [Value(f"cpu{'x' * 50}{i:04}", "e", START + i, float(i)) for i in range(600)]
        north.put(values)
        names = Selected((*(value.metric for value in values), "cpu%", f"cpu{'x' * 50}00%"))
        assert numbers_of(pages(south.fabric, Range(names, limit=70))) == list(range(600))
        assert numbers_of(pages(south.fabric, Range(names, limit=70, descending=True))) == list(
            range(599, -1, -1)
        )
        assert len(south.fabric.latest(names).table) == 600
        assert len(south.fabric.aggregate(AggregateQuery(10, names)).table) == 600


def numbers_of(found: list[tuple[str, Value]]) -> list[float]:
    return [float(value.value) for _, value in found]


def test_a_stopped_node_is_away_and_the_rest_answers(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", "west") as (north, south, west):
        north.put(some_values(20))
        south.put(some_values(20, first=100))
        south.stop()
        for one in (north, west):
            whole = one.fabric.latest(Selected(("cpu%",)))
            states = {answer.node: answer.state for answer in whole.nodes}
            assert states == {"north": "answered", "south": "away", "west": "answered"}
            assert numbers(one.fabric, "north") == list(range(20))
        told = {str(told["node"]): told for told in north.fabric.nodes()}
        assert told["south"]["state"] == "away"
        assert told["south"]["why"]


@pytest.mark.site
def test_sql_of_all_nodes_says_whose_rows_they_are(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(3))
        whole = south.fabric.sql("SELECT count(*) AS n FROM history WHERE metric LIKE 'cpu%'")
        assert whole.table.to_pylist() == [{"node": "north", "n": 3}, {"node": "south", "n": 0}]
        for wrong in ("DROP TABLE history", "SELECT 1 AS node", "SELECT * FROM nowhere"):
            with pytest.raises(BadQuery):
                south.fabric.sql(wrong)


@pytest.mark.site
def test_sql_over_all_nodes_together(tmp_path: Path) -> None:
    """One statement over what is stored anywhere, whoever is asked; who is away is named."""
    with running(tmp_path, *SITES) as nodes:
        for place, node in enumerate(nodes):
            node.put(some_values(100, first=100 * place))
        statements = {
            "SELECT count(*) AS n, sum(value) AS s FROM history": [{"n": 300, "s": 44_850.0}],
            "SELECT count(DISTINCT node) AS nodes FROM latest": [{"nodes": 3}],
            "SELECT max(h.value) AS v FROM history h JOIN latest l USING (node, metric, entity)": [
                {"v": 299.0}
            ],
        }
        for text, wanted in statements.items():
            for node in nodes[:2]:
                whole = node.fabric.sql_together(text, Range(Selected(("cpu%",))))
                assert whole.table.to_pylist() == wanted
                assert [answer.state for answer in whole.nodes] == ["answered"] * 3
        north, _, west = nodes
        text, cpu = "SELECT count(*) AS n FROM history", Selected(("cpu%",))
        for wrong in ("DROP TABLE history", "SELECT * FROM nowhere", "SELECT value FROM"):
            with pytest.raises(BadQuery):
                north.fabric.sql_together(wrong, Range(cpu))
        west.stop()
        whole = north.fabric.sql_together(text, Range(cpu))
        assert whole.table.to_pylist() == [{"n": 200}]
        states = {answer.node: answer.state for answer in whole.nodes}
        assert states == {"north": "answered", "south": "answered", "west": "away"}


@pytest.mark.site
def test_sql_together_brings_no_more_than_a_query_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fabric_module, "SQL_PAGE", 40)
    few = replace(SMALL, query=QueryLimits(rows=250))
    with running(tmp_path, "north", "south", limits={"north": few, "south": few}) as (north, south):
        north.put(some_values(200))
        south.put(some_values(200, first=200))
        text, cpu = "SELECT count(*) AS n, sum(value) AS s FROM history", Selected(("cpu%",))
        with pytest.raises(QueryLimit, match="more than 250 values") as caught:
            north.fabric.sql_together(text, Range(cpu))
        assert "from, to" in caught.value.hint
        early = north.fabric.sql_together(text, Range(cpu, end=START + 249_000))
        assert early.table.to_pylist() == [{"n": 249, "s": 249 * 124.0}]


@pytest.mark.parametrize(
    ("text", "view", "read"),
    [
        ("SELECT 1", "history", False),
        ("select * from HISTORY", "history", True),
        ('SELECT * FROM main."history"', "history", True),
        ("SELECT prehistory FROM latest", "history", False),
        ("SELECT * FROM query_table('his' || 'tory')", "history", True),
    ],
)
def test_what_a_statement_may_need(text: str, view: str, read: bool) -> None:
    assert needs(text, view) is read


def test_texts_and_special_numbers_travel(tmp_path: Path) -> None:
    special = [float("nan"), float("inf"), float("-inf"), -0.0, "a \u0000 text", "", "温"]
    values = [Value("cpu", f"é{i}\u0000", START + i, value) for i, value in enumerate(special)]
    with running(tmp_path, "north", "south") as (north, south):
        north.put(values)
        found = [value for _, value in pages(south.fabric, Range(Selected(("cpu",))))]
        assert repr(found) == repr(values)
        latest = to_values(south.fabric.latest(Selected(("cpu",))).table)
        assert repr(sorted(latest, key=lambda value: value.time)) == repr(values)
