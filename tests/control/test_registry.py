"""The registry and the rivals, with times made up."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from fogline.control import SILENT_SECONDS, NodeRegistry
from fogline.control.announcements import Announcement, status_payload, statuses_payload
from fogline.control.payload import write_object
from fogline.control.rivals import Rivals, new_instance
from fogline.model.nodes import OFFLINE, ONLINE, SILENT, Node, Observed


def announce(state: str = ONLINE, instance: str = "1", **more: Any) -> bytes:
    return Announcement(state, instance, Node("a", "site", **more)).encode()


def report(instance: str = "1", *jobs: str) -> bytes:
    observed = [Observed(job, "v", "running").as_json() for job in jobs]
    return write_object(status_payload(0.0, instance, {"jobs": observed}))


def test_a_node_is_online_from_its_birth_until_it_is_gone() -> None:
    registry = NodeRegistry()
    assert registry.note_announcement("a", announce(cores=2), 100.0)
    view = registry.views(101.0)["a"]
    assert (view.state, view.since, view.node.cores) == (ONLINE, 100.0, 2)
    assert registry.note_announcement("a", announce(OFFLINE, cores=2), 102.0)
    view = registry.views(500.0)["a"]
    assert (view.state, view.since) == (OFFLINE, 102.0)


def test_a_birth_told_again_changes_nothing_but_when_it_was_told() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    assert not registry.note_announcement("a", announce(), 105.0)
    view = registry.views(106.0)["a"]
    assert (view.since, view.reported_at) == (100.0, 105.0)
    assert registry.note_announcement("a", announce(cores=3), 106.0)
    assert registry.views(106.0)["a"].since == 100.0


def test_who_comes_back_has_a_new_since() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    registry.note_announcement("a", announce(OFFLINE), 110.0)
    registry.note_announcement("a", announce(), 120.0)
    assert registry.views(121.0)["a"].since == 120.0
    registry.note_announcement("a", announce(instance="2"), 130.0)
    view = registry.views(131.0)["a"]
    assert (view.state, view.since) == (ONLINE, 130.0)


def test_online_without_a_status_for_a_while_is_silent() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    assert registry.views(107.9)["a"].state == ONLINE
    assert registry.views(108.0)["a"].state == SILENT
    registry.note_status("a", report(), 107.0)
    assert registry.views(114.0)["a"].online
    view = registry.views(120.0)["a"]
    assert (view.state, view.since, view.reported_at) == (SILENT, 107.0 + SILENT_SECONDS, 107.0)


def test_a_birth_alone_does_not_end_the_silence_but_a_status_does() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    registry.note_announcement("a", announce(), 120.0)
    assert registry.states(121.0) == {"a": SILENT}
    assert registry.note_status("a", report(), 122.0)
    view = registry.views(123.0)["a"]
    assert (view.state, view.since) == (ONLINE, 122.0)


def test_the_gone_are_not_silent() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(OFFLINE), 100.0)
    assert registry.states(1000.0) == {"a": OFFLINE}


def test_a_status_is_that_of_its_instance_only() -> None:
    registry = NodeRegistry()
    assert not registry.note_status("a", report("1", "x"), 99.0)
    assert registry.views(99.0) == {}
    registry.note_announcement("a", announce(), 100.0)
    assert set(registry.views(100.0)["a"].jobs) == {"x"}
    registry.note_announcement("a", announce(instance="2"), 110.0)
    assert registry.views(110.0)["a"].jobs == {}
    assert registry.note_status("a", report("2", "y"), 111.0)
    assert not registry.note_status("a", report("1", "x"), 112.0)
    assert set(registry.views(112.0)["a"].jobs) == {"y"}


def test_the_same_status_again_is_no_news() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    assert registry.note_status("a", report("1", "x"), 101.0)
    assert not registry.note_status("a", report("1", "x"), 103.0)
    assert registry.note_status("a", report("1", "x", "y"), 105.0)
    assert registry.views(105.0)["a"].reported_at == 105.0


def test_the_will_of_another_start_does_not_count() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(instance="2"), 100.0)
    assert not registry.note_announcement("a", announce(OFFLINE, "1"), 101.0)
    assert registry.states(101.0) == {"a": ONLINE}


def test_a_bad_payload_changes_nothing_and_is_counted() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    registry.note_status("a", report("1", "x"), 101.0)
    before = registry.views(102.0)
    for payload in (b"{", b"[]", b"{}", b"[" * 10_000, announce().replace(b'"a"', b'"b"')):
        assert not registry.note_announcement("a", payload, 102.0)
    assert not registry.note_status("a", b'{"at": 1}', 102.0)
    assert registry.views(102.0) == before
    assert registry.bad == 6


def test_the_forgotten_are_known_again_when_they_tell() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    assert registry.note_announcement("a", b"", 101.0)
    assert registry.views(101.0) == {}
    assert not registry.forget("a", 0.0)
    assert registry.note_announcement("a", announce(), 102.0)
    assert registry.views(102.0)["a"].since == 102.0


# ── several nodes with one last will ─────────────────────────────────────────────────────────────


def one_of(name: str, state: str = ONLINE, instance: str = "1", everybody: bool = False) -> bytes:
    return Announcement(state, instance, Node(name, "gateway"), everybody=everybody).encode()


def test_the_last_will_of_one_ends_all_of_its_instance() -> None:
    registry = NodeRegistry()
    for name in "abc":
        registry.note_announcement(name, one_of(name), 100.0)
    registry.note_announcement("d", one_of("d", instance="2"), 100.0)
    assert registry.note_announcement("a", one_of("a", OFFLINE, everybody=True), 105.0)
    assert registry.states(106.0) == {"a": OFFLINE, "b": OFFLINE, "c": OFFLINE, "d": ONLINE}
    assert registry.views(200.0)["b"].since == 105.0


def test_it_counts_whatever_comes_first() -> None:
    announcements = {name: one_of(name) for name in "bc"} | {
        "a": one_of("a", OFFLINE, everybody=True)
    }
    for order in permutations("abc"):
        registry = NodeRegistry()
        for name in order:
            registry.note_announcement(name, announcements[name], 100.0)
        assert registry.states(101.0) == dict.fromkeys(order, OFFLINE)


def test_it_is_taken_back_by_whoever_left_it() -> None:
    registry = NodeRegistry()
    for name in "ab":
        registry.note_announcement(name, one_of(name), 100.0)
    registry.note_announcement("a", one_of("a", OFFLINE, everybody=True), 101.0)
    registry.note_announcement("b", one_of("b"), 102.0)
    assert registry.states(102.0) == {"a": OFFLINE, "b": OFFLINE}
    assert registry.note_announcement("a", one_of("a"), 103.0)
    assert registry.states(103.0) == {"a": ONLINE, "b": ONLINE}
    assert [registry.views(104.0)[name].since for name in "ab"] == [103.0, 103.0]


def test_a_later_start_is_not_ended_by_the_will_of_an_earlier_one() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", one_of("a", OFFLINE, everybody=True), 100.0)
    registry.note_announcement("b", one_of("b", instance="2"), 101.0)
    assert registry.states(101.0) == {"a": OFFLINE, "b": ONLINE}
    registry.note_announcement("a", one_of("a", instance="2"), 102.0)
    registry.note_announcement("a", one_of("a", OFFLINE, everybody=True), 103.0)
    assert registry.states(103.0) == {"a": ONLINE, "b": ONLINE}


def test_nodes_whose_will_was_forgotten_are_silent_at_least() -> None:
    registry = NodeRegistry()
    registry.note_announcement("b", one_of("b"), 100.0)
    registry.note_announcement("a", one_of("a", OFFLINE, everybody=True), 101.0)
    assert registry.forget("a", 102.0)
    assert registry.states(102.0 + SILENT_SECONDS) == {"b": SILENT}


def test_a_birth_for_everybody_is_none() -> None:
    registry = NodeRegistry()
    wrong = one_of("a", OFFLINE, everybody=True).replace(b"gone", b"online")
    assert not registry.note_announcement("a", wrong, 100.0)
    assert (registry.bad, registry.views(100.0)) == (1, {})


# ── two nodes of one name ────────────────────────────────────────────────────────────────────────


def of(instance: str, state: str = ONLINE) -> Announcement:
    return Announcement(state, instance, Node("a", "site"))


def test_the_later_one_gives_way_and_both_say_so() -> None:
    first, second = Rivals("a", "1", 25.0), Rivals("a", "2", 25.0)
    first.note(of("2"), 0.0)
    second.note(of("1"), 0.0)
    assert not first.yields(1.0)
    assert second.yields(1.0)
    assert "another node is called a" in first.problem(1.0)
    assert "another node is called a" in second.problem(1.0)


def test_it_is_over_when_the_other_is_gone_or_not_heard_for_long() -> None:
    rivals = Rivals("a", "5", 25.0)
    rivals.note(of("1"), 0.0)
    rivals.note(of("2", OFFLINE), 1.0)
    rivals.note(of("9"), 1.0)
    rivals.note(of("5"), 1.0)
    assert rivals.yields(24.0)
    assert not rivals.yields(25.0)
    rivals.note(of("1"), 30.0)
    rivals.note(of("1", OFFLINE), 31.0)
    assert not rivals.yields(31.0)
    assert rivals.problem(31.0) == ""


def test_instances_sort_by_their_start() -> None:
    made = [new_instance() for _ in range(50)]
    assert len(set(made)) == 50
    assert [name[:12] for name in made] == sorted(name[:12] for name in made)
    assert all(name.isalnum() for name in made)


# ── what is told together, and what is not new ───────────────────────────────────────────────────


def test_a_message_may_tell_of_several_nodes() -> None:
    registry = NodeRegistry()
    for name in "ab":
        registry.note_announcement(name, one_of(name), 100.0)
    jobs = {"jobs": [Observed("x", "1", "running").as_json()]}
    payload = write_object(statuses_payload(1.0, "1", {"a": {}, "b": jobs}))
    assert registry.note_status("a", payload, 101.0)
    assert {name: list(view.jobs) for name, view in registry.views(101.0).items()} == {
        "a": [],
        "b": ["x"],
    }
    assert not registry.note_status("a", payload, 102.0)


def test_a_node_is_reached_through_the_one_it_names() -> None:
    registry = NodeRegistry()
    born_ = Announcement(ONLINE, "1", Node("b", "gateway"), through="a").encode()
    registry.note_announcement("b", born_, 100.0)
    assert (registry.through("b"), registry.through("a")) == ("a", "")
    registry.note_announcement("c", born_.replace(b'"b"', b'"c"').replace(b'"a"', b'"x/y"'), 100.0)
    assert (registry.views(100.0).keys(), registry.bad) == ({"b"}, 1)


def test_a_view_is_made_anew_only_when_there_is_something_new() -> None:
    registry = NodeRegistry()
    registry.note_announcement("a", announce(), 100.0)
    registry.note_announcement("b", one_of("b", instance="2"), 100.0)
    registry.note_status("a", report("1", "x"), 100.0)
    before = registry.views(101.0)
    assert registry.views(102.0)["a"] is before["a"]
    registry.note_status("a", report("1", "x", "y"), 103.0)
    after = registry.views(103.0)
    assert after["a"].jobs.keys() == {"x", "y"}
    assert after["b"] is before["b"]
    assert registry.views(103.0 + SILENT_SECONDS)["a"].state == SILENT
    registry.note_status("a", b"", 104.0)
    assert registry.views(104.0)["a"].jobs == {}
