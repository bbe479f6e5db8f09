"""What nodes learn of each other: state, latency, metadata; and what of it is stored."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.fabric.errors import NodeRefused, NodeUnreachable
from fogline.fabric.membership.health import LATENCY, REACHABLE, VIA, Health, HealthValues
from fogline.fabric.membership.peers import PeerReport, PeerView, read_state
from fogline.fabric.query.query_types import ANSWERED, REFUSED, UNREACHABLE, Selected
from fogline.storage.catalog.metadata import Description
from fogline.storage.errors import BadValue
from tests.fabric.kit_nodes import (
    START,
    all_answer,
    how,
    running,
    slower,
    some_values,
    until,
)

ID = "b" * 32
SECOND = 1_000_000


def values(health: HealthValues, now: int, **seen: PeerView) -> list[tuple[str, str, float | str]]:
    return [(v.metric, v.entity, v.value) for v in health.of(seen, START + now * SECOND)]


def up(latency: float = 2.0, address: str = "http://a") -> PeerView:
    return PeerView(address, ANSWERED, latency_ms=latency)


def test_values_are_stored_no_more_often_than_they_should_be() -> None:
    health = HealthValues()
    first = [(REACHABLE, "n", 1.0), (LATENCY, "n", 2.0), (VIA, "n", "http://a")]
    assert values(health, 0, n=up()) == first
    assert values(health, 2, n=up(3.0)) == []
    assert values(health, 10, n=up(4.0)) == [(LATENCY, "n", 4.0)]
    assert values(health, 12, n=PeerView("http://a", UNREACHABLE)) == [(REACHABLE, "n", 0.0)]
    assert values(health, 14, n=PeerView("http://a", REFUSED)) == []
    assert values(health, 16, n=up(5.0)) == [(REACHABLE, "n", 1.0)]
    assert values(health, 20, n=up(5.0, "http://b")) == [
        (LATENCY, "n", 5.0),
        (VIA, "n", "http://b"),
    ]
    assert values(health, 76, n=up(6.0, "http://b")) == [(REACHABLE, "n", 1.0), (LATENCY, "n", 6.0)]
    assert values(health, 77, n=PeerView("http://c")) == []


def test_a_clock_that_was_set_back_stops_nothing() -> None:
    health = HealthValues()
    values(health, 1_000, n=up())
    assert values(health, 0, n=up()) == [(REACHABLE, "n", 1.0), (LATENCY, "n", 2.0)]


def test_a_forgotten_node_begins_anew() -> None:
    health = HealthValues()
    values(health, 0, n=up())
    assert values(health, 1) == []
    assert len(values(health, 2, n=up())) == 3


def test_how_nodes_are() -> None:
    nodes = {"a": "http://a", "b": "http://b"}
    health = Health(lambda: nodes)
    assert {name: seen.state for name, seen in health.all().items()} == {
        "a": "unknown",
        "b": "unknown",
    }
    health.note_answer("a", "http://a", PeerReport(ID), 1.5)
    health.note_failure("b", "http://b", NodeRefused("not you"))
    assert [seen.state for seen in health.all().values()] == [ANSWERED, REFUSED]
    health.note_failure("a", "http://a", NodeUnreachable("gone"))
    gone = health.get("a")
    assert gone is not None
    assert (gone.state, gone.why, gone.report.id) == (UNREACHABLE, "gone", ID)
    nodes["a"] = "http://elsewhere"
    moved = health.get("a")
    assert moved is not None
    assert (moved.state, moved.address, moved.report.id) == ("unknown", "http://elsewhere", ID)
    del nodes["a"]
    assert health.get("a") is None


WRONG: list[dict[str, Any]] = [
    {},
    {"id": 5},
    {"id": "short"},
    {"id": ID, "rows": -1},
    {"id": ID, "bytes": "7"},
    {"id": ID, "metadata": 1.5},
    {"id": ID, "last": True},
    {"id": ID, "last": 1 << 80},
    {"id": ID, "restoring": 1},
    {"id": ID, "copies": []},
    {"id": ID, "copies": {"a/b": {"id": ID}}},
    {"id": ID, "copies": {"a": {"id": ID, "metrics": "cpu"}}},
    {"id": ID, "copies": {"a": {"id": ID, "metrics": [1]}}},
    {"id": ID, "copies": {"a": {"id": ID, "until": "now"}}},
    {"id": ID, "copies": {"a": {"id": 7}}},
    {"id": ID, "restored": {"x": {}}},
    {"id": ID, "restored": {ID: {"base": 0, "room": 1, "from": "south"}}},
    {"id": ID, "restored": {ID: {"base": 0, "room": 1, "from": ["a/b"]}}},
    {"id": ID, "restored": []},
    {"id": ID, "copies": {"a": {"id": ID, "includes": {"x": 1}}}},
]


@pytest.mark.parametrize("data", WRONG)
def test_states_that_cannot_be(data: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        read_state(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(ID),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["id", "copies", "restored", "last", "metadata"]), JSON))
def test_any_state_is_read_or_refused(data: dict[str, Any]) -> None:
    with contextlib.suppress(BadValue):
        assert read_state(data).id == ID


def test_a_state_is_read_as_it_was_told(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(10))
        south.fabric.keep_copy("north", ("cpu0", "cpu1"))
        until(lambda: south.fabric.state()["copies"].get("north", {}).get("rows", 0) >= 6)
        told = south.fabric.state(with_metrics=True)
        assert isinstance(told["metrics"], dict)
        read = read_state(told)
        assert read.copies["north"].metrics == ("cpu0", "cpu1")
        assert read.as_json().items() <= told.items()


def test_metadata_goes_to_every_node(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", "west") as (north, south, west):
        north.store.metadata.put("cpu", Description(unit="%", extra={"k": "v"}))
        west.store.metadata.put("mem", Description(unit="MB", minimum=0.0), entity="e")

        def units() -> list[list[tuple[str, str]]]:
            return [
                [(item.metric, item.description.unit) for item in node.store.metadata.find()]
                for node in (north, south, west)
            ]

        until(lambda: units() == [[("cpu", "%"), ("mem", "MB")]] * 3, "all know all")
        south.store.metadata.put("cpu", Description(unit="share"))
        until(lambda: units() == [[("cpu", "share"), ("mem", "MB")]] * 3, "a newer version")
        north.store.metadata.remove("mem", "e")
        until(lambda: units() == [[("cpu", "share")]] * 3, "removed everywhere")


def test_more_metadata_than_one_page(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        for number in range(1_100):
            north.store.metadata.put(f"m{number}", Description(unit=str(number)))
        until(lambda: len(south.store.metadata.find()) == 1_100, "all pages")


def test_a_node_that_comes_back_learns_what_it_missed(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        south.stop()
        north.store.metadata.put("cpu", Description(unit="%"))
        south.start()
        until(lambda: south.store.metadata.get("cpu") is not None)


def test_health_becomes_values_of_the_own_store(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        until(lambda: len(north.store.latest("fabric.%")) == 3)
        found = {row["metric"]: row for row in north.store.latest("fabric.%").to_pylist()}
        assert {row["entity"] for row in found.values()} == {"south"}
        assert found[REACHABLE]["value"] == 1.0
        assert found[LATENCY]["value"] > 0
        assert found[VIA]["text"] == south.address
        south.stop()
        until(lambda: north.store.latest(REACHABLE)["value"].to_pylist() == [0.0], "it is away")
        whole = north.fabric.latest(Selected((REACHABLE,)))
        assert whole.table["node"].to_pylist() == ["north"]


def test_nodes_with_another_secret_are_refused(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (_, south):
        until(lambda: all_answer(south))
        south.stop()
        south.start(secret="another one than the others have")
        until(lambda: how(south.fabric, "north")["state"] == REFUSED)
        assert "another secret" in str(how(south.fabric, "north")["why"])


def test_an_address_where_somebody_else_answers(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", "west") as (north, _, west):
        north.know({"south": west.address, "west": west.address})
        until(lambda: north.fabric.peer_views()["south"].state == UNREACHABLE)
        assert "is not south" in north.fabric.peer_views()["south"].why


def test_what_nodes_tell(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        until(lambda: all(node["state"] == ANSWERED for node in north.fabric.nodes()))
        own, other = north.fabric.nodes()
        assert (own["node"], other["node"]) == ("north", "south")
        assert own["id"] == north.store.id
        assert other["id"] == south.store.id
        assert other["address"] == south.address
        assert other["latency_ms"] > 0
        assert north.fabric.status()["nodes"] == {"south": ANSWERED}


def test_a_node_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    """It is away after its time; the others are looked at and asked all the while."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        options = slower(answer_seconds=3.0)
        with running(tmp_path, "north", "south", options=options) as (north, south):
            address = f"http://127.0.0.1:{hanging.getsockname()[1]}"
            north.know({"south": south.address, "stuck": address})
            south.put(some_values(5))
            before = north.fabric.peer_views()["south"].report.rows
            until(
                lambda: north.fabric.peer_views()["south"].report.rows > before,
                "others are looked at",
            )
            assert how(north.fabric, "stuck")["state"] == UNREACHABLE
            assert how(north.fabric, "south")["state"] == ANSWERED
            until(lambda: north.fabric.peer_views()["stuck"].state == UNREACHABLE)
