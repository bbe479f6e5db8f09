"""Live streams from the fabric: what comes to any node is in the log exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fogline.fabric.contract import FabricLog, FabricLogStatus
from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.federation.fabric import Fabric
from fogline.fabric.federation.sources import OwnChanges
from fogline.fabric.query.query_types import ChangeSource, Range, Selected
from fogline.fabric.streams.fabric_log import source_of_store
from fogline.fabric.streams.fabric_to_log import FabricFeed
from fogline.log import SiteLog
from fogline.model.question import Question
from fogline.model.sites import fabric_log
from fogline.storage.query.changes import Changes
from fogline.storage.store import SiteStore
from fogline.storage.values import SCHEMA, Value, from_values
from tests.fabric.kit_nodes import pages, running, some_values, until
from tests.waiting import wait_for

NOON = 1_767_268_800_000_000
ALL = Question()


class Store:
    """A node whose store can be away."""

    def __init__(self, folder: Path) -> None:
        self.store = SiteStore(folder)
        self.at = folder.name
        self.away = False
        self.asked: list[Question] = []
        self._next = 0

    @property
    def store_id(self) -> str:
        return self.store.id

    def changes(self, after: int, question: Question, limit: int) -> Changes:
        if self.away:
            raise NodeUnreachable("it is away")
        self.asked.append(question)
        self.store.flush()
        return OwnChanges(self.store, self.at).changes(after, question, limit)

    def put(self, count: int, metric: str = "cpu", entity: str = "pod") -> None:
        numbers = range(self._next, self._next + count)
        self.store.ingest(from_values([Value(metric, entity, NOON + n, float(n)) for n in numbers]))
        self._next += count


class World:
    """Nodes, the logs of a site, and the feed between them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = SiteLog(folder / "log", min_free_bytes=0)
        self.nodes: dict[str, Any] = {}
        self.feed: FabricFeed | None = None

    def node(self, name: str) -> Store:
        found = Store(self.folder / name)
        self.nodes[name] = found
        return found

    def begin(self, *questions: Question) -> None:
        """A feed that has seen all nodes that are there now."""
        self.feed = FabricFeed(self.logs, lambda _: dict(self.nodes))
        self.feed.set_logs(items(*questions))
        self.feed.start()
        here = {name for name, node in self.nodes.items() if not getattr(node, "away", False)}
        for question in questions:
            self.wait(lambda q=question: here <= set(self.places(q)), f"feed of {question}")  # type: ignore[misc]

    def follow(self, fabric: Fabric, question: Question) -> None:
        """A feed from real nodes, as one of them sees them."""
        self.feed = FabricFeed(self.logs, fabric.change_sources)
        self.feed.set_logs(items(question))
        self.feed.start()

    def end(self) -> None:
        if self.feed is not None:
            self.feed.close()
            self.feed = None

    def places(self, question: Question) -> dict[str, int]:
        assert self.feed
        told = [item for item in self.feed.status() if item.log == fabric_log(question)]
        return dict(told[0].nodes) if told else {}

    def state(self, question: Question = ALL) -> FabricLogStatus:
        found = self.find(question)
        assert found is not None
        return found

    def find(self, question: Question) -> FabricLogStatus | None:
        assert self.feed
        status = self.feed.status()
        return next((item for item in status if item.log == fabric_log(question)), None)

    def word(self, question: Question = ALL) -> str:
        """The state of a log, as soon as there is one."""
        found = self.find(question)
        return found.state if found is not None else ""

    def records(self, question: Question = ALL) -> list[dict[str, Any]]:
        with self.logs.reader(fabric_log(question)) as reader:
            found, position, end = [], reader.first(), reader.committed()
            while position < end:
                records, position = reader.read(position)
                found += [json.loads(payload) for _, payload in records]
            return found

    def end_of_log(self) -> int:
        with self.logs.reader(fabric_log(ALL)) as reader:
            return reader.committed()

    def numbers(self, node: str = "north", question: Question = ALL) -> list[int]:
        return [int(r["value"]) for r in self.records(question) if r["nodeID"] == node]

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        wait_for(condition, 60, lambda: f"{what}: {self.feed and self.feed.status()}")

    def wait_for(self, count: int, question: Question = ALL) -> None:
        self.wait(lambda: len(self.records(question)) >= count, f"{count} records")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.end()
    for node in made.nodes.values():
        if isinstance(node, Store):
            node.store.close()


def items(*questions: Question) -> list[FabricLog]:
    return [FabricLog(fabric_log(question), question) for question in questions]


def test_it_begins_now_and_takes_all_nodes(world: World) -> None:
    north, south = world.node("north"), world.node("south")
    north.put(5)
    world.begin(ALL)
    north.put(3)
    south.put(2)
    world.wait_for(5)
    assert (world.numbers("north"), world.numbers("south")) == ([5, 6, 7], [0, 1])
    assert world.records()[0]["metricID"] == "cpu"


def test_only_what_is_asked_for_is_taken(world: World) -> None:
    question = Question(("cpu_%",), ("pod",), ("nor%",))
    north, south = world.node("north"), world.node("south")
    world.nodes["south"].away = True  # it is not even asked
    world.begin()
    assert world.feed
    world.feed.set_logs(items(question))
    world.wait(lambda: "north" in world.places(question), "feed")
    south.away = False
    north.put(1, "memory")
    north.put(1, "cpu_a", "host")
    north.put(2, "cpu_a")
    south.put(1, "cpu_a")
    world.wait_for(2, question)
    north.put(1, "cpu_b")
    world.wait_for(3, question)
    assert world.numbers("north", question) == [2, 3, 4]
    assert world.numbers("south", question) == []
    assert north.asked[-1].metrics == ("cpu_%",)
    assert south.asked == []


def test_a_restart_goes_on(world: World) -> None:
    north = world.node("north")
    world.begin(ALL)
    north.put(10)
    world.wait_for(10)
    world.end()
    north.put(10)
    world.begin(ALL)
    north.put(5)
    world.wait_for(25)
    assert world.numbers() == list(range(25))


def test_what_came_before_the_first_value_was_written_is_not_lost(world: World) -> None:
    north = world.node("north")
    north.put(3)
    world.begin(ALL)
    world.end()
    north.put(4)
    world.begin(ALL)
    world.wait_for(4)
    assert world.numbers() == [3, 4, 5, 6]


def test_a_node_found_later_begins_then(world: World) -> None:
    world.node("north")
    world.begin(ALL)
    late = Store(world.folder / "late")
    late.put(4)
    world.nodes["late"] = late
    world.wait(lambda: "late" in world.places(ALL), "late node")
    late.put(2)
    world.wait_for(2)
    assert world.numbers("late") == [4, 5]


def test_a_node_that_was_away_is_caught_up_with(world: World) -> None:
    north, south = world.node("north"), world.node("south")
    world.begin(ALL)
    south.away = True
    north.put(1)
    south.put(3)
    world.wait_for(1)
    world.wait(lambda: world.state().away.get("south") == "it is away", "word of it")
    south.away = False
    world.wait_for(4)
    assert world.numbers("south") == [0, 1, 2]
    world.wait(lambda: not world.state().away, "word that it is back")


def test_a_new_store_at_a_node_begins_anew(world: World) -> None:
    north = world.node("north")
    world.begin(ALL)
    north.put(2)
    world.wait_for(2)
    place = world.places(ALL)["north"]
    fresh = Store(world.folder / "fresh")
    world.nodes["north"] = fresh
    world.wait(lambda: world.places(ALL)["north"] != place, "the new store's place")
    fresh.put(1)
    world.wait_for(3)
    assert world.numbers() == [0, 1, 0]
    north.store.close()


def test_a_log_that_nobody_wants_begins_anew(world: World) -> None:
    north = world.node("north")
    world.begin(ALL)
    north.put(2)
    world.wait_for(2)
    assert world.feed
    world.feed.set_logs([])
    world.wait(lambda: world.feed and world.feed.status() == (), "end of the log")
    north.put(3)
    world.feed.set_logs(items(ALL))
    world.wait(lambda: world.places(ALL), "feed")
    north.put(1)
    world.wait_for(3)
    assert world.numbers() == [0, 1, 5]


def test_so_does_one_that_was_not_wanted_at_a_start(world: World) -> None:
    north = world.node("north")
    world.begin(ALL)
    north.put(2)
    world.wait_for(2)
    world.end()
    other = Question(("other",))
    world.begin(other)
    world.end()
    north.put(3)
    world.begin(ALL)
    north.put(1)
    world.wait_for(3)
    assert world.numbers() == [0, 1, 5]


def test_a_full_disk_loses_nothing(world: World) -> None:
    north = world.node("north")
    world.begin(ALL)
    world.end()
    world.logs = SiteLog(world.folder / "log", min_free_bytes=1 << 60)
    feed = world.feed = FabricFeed(world.logs, lambda _: dict(world.nodes))
    feed.set_logs(items(ALL))
    feed.start()
    north.put(3)
    world.wait(lambda: "no space" in world.word(), "word of it")
    world.end()
    world.logs = SiteLog(world.folder / "log", min_free_bytes=0)
    world.begin(ALL)
    world.wait_for(3)
    assert world.numbers() == [0, 1, 2]


def test_real_nodes_are_followed(tmp_path: Path, world: World) -> None:
    question = Question(("cpu%",))
    with running(tmp_path / "nodes", "north", "south") as (north, south):
        north.put(some_values(3))
        world.follow(north.fabric, question)
        world.wait(lambda: len(world.places(question)) == 2, "feed")
        north.put(some_values(4, first=3))
        south.put(some_values(5))
        world.wait_for(9, question)
        assert world.numbers("north", question) == [3, 4, 5, 6]
        assert world.numbers("south", question) == [0, 1, 2, 3, 4]
        south.stop()
        north.put(some_values(1, first=7))
        world.wait_for(10, question)
        south.start()
        south.put(some_values(2, first=5))
        world.wait_for(12, question)
        assert world.numbers("south", question) == list(range(7))
        world.end()


# ── by way of copies ─────────────────────────────────────────────────────────────────────────────


def test_a_copy_here_is_followed_instead_of_its_origin(tmp_path: Path, world: World) -> None:
    question = Question(("cpu%",))
    with running(tmp_path / "nodes", "north", "south") as (north, south):
        world.follow(south.fabric, question)
        world.wait(lambda: len(world.places(question)) == 2, "feed")
        north.put(some_values(300))
        world.wait_for(300, question)
        assert world.state(question).copies == {}
        south.fabric.keep_copy("north", ("cpu%",))
        world.wait(lambda: world.state(question).copies == {"north": "south"}, "the copy")
        north.put(some_values(300, first=300))
        world.wait_for(600, question)
        south.fabric.drop_copy("north")
        world.wait(lambda: world.state(question).copies == {}, "the origin again")
        north.put(some_values(300, first=600))
        world.wait_for(900, question)
        assert world.numbers("north", question) == list(range(900))
        world.end()


def test_a_copy_of_other_metrics_is_not_followed(tmp_path: Path, world: World) -> None:
    with running(tmp_path / "nodes", "north", "south") as (north, south):
        north.put(some_values(3, "mem"))
        south.fabric.keep_copy("north", ("mem%",))
        until(lambda: "north" in south.fabric.own_copies(), "a copy")
        until(lambda: south.fabric.own_copies()["north"].until is not None, "all of it")
        told = {
            q: south.fabric.change_sources(Question((q,)))["north"].at for q in ("cpu%", "mem0")
        }
        assert told == {"cpu%": "north", "mem0": "south"}
        assert south.fabric.change_sources(ALL)["north"].at == "north"


@pytest.mark.parametrize("reader", ["south", "west"])
def test_what_a_copy_holds_is_followed_when_its_origin_dies(
    tmp_path: Path, world: World, reader: str
) -> None:
    """Here, and from a third node."""
    question = Question(("cpu%",))
    with running(tmp_path / "nodes", "north", "south", "west") as nodes:
        north, south, _ = nodes
        here = next(node for node in nodes if node.site == reader)
        world.follow(here.fabric, question)
        world.wait(lambda: len(world.places(question)) == 3, "feed")
        world.end()
        south.fabric.keep_copy("north", None)
        until(lambda: south.fabric.copies()["north"]["until"] is not None, "an empty copy")
        north.put(some_values(700))
        held = {"rows": 0}

        def all_there() -> bool:
            held.update(south.fabric.copies()["north"])
            return held["rows"] >= 700

        until(all_there, "700 values in the copy")
        north.stop()
        until(lambda: not here.fabric.peer_views()["north"].can_be_asked, "it is missed")
        world.follow(here.fabric, question)
        world.wait_for(700, question)
        world.wait(lambda: world.find(question), "the log")
        world.wait(lambda: world.state(question).copies == {"north": "south"}, "word of it")
        world.end()
        north.start()
        north.put(some_values(100, first=700))
        until(lambda: here.fabric.peer_views()["north"].can_be_asked, "it is back")
        world.follow(here.fabric, question)
        world.wait_for(800, question)
        assert world.numbers("north", question) == list(range(800))
        world.end()


def test_a_share_is_sent_by_nodes_and_copies_alike(tmp_path: Path, world: World) -> None:
    some = Question(("cpu%",), share=0.3)
    with running(tmp_path / "nodes", "north", "south") as (north, south):
        world.follow(south.fabric, some)
        world.wait(lambda: len(world.places(some)) == 2, "feed")
        north.put(some_values(1_000))
        ranged = Range(Selected(("cpu%",)), limit=500, share=0.3)
        wanted = sorted(int(value.value) for _, value in pages(south.fabric, ranged))
        assert 200 < len(wanted) < 400
        world.wait_for(len(wanted), some)
        assert world.numbers("north", some) == wanted
        south.fabric.keep_copy("north", ("cpu%",))
        world.wait(lambda: world.state(some).copies == {"north": "south"}, "the copy")
        north.put(some_values(1_000, first=1_000))
        wanted = sorted(int(value.value) for _, value in pages(south.fabric, ranged))
        world.wait_for(len(wanted), some)
        assert world.numbers("north", some) == wanted
        world.end()


def test_a_node_that_is_to_send_less_does_so_at_once(world: World) -> None:
    """Others send what they did; what comes later is sent in full again, nothing twice."""
    north, south = world.node("north"), world.node("south")
    world.begin(ALL)
    assert world.feed is not None
    (log,) = items(ALL)
    world.feed.set_logs([replace(log, shares={"north": 0.2})])
    world.wait(lambda: world.state().shares == {"north": 0.2}, "less")
    north.put(1_000)
    south.put(1_000)
    world.wait(lambda: len(world.numbers("south")) == 1_000, "all of south")
    world.wait(lambda: world.places(ALL)["north"] == north.store.last_seq, "the end of north")
    some = world.numbers("north")
    assert 100 < len(some) < 300
    assert {question.share for question in south.asked} == {1.0}
    world.feed.set_logs([log])
    world.wait(lambda: world.state().shares == {}, "all again")
    north.put(100)
    world.wait(lambda: world.numbers("north") == [*some, *range(1_000, 1_100)], "all of it")


# ── nodes that tell nonsense ─────────────────────────────────────────────────────────────────────


class Liar:
    """Tells what it is made to tell, after a beginning at 10."""

    store_id = at = "liar"

    def __init__(self, page: Changes) -> None:
        self.page = page
        self.asked = 0

    def changes(self, after: int, question: Question, limit: int) -> Changes:
        if question.metrics == ():
            return Changes(SCHEMA.empty_table(), 10, end=True)
        self.asked += 1
        return self.page


@pytest.mark.parametrize(
    "page",
    [
        Changes(SCHEMA.empty_table(), 3, end=True),
        Changes(pa.table({"nothing": [1]}), 11, end=True),
        Changes(from_values([Value("m", "e", NOON, 1.0)]).drop_columns(["time"]), 11, end=True),
    ],
)
def test_nonsense_hurts_only_who_tells_it(world: World, page: Changes) -> None:
    north = world.node("north")
    world.begin(ALL)
    liar = world.nodes["liar"] = Liar(page)
    world.wait(lambda: world.state().away.get("liar"), "word of it")
    north.put(2)
    world.wait_for(2)
    assert world.numbers("liar") == []
    assert liar.asked


def test_a_page_that_leads_nowhere_is_not_asked_for_without_end(world: World) -> None:
    north = world.node("north")
    world.begin(ALL)
    liar = world.nodes["liar"] = Liar(Changes(SCHEMA.empty_table(), 10, end=False))
    world.wait(lambda: liar.asked, "question")
    before, begun = liar.asked, time.monotonic()
    north.put(1)
    world.wait_for(1)
    assert liar.asked - before <= 3 + 4 * (time.monotonic() - begun)


# ── killed at any moment ─────────────────────────────────────────────────────────────────────────


class Endless:
    """A store with ever more numbers, as many as are asked for."""

    store_id, at = "endless", "north"

    def changes(self, after: int, question: Question, limit: int) -> Changes:
        if question.metrics == ():
            return Changes(SCHEMA.empty_table(), 99, end=True)
        time.sleep(0.005)  # what the test reads at its end stays small
        numbers = range(after + 1, after + 1 + random.randint(1, 500))
        values = [Value("m", "e", NOON + n, float(n)) for n in numbers]
        return Changes(from_values(values), numbers[-1], end=False)


def feed_endlessly(folder: Path) -> None:
    """The child: killed, never ended."""
    sources: Mapping[str, ChangeSource] = {"north": Endless()}
    feed = FabricFeed(SiteLog(folder, min_free_bytes=0), lambda _: sources)
    feed.set_logs(items(ALL))
    feed.start()
    sys.stdin.read()


@pytest.mark.site
def test_killed_again_and_again_it_loses_and_doubles_nothing(world: World) -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    code += "from pathlib import Path\nfrom tests.fabric.test_fabric_to_log import feed_endlessly\n"
    code += f"feed_endlessly(Path({str(world.logs.root)!r}))"
    for _ in range(5):
        before = world.end_of_log()
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        try:
            world.wait(lambda b=before: world.end_of_log() > b, "progress")  # type: ignore[misc]
        finally:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            assert child.stdin
            child.stdin.close()
    found = world.numbers()
    assert found == list(range(100, 100 + len(found)))


def test_sources_of_stores_are_numbers_of_a_log() -> None:
    found = {source_of_store(f"{n:032x}") for n in range(1000)}
    assert len(found) == 1000
    assert all(0 < number < 1 << 62 for number in found)


class Broken:
    """Raises what nobody expects."""

    at = "south"
    store_id = property(lambda self: 1 // 0)

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


def test_a_bug_is_told_and_the_others_go_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    north = world.node("north")
    world.begin(ALL)
    world.nodes["south"] = Broken()
    world.wait(lambda: "a bug" in str(world.state().away.get("south")), "the bug is told")
    north.put(3)
    world.wait_for(3)
    with monkeypatch.context() as patch:
        patch.setattr("fogline.fabric.streams.fabric_to_log.FeedLog", lambda *_: 1 // 0)
        other = Question(("cpu",))
        assert world.feed
        world.feed.set_logs(items(ALL, other))
        world.wait(lambda: "a bug" in world.word(other), "the bug is told")
    world.wait(lambda: world.word(other) == "running", "it goes on")
    north.put(3)
    world.wait_for(6)
