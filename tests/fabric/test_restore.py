"""A node that lost its disk gets its values back from the copies, each of them once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fogline.fabric.membership.peers import CopyInfo, PeerReport, PeerView
from fogline.fabric.query.query_types import ANSWERED, UNREACHABLE, Range, Selected
from fogline.fabric.replicas.restore import to_take
from fogline.storage.files import data_files
from tests.damage import DAMAGES
from tests.fabric.kit_nodes import START, RunningNode, how, numbers, running, some_values, until
from tests.fabric.test_copies import complete, copied

ID, OLD = "1" * 32, "2" * 32


def holds(node: RunningNode, count: int, metrics: tuple[str, ...] | None = None) -> None:
    node.fabric.keep_copy("north", metrics)
    until(lambda: len(copied(node, "north")) == count, f"{node.site} holds {count}")
    until(lambda: complete(node, "north"))


def lose(node: RunningNode) -> None:
    node.stop()
    node.lose_disk()
    node.start()


def is_back(node: RunningNode) -> bool:
    return not node.fabric.state()["restoring"]


def follows(node: RunningNode, origin: RunningNode) -> bool:
    return bool(node.fabric.state()["copies"].get("north", {}).get("id") == origin.store.id)


def test_values_come_back_from_the_copy(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(1_300))
        holds(south, 1_300)
        old = north.store.id
        lose(north)
        assert north.store.id != old
        north.put(some_values(70, first=5_000))
        until(lambda: is_back(north), "its values are back")
        expected = [*range(1_300), *range(5_000, 5_070)]
        assert numbers(north.fabric, "north") == expected
        assert north.fabric.state()["restored"][old]["from"] == ["south"]
        until(lambda: follows(south, north), "the copy follows the new store")
        until(lambda: copied(south, "north") == expected, "the copy is whole")
        north.put(some_values(5, first=6_000))
        until(lambda: copied(south, "north") == [*expected, *range(6_000, 6_005)])
        assert numbers(south.fabric, "north") == [*expected, *range(6_000, 6_005)]


def test_copies_that_overlap_bring_each_value_once(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", "west") as (north, south, west):
        north.put(some_values(900))
        holds(south, 300, ("cpu0",))
        holds(west, 600, ("cpu0", "cpu2"))
        lose(north)
        until(lambda: is_back(north))
        expected = [i for i in range(900) if i % 3 != 1]
        until(lambda: numbers(north.fabric, "north") == expected, "both copies, once")
        until(lambda: follows(south, north) and follows(west, north))
        until(lambda: copied(west, "north") == expected)
        until(lambda: copied(south, "north") == list(range(0, 900, 3)))


def test_a_copy_that_is_heard_of_later(tmp_path: Path) -> None:
    """Values come back below numbers that others have read already; they read again."""
    with running(tmp_path, "north", "south", "west") as (north, south, west):
        north.put(some_values(600))
        holds(south, 600)
        holds(west, 200, ("cpu1",))
        south.stop()
        lose(north)
        until(lambda: is_back(north))
        north.put(some_values(10, first=5_000))
        few = [*range(1, 600, 3), *(i for i in range(5_000, 5_010))]
        until(lambda: numbers(north.fabric, "north") == few, "what one copy had")
        until(lambda: follows(west, north))
        west.fabric.keep_copy("north", None)
        until(lambda: copied(west, "north") == few)
        south.start()
        every = [*range(600), *range(5_000, 5_010)]
        until(lambda: numbers(north.fabric, "north") == every, "what the other copy had, too")
        until(lambda: copied(west, "north") == every, "a copy that had read beyond")
        until(lambda: follows(south, north) and copied(south, "north") == every)


def damage_a_file(node: RunningNode) -> int:
    """While it is stopped; returns how many values were in the file."""
    node.stop()
    file = min((node.folder / "store" / "data").iterdir())
    rows = len(data_files.read(file))
    DAMAGES["flipped bit"](file)
    node.start()
    return rows


def test_values_of_a_damaged_file_come_back_from_the_copy(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(1_300))
        holds(south, 1_300)
        old = north.store.id
        damage_a_file(north)
        assert north.store.id == old
        until(lambda: north.store.lost == (), "nothing is lost any more")
        assert numbers(north.fabric, "north") == list(range(1_300))
        assert north.store.damaged == []
        north.put(some_values(5, first=6_000))
        until(lambda: copied(south, "north") == [*range(1_300), *range(6_000, 6_005)])


@pytest.mark.site
def test_an_answer_says_what_is_lost(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(300))
        north.put(some_values(50, first=1_000))
        rows = damage_a_file(north)
        until(lambda: south.fabric.peer_views()["north"].report.lost, "it is heard of")
        everything = Range(Selected(("cpu%",)), limit=10_000)
        before = replace(everything, end=START - 10**9)
        for node in (north, south):
            assert numbers(node.fabric, "north") == list(range(1_000, 1_050))
            (answer,) = (a for a in node.fabric.range(everything, {}).nodes if a.node == "north")
            assert answer.partial
            assert answer.why.startswith(f"{rows} values from 2026-")
            assert answer in node.fabric.latest(Selected(("cpu%",))).nodes
            assert answer in node.fabric.sql("SELECT 1 AS one").nodes
            assert not any(answer.partial for answer in node.fabric.range(before, {}).nodes)


def test_a_copy_with_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(700))
        holds(south, 700)
        south.stop()
        DAMAGES["flipped bit"](min((south.folder / "copies" / "north" / "data").iterdir()))
        south.start()
        until(lambda: copied(south, "north") == list(range(700)), "the copy is whole")
        assert (south.folder / "copies" / "north.damaged").exists()


def test_a_disk_that_is_lost_twice(tmp_path: Path) -> None:
    """A copy of the first store and one of the second, which had the first one's values."""
    with running(tmp_path, "north", "south", "west") as (north, south, west):
        north.put(some_values(400))
        holds(south, 400)
        holds(west, 400)
        west.stop()
        lose(north)
        until(lambda: is_back(north))
        north.put(some_values(100, first=1_000))
        until(lambda: copied(south, "north") == [*range(400), *range(1_000, 1_100)])
        until(lambda: follows(south, north))
        lose(north)
        west.start()
        expected = [*range(400), *range(1_000, 1_100)]
        until(lambda: is_back(north) and numbers(north.fabric, "north") == expected, "each once")
        until(lambda: all(follows(node, north) for node in (south, west)))
        until(lambda: all(copied(node, "north") == expected for node in (south, west)))
        assert numbers(north.fabric, "north") == expected


def test_an_origin_that_stops_while_it_takes_back(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(6_000))
        holds(south, 6_000)
        lose(north)
        until(lambda: len(numbers(north.fabric, "north", limit=10_000)) > 500, "some are back")
        north.stop()
        north.start()
        until(lambda: is_back(north), "all are back")
        assert numbers(north.fabric, "north", limit=10_000) == list(range(6_000))


def test_old_values_are_kept_until_they_were_taken_back(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(50))
        holds(south, 50)
        north.stop()
        north.lose_disk()
        north._nodes = {}  # it does not know of the one that has its values
        north.start()
        until(lambda: is_back(north))
        until(lambda: south.fabric.peer_views()["north"].report.id == north.store.id)
        until(lambda: how(south.fabric, "north")["state"] == ANSWERED)
        assert copied(south, "north") == list(range(50))
        assert numbers(north.fabric, "north") == []
        north.know({"south": south.address})
        until(lambda: numbers(north.fabric, "north") == list(range(50)), "found later")
        until(lambda: follows(south, north) and copied(south, "north") == list(range(50)))


def test_a_restart_with_the_same_store_takes_nothing_back(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(50))
        holds(south, 50)
        north.stop()
        north.start()
        until(lambda: is_back(north))
        assert north.fabric.state()["restored"] == {}
        assert numbers(north.fabric, "north") == list(range(50))


def test_what_is_to_be_taken() -> None:
    def other(state: str, copy_id: str) -> PeerView:
        return PeerView(
            "http://x", state, report=PeerReport(ID, copies={"north": CopyInfo(copy_id)})
        )

    seen = {
        "a": other(ANSWERED, OLD),
        "b": other(UNREACHABLE, OLD),
        "c": other(ANSWERED, ID),
        "d": other(ANSWERED, OLD),
        "e": PeerView("http://x", ANSWERED),
    }
    assert [job.holder for job in to_take(seen, "north", ID, {(OLD, "d")})] == ["a"]
