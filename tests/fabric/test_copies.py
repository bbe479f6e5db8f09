"""Copies follow their origin exactly once, whatever is added, taken away, stopped or killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.federation.routing import covers
from fogline.fabric.query.query_types import AggregateQuery, NodeAnswer, Range, Selected
from fogline.model.question import Question
from fogline.storage.errors import BadQuery
from fogline.storage.store import SiteStore
from fogline.storage.values import Value
from tests.fabric.kit_nodes import (
    SECRET,
    SMALL,
    START,
    RunningNode,
    how,
    numbers,
    pages,
    running,
    some_values,
    until,
)


def copied(node: RunningNode, origin: str) -> list[float]:
    """Every number of a copy, in order, those that the fabric itself stores left out."""
    copy = node.fabric.copy_of(origin)
    if copy is None:
        return []
    found = copy.range(Range(Selected(("cpu%", "mem%")), limit=100_000))
    seqs = found["seq"].to_pylist()
    assert len(set(seqs)) == len(seqs)
    return sorted(found["value"].to_pylist())


def complete(node: RunningNode, origin: str) -> bool:
    return node.fabric.copies()[origin]["until"] is not None


def test_old_and_new_values_go_to_the_copy(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(1_700))
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(1_700)), "old values are copied")
        north.put(some_values(40, first=1_700))
        until(lambda: copied(south, "north") == list(range(1_740)), "new values are copied")
        until(lambda: complete(south, "north"))
        told = south.fabric.state()["copies"]["north"]
        assert told["id"] == north.store.id
        assert told["metrics"] is None
        assert told["rows"] >= 1_740


def test_values_that_only_waited_are_copied_soon(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        south.fabric.keep_copy("north", None)
        north.put(some_values(5), flush=False)
        until(lambda: copied(south, "north") == list(range(5)), "what waits is written down")


def test_metrics_that_are_added_bring_their_old_values(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put([*some_values(900), *some_values(900, "mem", first=900)])
        south.fabric.keep_copy("north", ("cpu0",))
        until(lambda: copied(south, "north") == list(range(0, 900, 3)), "one metric")
        south.fabric.keep_copy("north", ("cpu0", "cpu%"))
        until(lambda: copied(south, "north") == list(range(900)), "overlapping metrics")
        south.fabric.keep_copy("north", ("cpu0", "cpu%", "mem1"))
        expected = [*range(900), *range(901, 1_800, 3)]
        until(lambda: copied(south, "north") == expected, "another metric")
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(1_800)), "everything")
        north.put(some_values(3, first=1_800))
        until(lambda: copied(south, "north") == list(range(1_803)), "and it goes on")


def test_fewer_metrics_make_a_smaller_copy(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put([*some_values(300), *some_values(300, "mem", first=300)])
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(600)))
        south.fabric.keep_copy("north", ("mem%",))
        until(lambda: copied(south, "north") == list(range(300, 600)), "only what is wanted")
        until(lambda: south.fabric.copies()["north"]["metrics"] == ["mem%"])


def test_the_copy_answers_when_the_origin_is_away(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south", "west") as (north, south, west):
        north.put(some_values(1_000))
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(1_000)))
        until(lambda: complete(south, "north"))
        until(lambda: "north" in west.fabric.peer_views()["south"].report.copies)
        until(lambda: west.fabric.peer_views()["south"].report.copies["north"].until is not None)
        north.stop()
        for asked in (south, west):
            assert numbers(asked.fabric, "north") == list(range(1_000))
            answer = how(asked.fabric, "north")
            assert (answer["state"], answer["at"]) == ("copy", "south")
            assert isinstance(answer["until"], int)
            assert "partial" not in answer
        south.stop()
        until(lambda: how(west.fabric, "north")["state"] == "away", "nobody has its values")
        assert how(west.fabric, "north")["why"]
        north.start()
        until(lambda: how(west.fabric, "north")["state"] == "answered", "it is back")
        assert numbers(west.fabric, "north") == list(range(1_000))


def test_a_page_goes_on_at_the_copy(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        same_time = [Value("cpu", "e", START, float(i)) for i in range(100)]
        north.put(same_time)
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(100)))
        question = Range(Selected(("cpu",)), limit=30)
        first = south.fabric.range(question, {})
        north.stop()
        assert first.places is not None
        second = south.fabric.range(question, first.places)
        told = [*first.table["value"].to_pylist(), *second.table["value"].to_pylist()]
        assert told == list(range(60))


def test_a_partial_copy_is_marked(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(30))
        south.fabric.keep_copy("north", ("cpu0",))
        until(lambda: copied(south, "north") == list(range(0, 30, 3)))
        north.stop()
        answers = {
            metrics: next(
                a for a in south.fabric.latest(Selected(metrics)).nodes if a.node == "north"
            )
            for metrics in (None, ("cpu%",), ("cpu0",))
        }
        assert [answer.partial for answer in answers.values()] == [True, True, False]


def test_a_stale_copy_is_used_only_when_it_may_be(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(30))
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(30)))
        until(lambda: complete(south, "north"))

        def state(stale: float) -> str:
            whole = south.fabric.latest(Selected(("cpu%",)), stale)
            return next(answer.state for answer in whole.nodes if answer.node == "north")

        assert state(0.0) == "answered"
        assert state(3_600.0) == "copy"
        assert state(0.001) == "answered"


def test_a_holder_goes_on_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(500))
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(500)))
        south.stop()
        north.put(some_values(500, first=500))
        south.start()
        until(lambda: copied(south, "north") == list(range(1_000)), "it goes on")


def test_a_copy_that_is_not_wanted_is_removed(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(20))
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(20)))
        south.fabric.drop_copy("north")
        assert south.fabric.copy_of("north") is None
        assert south.fabric.copies() == {}
        until(lambda: not any((south.folder / "copies").iterdir()), "its folder is removed")
        south.fabric.drop_copy("north")


@pytest.mark.parametrize("origin", ["south", "", "../up", "a/b", "x" * 200, "a\n"])
def test_what_cannot_be_copied(tmp_path: Path, origin: str) -> None:
    with running(tmp_path, "south") as (south,), pytest.raises(BadQuery):
        south.fabric.keep_copy(origin, None)


def test_wrong_metrics_cannot_be_copied(tmp_path: Path) -> None:
    with running(tmp_path, "south") as (south,):
        for metrics in ((), ("x" * 5_000,), ("\ud800",)):
            with pytest.raises(BadQuery):
                south.fabric.keep_copy("north", metrics)


def test_names_that_are_no_folders(tmp_path: Path) -> None:
    with running(tmp_path, "..", "Öst . %2e") as (first, second):
        first.put(some_values(10))
        second.fabric.keep_copy("..", None)
        until(lambda: copied(second, "..") == list(range(10)))
        assert (second.folder / "copies" / "%2E%2E" / "manifest").exists()


@pytest.mark.parametrize(
    "damage", [b"", b"[]", b'{"copies": {"north": 5}}', b"\xff\x00", b"[" * 9_999]
)
def test_a_damaged_list_of_copies_removes_none(tmp_path: Path, damage: bytes) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(20))
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(20)))
        south.stop()
        for file in (south.folder / "copies.json", south.folder / ".copies.json.copy"):
            file.write_bytes(damage)
        south.start()
        assert south.fabric.copies() == {}
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(20)))


def test_a_damaged_copy_is_set_aside_and_made_again(tmp_path: Path) -> None:
    with running(tmp_path, "north", "south") as (north, south):
        north.put(some_values(20))
        south.fabric.keep_copy("north", None)
        until(lambda: copied(south, "north") == list(range(20)))
        south.stop()
        for name in ("manifest", ".manifest.copy"):
            (south.folder / "copies" / "north" / name).write_bytes(b"what")
        south.start()
        until(lambda: copied(south, "north") == list(range(20)))
        assert (south.folder / "copies" / "north.damaged" / "manifest").read_bytes() == b"what"


@pytest.mark.parametrize(
    ("held", "asked", "covered"),
    [
        (None, None, True),
        (None, ("a",), True),
        (("a",), None, False),
        (("a",), ("a",), True),
        (("a",), ("a%",), False),
        (("a%",), ("a",), True),
        (("a%",), ("ab%", "a"), True),
        (("a%",), ("a\\%",), True),
        (("a\\%",), ("a%",), False),
        (("a\\%",), ("a\\%",), True),
        (("%",), ("x", "%"), True),
        (("a", "b"), ("a", "b", "c"), False),
        (("a",), (), True),
    ],
)
def test_what_a_copy_covers(
    held: tuple[str, ...] | None, asked: tuple[str, ...] | None, covered: bool
) -> None:
    assert covers(held, asked) is covered


# ── killed ───────────────────────────────────────────────────────────────────────────────────────

HOLDER = """
import json, os, sys, threading
from pathlib import Path
from fogline.fabric.federation.fabric import Fabric
from fogline.fabric.membership.options import FabricOptions
from fogline.storage.limits import StoreLimits
from fogline.storage.store import SiteStore

folder, address, secret = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
limits = StoreLimits(flush_rows=300, file_rows=2_000, merge_files=3, flush_us=50_000)
store = SiteStore(folder / "store", "south", limits)
store.start()
options = FabricOptions(exchange_seconds=0.1, copy_seconds=0.05, page_rows=100)
fabric = Fabric("south", store, folder, secret, options)
fabric.set_nodes({"north": address})
fabric.keep_copy("north", None)
fabric.start()
while True:
    threading.Event().wait(0.02)
    told = fabric.copies()["north"]
    os.write(1, json.dumps([told.get("rows", 0), told["until"]]).encode() + b"\\n")
"""


def holder(folder: Path, address: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), address, SECRET],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )


def kill_at(child: subprocess.Popen[bytes], rows: int) -> int:
    """Kills it once the copy holds so many values; tells how many there were."""
    assert child.stdout is not None
    try:
        while True:
            line = child.stdout.readline()
            assert line, "the holder ended"
            found = json.loads(line)
            if found[0] >= rows:
                return int(found[0])
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.site
def test_a_holder_that_is_killed_again_and_again(tmp_path: Path) -> None:
    with running(tmp_path, "north") as (north,):
        north.put(some_values(6_000))
        folder = tmp_path / "south"
        for rows in (500, 2_000, 4_000):
            kill_at(holder(folder, north.address), rows)
            north.put(some_values(100, first=6_000 + rows))
        kill_at(holder(folder, north.address), 6_300)
        with SiteStore(north.folder.parent / "south" / "copies" / "north", limits=SMALL) as copy:
            found = copy.rows(["cpu%"], limit=100_000)
        # What was in its memory at the end may be missing there, but nothing is there twice.
        assert len(set(found["seq"].to_pylist())) == len(found)
        south = RunningNode("south", tmp_path)
        try:
            south.know({"north": north.address})
            expected = numbers(north.fabric, "north")
            assert len(expected) == 6_300
            until(lambda: copied(south, "north") == expected, "all is there once")
        finally:
            south.stop()


ORIGIN = """
import os, sys
from pathlib import Path
from fogline.fabric.federation.fabric import Fabric
from fogline.fabric.api.node import FabricNode
from fogline.fabric.membership.options import FabricOptions
from fogline.fabric.api.rest import make_app
from fogline.common.http.server import Server
from fogline.fabric.query.space_keys import SpaceKeys
from fogline.fabric.api.tokens_file import Callers
from fogline.storage.limits import StoreLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, from_values

folder, port, secret, first = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
limits = StoreLimits(flush_rows=100, file_rows=2_000, merge_files=3, flush_us=20_000)
server = Server("127.0.0.1", port)
store = SiteStore(folder / "store", "north", limits)
store.start()
fabric = Fabric("north", store, folder, secret, FabricOptions(settle_seconds=0.1))
fabric.start()
keys = SpaceKeys(folder / "store")
node = FabricNode("north", store, fabric, Callers(folder / "store", secret), keys)
server.start(make_app(node))
os.write(1, b"%d\\n" % server.port)
for number in range(first, 1_000_000):
    store.ingest(from_values([Value("cpu", "e", number, float(number))]), "log", number + 1)
    if number % 7 == 0:
        os.write(1, b"%d %d\\n" % (number, store.committed("log")))
"""


def origin(folder: Path, port: int, first: int) -> tuple[subprocess.Popen[bytes], int]:
    child = subprocess.Popen(
        [sys.executable, "-c", ORIGIN, str(folder), str(port), SECRET, str(first)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    return child, int(child.stdout.readline())


def let_store(child: subprocess.Popen[bytes], values: int) -> None:
    """Reads on until so many values are on disk there."""
    assert child.stdout is not None
    while True:
        line = child.stdout.readline()
        assert line, "the origin ended"
        if int(line.split()[1]) >= values:
            return


@pytest.mark.site
def test_an_origin_that_is_killed_during_intake(tmp_path: Path) -> None:
    """Values that its log brings again get the same numbers, or others, but come once."""
    folder, port, first = tmp_path / "north", 0, 0
    with running(tmp_path, "south") as (south,):
        south.fabric.keep_copy("north", None)
        for _ in range(3):
            child, port = origin(folder, port, first)
            try:
                south.know({"north": f"http://127.0.0.1:{port}"})
                let_store(child, first + 300)
                seen = len(copied(south, "north"))
                deadline = time.monotonic() + 60
                while len(copied(south, "north")) < seen + 50 and time.monotonic() < deadline:
                    let_store(child, 0)
            finally:
                child.kill()
                child.wait()
                assert child.stdout is not None
                child.stdout.close()
            with SiteStore(folder / "store", limits=SMALL) as store:
                first = store.position("log")
        north = RunningNode("north", tmp_path)
        try:
            south.know({"north": north.address})
            until(lambda: copied(south, "north") == list(range(first)), "each value once")
            assert [
                value.value for _, value in pages(north.fabric, Range(Selected(("cpu",))))
            ] == list(range(first))
        finally:
            north.stop()


def scattered(count: int) -> list[Value]:
    """Numbers that need their space on disk, in the order of time."""
    chance = Random(7)
    return [Value(f"cpu{i % 3}", "e", START + i, chance.random()) for i in range(count)]


def counted(node: RunningNode, start: int | None = None) -> tuple[int, NodeAnswer]:
    """How many values of north there are from then on, and who told so."""
    question = AggregateQuery(1 << 50, Selected(("cpu%",)), start, functions=("count",))
    whole = node.fabric.aggregate(question)
    rows = [row["count"] for row in whole.table.to_pylist() if row["node"] == "north"]
    return sum(rows), next(answer for answer in whole.nodes if answer.node == "north")


def settled(node: RunningNode, most_bytes: int) -> bool:
    """Whether the copy of north is all in files, and upkeep has nothing more to evict."""
    copy = node.fabric._copies.current("north")
    assert copy is not None
    with copy.using() as store:
        store.flush()
        store.maintain()
        state = store.state()
    return state.waiting == 0 and state.disk_bytes <= most_bytes


def test_a_holder_that_keeps_less_says_from_when_on_it_is_complete(tmp_path: Path) -> None:
    small = replace(SMALL, disk_bytes=60_000)
    with running(tmp_path, "north", "south", limits={"south": small}) as (north, south):
        values = scattered(20_000)
        for first in range(0, 20_000, 2_000):
            north.put(values[first : first + 2_000])
        south.fabric.keep_copy("north", None)
        until(lambda: complete(south, "north"))
        until(lambda: south.fabric.copies()["north"]["since"] is not None, "some had to go")
        until(lambda: south.fabric.copies()["north"]["bytes"] <= 60_000)
        followed = Question(("cpu%",))
        with pytest.raises(NodeUnreachable):
            south.fabric.copy_changes("north", -1, followed, 100, whole=True)
        last = south.fabric.copies()["north"]["last"]
        south.fabric.copy_changes("north", last, followed, 100, whole=True)
        north.stop()
        until(lambda: settled(south, 60_000), "what came last is in its place")
        count, answer = counted(south)
        assert 0 < count < 20_000, "the newest are there, however large the flushes were"
        assert (answer.state, answer.partial) == ("copy", True)
        assert answer.since is not None
        count, later = counted(south, answer.since)
        assert count == sum(value.time >= answer.since for value in values)
        assert (later.state, later.partial, later.since) == ("copy", False, None)
        south.stop()
        south.start()
        assert counted(south)[1].since == answer.since, "a restart does not forget it"


def test_what_the_origin_evicted_too_is_not_missing(tmp_path: Path) -> None:
    small = replace(SMALL, disk_bytes=60_000)
    both = {"north": small, "south": replace(SMALL, disk_bytes=90_000)}
    with running(tmp_path, "north", "south", limits=both) as (north, south):
        south.fabric.keep_copy("north", None)
        values = scattered(20_000)
        for first in range(0, 20_000, 2_000):
            north.put(values[first : first + 2_000])
            until(lambda: north.store.state().disk_bytes <= 60_000)
        until(lambda: north.store.first_seq > 10_000)
        until(lambda: complete(south, "north"))
        until(lambda: south.fabric.copies()["north"]["rows"] >= north.store.state().rows)
        until(lambda: south.fabric.copies()["north"]["since"] is None)
        held = counted(north)[0]
        north.stop()
        count, answer = counted(south)
        assert (answer.state, answer.partial) == ("copy", False)
        assert count >= held
