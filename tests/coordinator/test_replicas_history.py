"""Who failed and who was restarted: told by looks alone, and kept in both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import inspect

from fogline.adapt.replication.stability import NodeHistory, instability, stability
from fogline.common.errors import NotFoundError
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.nodes.node_history import (
    FAIL,
    FAILED,
    LEFT,
    PRESENT,
    RESTART,
    SETTLE_SECONDS,
    SURE_SECONDS,
    Happened,
    KnownNode,
    NodeChange,
    Watch,
)
from fogline.coordinator.reconcile.histories import Histories
from fogline.coordinator.repository import history_table, schema
from fogline.coordinator.repository.store import Store
from fogline.model.nodes import OFFLINE, ONLINE, SILENT, SITE, Node, NodeView
from tests.coordinator.kit import FakeControl, Rig

LONG = SETTLE_SECONDS + SURE_SECONDS + 1


def view(state: str = ONLINE, instance: str = "i1", clean: bool = False) -> dict[str, NodeView]:
    return {"a": NodeView(Node("a", SITE), state, 0.0, instance=instance, clean=clean)}


class Story:
    """Looks at one node, a second apart."""

    def __init__(self, known: dict[str, KnownNode] | None = None, at: float = 1000.0) -> None:
        self.watch = Watch(known or {})
        self.at = at
        self.changes: list[NodeChange] = []

    def see(self, views: dict[str, NodeView], seconds: float = 1, connected: bool = True) -> Story:
        for _ in range(round(seconds)):
            self.changes += self.watch.look(views, connected, self.at)
            self.at += 1
        return self

    @property
    def kinds(self) -> list[str]:
        return [item.kind for change in self.changes for item in change.happened]

    @property
    def happened(self) -> list[Happened]:
        return [item for change in self.changes for item in change.happened]

    @property
    def state(self) -> str:
        return self.watch.known_nodes["a"].state


def known(state: str = PRESENT, instance: str = "i1") -> dict[str, KnownNode]:
    return {"a": KnownNode(5.0, instance, state)}


# ── looks ────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_sight_is_no_event() -> None:
    story = Story().see(view(), LONG)
    assert (story.kinds, story.state) == ([], PRESENT)
    assert story.watch.known_nodes["a"].first == 1000.0
    assert len(story.changes) == 1


def test_a_last_will_is_a_failure_even_if_the_node_is_back_soon() -> None:
    story = Story().see(view(), LONG)
    broke = story.at
    story.see(view(OFFLINE)).see(view(), LONG)
    assert story.kinds == [FAIL]
    assert story.happened[0].at == broke
    assert story.state == PRESENT


def test_silence_that_ends_in_a_will_is_one_failure() -> None:
    story = Story().see(view(), LONG).see(view(SILENT), LONG).see(view(OFFLINE), LONG)
    assert (story.kinds, story.state) == ([FAIL], FAILED)
    assert "silent" in story.happened[0].why
    story.see(view(instance="i2"), LONG)
    assert story.kinds == [FAIL, RESTART]


def test_a_good_bye_is_no_failure_and_the_next_birth_a_restart() -> None:
    story = Story().see(view(), LONG).see(view(OFFLINE, clean=True), LONG)
    assert (story.kinds, story.state) == ([], LEFT)
    story.see(view(instance="i2"), LONG)
    assert (story.kinds, story.state) == ([RESTART], PRESENT)


def test_a_crash_that_was_over_before_anybody_looked() -> None:
    story = Story().see(view(), LONG).see(view(instance="i2"), LONG)
    assert story.kinds == [FAIL, RESTART]


def test_two_processes_of_one_name_are_not_restarted_all_the_time() -> None:
    story = Story().see(view(), LONG)
    for _ in range(20):
        story.see(view(instance="i2")).see(view(instance="i1"))
    assert story.kinds == [FAIL, RESTART]


def test_a_broker_that_dies_is_nobodys_failure() -> None:
    story = Story().see(view(), LONG)
    story.see(view(OFFLINE))  # its wills, sent when it ends
    story.see(view(OFFLINE), 20, connected=False)
    story.see(view(OFFLINE), 5).see(view(), LONG)
    story.see(view(SILENT), 20, connected=False).see(view(SILENT), 5).see(view(), LONG)
    story.see({}, 5).see(view(), LONG)
    assert (story.kinds, story.state) == ([], PRESENT)


def test_who_does_not_come_back_after_the_broker_has_failed() -> None:
    story = Story().see(view(), LONG).see(view(), 20, connected=False).see(view(SILENT), LONG)
    assert (story.kinds, story.state) == ([FAIL], FAILED)
    lost = Story(known()).see({}, LONG)
    assert (lost.kinds, lost.state) == ([FAIL], FAILED)


def test_a_coordinator_that_slept_does_not_blame_the_nodes() -> None:
    story = Story().see(view(), LONG)
    story.at += 3600
    story.see(view(SILENT), 3).see(view(), LONG)
    assert story.kinds == []
    story.at -= 7200
    story.see(view(SILENT), 3).see(view(), LONG)
    assert story.kinds == []


@pytest.mark.parametrize(
    ("before", "now", "kinds", "state"),
    [
        (PRESENT, view(), [], PRESENT),
        (PRESENT, view(OFFLINE), [FAIL], FAILED),
        (PRESENT, view(OFFLINE, clean=True), [], LEFT),
        (PRESENT, view(instance="i2"), [FAIL, RESTART], PRESENT),
        (PRESENT, view(OFFLINE, "i2", clean=True), [FAIL, RESTART], LEFT),
        (FAILED, view(OFFLINE), [], FAILED),
        (FAILED, view(), [], PRESENT),
        (FAILED, view(instance="i2"), [RESTART], PRESENT),
        (LEFT, view(OFFLINE, clean=True), [], LEFT),
        (LEFT, view(instance="i2"), [RESTART], PRESENT),
    ],
)
def test_what_happened_while_the_coordinator_was_away(
    before: str, now: dict[str, NodeView], kinds: list[str], state: str
) -> None:
    story = Story(known(before)).see(now, LONG)
    assert (story.kinds, story.state) == (kinds, state)
    assert story.watch.known_nodes["a"].first == 5.0


def test_a_forgotten_node_is_new_again() -> None:
    story = Story().see(view(), LONG)
    story.watch.forget("a")
    story.see(view(instance="i9"))
    assert (story.kinds, story.state) == ([], PRESENT)
    assert story.watch.known_nodes["a"].first > 1000.0


# ── both databases ───────────────────────────────────────────────────────────────────────────────


def fails(*times: float) -> list[NodeChange]:
    happened = tuple(Happened(FAIL, at, "why") for at in times)
    return [NodeChange("a", KnownNode(0.0, "i1", PRESENT), happened)]


def write(store: Store, changes: list[NodeChange]) -> None:
    with store.change() as connection:
        history_table.write(connection, changes)


def test_histories_survive_and_are_not_doubled(store_url: str) -> None:
    store = Store(store_url)
    first = Histories(store)
    at = 1000.0
    for state in [view()] * 40 + [view(OFFLINE)] * 40 + [view(instance="i2")] * 40:
        first.look(state, True, at)
        at += 1
    assert first.counts("a") == {"failures": 1, "restarts": 1}
    store.close()
    store = Store(store_url)
    second = Histories(store)
    for _ in range(40):
        second.look(view(instance="i2"), True, at)
        at += 1
    shown = second.describe("a", at)
    assert second.counts("a") == {"failures": 1, "restarts": 1}
    assert (shown["first"], shown["state"], shown["failures"]) == (1000.0, PRESENT, 1)
    assert [event["kind"] for event in shown["events"]] == [FAIL, RESTART]
    assert shown["events"][0]["at"] == 1040.0
    assert shown["instability"] > 0 > shown["stability"]
    store.forget_node("a")
    second.forget("a")
    assert second.forgotten_nodes() == {"a"} == Histories(store).forgotten_nodes()
    assert second.all() == {}
    with pytest.raises(NotFoundError):
        second.describe("a", at)
    second.look(view(instance="i3"), True, at)
    assert second.counts("a") == {"failures": 0, "restarts": 0}
    assert second.describe("a", at)["first"] == at
    store.close()


def test_many_failures_are_thinned_and_count_as_before(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_table, "MOST_EVENTS", 20)
    monkeypatch.setattr(history_table, "_SLACK", 2)
    store, day = Store(store_url), 86_400.0
    times = [float(n * n + 1) for n in range(100)]
    for at in times:
        write(store, fails(at))
    history = Histories(store)
    found, now = history.all()["a"], 30 * day
    assert 20 <= len(found.fails) < 22
    assert found.failures == 100 == history.counts("a")["failures"]
    whole = NodeHistory(0.0, tuple(times))
    assert instability(found, now) == pytest.approx(instability(whole, now))
    assert stability(found, now) == stability(whole, now)
    store.close()


def test_what_cannot_be_written_is_written_later(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    history = Histories(store)
    history.look(view(), True, 1000.0)
    with store.change() as connection:
        schema.node_events.drop(connection)
    with pytest.raises(RepositoryError):
        history.look(view(instance="i2"), True, 1001.0)
    assert history.counts("a") == {"failures": 0, "restarts": 0}
    with store.change() as connection:
        schema.node_events.create(connection)
    history.look(view(instance="i2"), True, 1002.0)
    assert history.counts("a") == {"failures": 1, "restarts": 1}
    assert Histories(store).counts("a") == {"failures": 1, "restarts": 1}
    store.close()


def test_a_store_of_before_gets_the_tables(store_url: str) -> None:
    store = Store(store_url)
    store.remember_nodes([Node("a", SITE)], 1.0)
    new = (schema.node_states, schema.node_events, schema.copies)
    with store.change() as connection:
        for table in new:
            table.drop(connection)
    store.close()
    store = Store(store_url)
    with store.look() as connection:
        assert {table.name for table in new} <= set(inspect(connection).get_table_names())
    assert Histories(store).all() == {}
    assert set(store.nodes()) == {"a"}
    store.close()


def test_the_control_loop_watches(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FakeControl("north", "south"))
    try:
        rig.loop.round()
        told = {node["name"]: node for node in rig.service.nodes()}
        assert told["north"]["failures"] == told["north"]["restarts"] == 0
        assert rig.service.history("north")["events"] == []
        with pytest.raises(NotFoundError):
            rig.service.history("west")
        rig.control.set_state("south", OFFLINE)
        rig.loop.round()
        rig.service.forget_node("south")
        with pytest.raises(NotFoundError):
            rig.service.history("south")
    finally:
        rig.end()
