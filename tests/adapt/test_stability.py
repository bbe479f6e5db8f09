"""Scores of stability by hand and by property, and one round of replication."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.adapt.replication.stability import (
    DAY,
    NodeHistory,
    Placement,
    Replica,
    Replicas,
    RoundLimits,
    choose,
    instability,
    most_stable,
    period,
    stability,
)
from fogline.adapt.replication.uncopied import find_uncopied
from fogline.common.errors import DataError

NOW = 30 * DAY
TIMES = st.floats(0, NOW)
HISTORIES = st.builds(
    NodeHistory,
    st.floats(0, NOW / 2),
    st.lists(TIMES, max_size=5).map(tuple),
    st.lists(TIMES, max_size=5).map(tuple),
)
NAMES = "abcdefgh"


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("days_ago", "name"),
    [(0, "new"), (2, "new"), (2.1, "mid"), (7, "mid"), (7.1, "old"), (-1, "new")],
)
def test_failures_fall_into_three_periods(days_ago: float, name: str) -> None:
    assert period(NOW - days_ago * DAY, NOW) == name


def test_instability_by_hand() -> None:
    """Two old failures (a = 0.5 · 2), one mid (1 · 1), two new ones (2 · 2)."""
    fails = tuple(NOW - days * DAY for days in (20, 10, 5, 1, 0.5))
    expected = (1 / 10 + 1 / 10 + 1 / 5 + 4 / 4 + 4 / 0.5) / DAY
    assert instability(NodeHistory(0, fails), NOW) == pytest.approx(expected)


def test_stability_by_hand() -> None:
    history = NodeHistory(NOW - 100, (NOW - 50, NOW - 40), (NOW - 45, NOW - 35, NOW - 5))
    assert stability(history, NOW) == -(3 + 3 * 2) * 100


def test_a_spotless_node_scores_zero_on_both() -> None:
    assert instability(NodeHistory(0), NOW) == 0
    assert stability(NodeHistory(0), NOW) == 0


@pytest.mark.parametrize(
    "history",
    [
        NodeHistory(0, (5.0, 5.0)),
        NodeHistory(0, (0.0,)),
        NodeHistory(NOW + 5, (NOW, NOW + 9)),
        NodeHistory(100, (3.0, 50.0)),
    ],
    ids=["same instant", "at the start", "in the future", "before the start"],
)
def test_odd_clocks_count_as_unstable(history: NodeHistory) -> None:
    assert math.isfinite(instability(history, NOW))
    assert instability(history, NOW) >= 0.5
    assert stability(history, NOW) < 0


@given(HISTORIES, TIMES)
def test_one_more_failure_never_lowers_instability(history: NodeHistory, fail: float) -> None:
    more = NodeHistory(history.start, (*history.fails, fail), history.restarts)
    before, after = instability(history, NOW), instability(more, NOW)
    assert after > 0
    assert after >= before or after == pytest.approx(before)


@given(HISTORIES, TIMES)
def test_one_more_failure_or_restart_lowers_stability(history: NodeHistory, time: float) -> None:
    failed = NodeHistory(history.start, (*history.fails, time), history.restarts)
    restarted = NodeHistory(history.start, history.fails, (*history.restarts, time))
    assert stability(failed, NOW) < stability(restarted, NOW) < stability(history, NOW) + 1e-9


@given(st.lists(st.floats(1, DAY), min_size=1, max_size=5).map(tuple))
def test_the_same_failures_weigh_more_the_more_recent_they_are(fails: tuple[float, ...]) -> None:
    history = NodeHistory(0, fails)
    new, mid, old = (instability(history, days * DAY) for days in (1.5, 4, 20))
    assert new == pytest.approx(2 * mid)
    assert mid == pytest.approx(2 * old)


@given(HISTORIES)
def test_order_of_times_does_not_matter(history: NodeHistory) -> None:
    turned = NodeHistory(history.start, history.fails[::-1], history.restarts[::-1])
    assert turned == history


# ── one round ────────────────────────────────────────────────────────────────────────────────────


def failing(*days_ago: float) -> NodeHistory:
    return NodeHistory(0, tuple(NOW - days * DAY for days in days_ago))


CLUSTER = {
    "bad": failing(3, 2.5, 2.2),
    "worse": failing(3, 2.9, 2.8, 2.7),
    "good": NodeHistory(0),
    "fine": NodeHistory(5),
    "young": NodeHistory(9 * DAY),
}
SIZES = dict.fromkeys(CLUSTER, 100)


def test_the_worst_goes_to_the_best_and_each_destination_takes_one() -> None:
    assert choose(CLUSTER, Replicas(SIZES), RoundLimits(nodes=2), NOW) == (
        Placement("worse", "good", 100, False),
        Placement("bad", "fine", 100, False),
    )


def origins(*given: Any) -> list[str]:
    return [placement.origin for placement in choose(*given)]


def test_who_was_chosen_recently_rests() -> None:
    replicas = Replicas(SIZES, chosen={"worse": NOW - DAY / 2, "bad": NOW - 2 * DAY})
    assert origins(CLUSTER, replicas, RoundLimits(), NOW) == ["bad"]


def test_who_has_enough_replicas_is_not_chosen() -> None:
    copies = (Replica("worse", "good", 1), Replica("worse", "fine", 1))
    assert origins(CLUSTER, Replicas(SIZES, copies), RoundLimits(outgoing=2), NOW) == ["bad"]


def test_replicas_for_queries_are_not_counted() -> None:
    copies = tuple(Replica("worse", name, 1, outgoing=False) for name in ("good", "fine", "young"))
    assert origins(CLUSTER, Replicas(SIZES, copies), RoundLimits(), NOW) == ["worse", "bad"]


def test_a_part_in_the_better_half_is_completed_first() -> None:
    replicas = Replicas(SIZES, (Replica("worse", "fine", 30),))
    first, second = choose(CLUSTER, replicas, RoundLimits(nodes=3), NOW)
    assert first == Placement("worse", "fine", 70, True)
    assert second == Placement("bad", "good", 100, False)


def test_a_part_in_the_lower_half_changes_nothing() -> None:
    replicas = Replicas(SIZES, (Replica("worse", "young", 30),))
    assert choose(CLUSTER, replicas, RoundLimits(nodes=3), NOW)[0].destination == "good"


def test_a_full_replica_is_not_sent_again() -> None:
    replicas = Replicas(SIZES, (Replica("worse", "good", 100),))
    assert choose(CLUSTER, replicas, RoundLimits(nodes=3), NOW)[0].destination == "fine"


def test_a_full_destination_is_passed_over() -> None:
    replicas = Replicas(SIZES, (Replica("young", "good", 50),))
    limits = RoundLimits(nodes=3, capacity={"good": 149}, otherwise=100)
    assert choose(CLUSTER, replicas, limits, NOW)[0].destination == "fine"


def test_what_fits_nowhere_as_a_whole_goes_in_part_to_who_has_most_room() -> None:
    limits = RoundLimits(nodes=1, capacity={"fine": 60, "good": 50}, otherwise=0)
    whole = Replicas(SIZES)
    assert choose(CLUSTER, whole, limits, NOW) == ()
    parts = Replicas(SIZES, pieces={"worse": 10, "bad": 61})
    wide = replace(limits, nodes=3)
    assert choose(CLUSTER, parts, wide, NOW) == (Placement("worse", "fine", 60, False, False),)
    room = replace(limits, nodes=3, otherwise=100)
    assert choose(CLUSTER, parts, room, NOW)[0] == Placement("worse", "young", 100, False)


def test_a_node_that_nobody_has_room_for_does_not_keep_others_from_a_copy() -> None:
    replicas = Replicas({**SIZES, "worse": 1000})
    placed = choose(CLUSTER, replicas, RoundLimits(nodes=1, otherwise=100), NOW)
    assert placed == (Placement("bad", "good", 100, False),)


def test_why_data_is_not_safe_elsewhere() -> None:
    def why(replicas: Replicas, nodes: int = 3) -> dict[str, str]:
        return find_uncopied(CLUSTER, replicas, RoundLimits(nodes), NOW)

    large = Replicas({**SIZES, "worse": 300 * 2**20})
    assert why(large)["worse"] == (
        "no copy: it stores 300.0 MB, and no site can take more than 256.0 MB of copies"
        " (capacity_megabytes)"
    )
    part = Replicas(large.sizes, (Replica("worse", "good", 5),))
    assert why(part)["worse"].startswith("only a part has a copy: it stores 300.0 MB")
    assert why(Replicas(SIZES, (Replica("worse", "good", 100),))) == {
        "bad": "no copy: others come first in this round"
    }
    assert "settings" in why(Replicas(SIZES), 0)["bad"]
    assert "reached" in why(Replicas(SIZES, offline=frozenset({"bad"})))["bad"]
    assert "rests" in why(Replicas(SIZES, chosen={"bad": NOW}))["bad"]
    everybody = frozenset(("bad", name) for name in CLUSTER)
    assert "refused" in why(Replicas(SIZES, refused=everybody))["bad"]
    shaky = {name: failing(3, 2.5) for name in CLUSTER}
    told = find_uncopied(shaky, Replicas(SIZES), RoundLimits(), NOW)
    assert set(told) == set(CLUSTER)
    assert all("failed more than once" in text for text in told.values())


def test_nodes_that_are_away_neither_give_nor_take() -> None:
    replicas = Replicas(SIZES, offline=frozenset({"worse", "good"}))
    (placed,) = choose(CLUSTER, replicas, RoundLimits(nodes=1), NOW)
    assert (placed.origin, placed.destination) == ("bad", "fine")


def test_one_failure_is_forgiven_when_it_is_not_recent_two_are_not() -> None:
    cluster = {**CLUSTER, "once": failing(20), "today": failing(0.5), "twice": failing(20, 19)}
    pool = most_stable(cluster, Replicas(dict.fromkeys(cluster, 1)), RoundLimits(nodes=5), NOW)
    assert "twice" not in pool
    assert "today" not in pool
    wide = most_stable(cluster, Replicas(dict.fromkeys(cluster, 1)), RoundLimits(nodes=3), NOW)
    assert wide == ["good", "fine", "young"]
    few = {name: cluster[name] for name in ("bad", "worse", "once")}
    assert most_stable(few, Replicas(SIZES), RoundLimits(), NOW) == ["once"]


@pytest.mark.parametrize("starts", [(0.0, 0.0, 0.0), (0.0, 1.0, 2.0), (2.0, 1.0, 0.0)])
def test_three_sites_that_all_failed_once_long_ago_keep_each_other(
    starts: tuple[float, ...],
) -> None:
    now = 40 * DAY
    cluster = {
        name: NodeHistory(start, (now - 30 * DAY,))
        for name, start in zip("abc", starts, strict=True)
    }
    placed = choose(cluster, Replicas(dict.fromkeys("abc", 5)), RoundLimits(), now)
    assert sorted(p.origin for p in placed) == ["a", "b", "c"]
    assert sorted(p.destination for p in placed) == ["a", "b", "c"]


def test_two_sites_that_failed_once_long_ago_keep_each_other() -> None:
    cluster = {"a": failing(9), "b": failing(8)}
    placed = choose(cluster, Replicas({"a": 1, "b": 1}), RoundLimits(), NOW)
    assert {(p.origin, p.destination) for p in placed} == {("a", "b"), ("b", "a")}


def test_a_cluster_without_failures_copies_nothing() -> None:
    cluster = dict.fromkeys(NAMES, NodeHistory(0))
    assert choose(cluster, Replicas(dict.fromkeys(NAMES, 5)), RoundLimits(), NOW) == ()


@st.composite
def rounds(draw: st.DrawFn) -> tuple[dict[str, NodeHistory], Replicas, RoundLimits]:
    size = st.integers(0, 50)
    cluster = {name: draw(HISTORIES) for name in NAMES[: draw(st.integers(0, len(NAMES)))]}
    pairs = [(a, b) for a in cluster for b in cluster if a != b]
    made = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)) if pairs else []
    copies = tuple(Replica(a, b, draw(size)) for a, b in made)
    chosen = draw(st.dictionaries(st.sampled_from(NAMES), TIMES, max_size=3))
    limits = RoundLimits(
        nodes=draw(st.integers(0, 5)),
        outgoing=draw(st.integers(0, 3)),
        capacity=draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 100))),
        otherwise=draw(st.integers(0, 100)),
    )
    offline = draw(st.frozensets(st.sampled_from(NAMES), max_size=2))
    pieces = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 50)))
    sizes = {n: draw(size) for n in cluster}
    return cluster, Replicas(sizes, copies, chosen, offline, pieces=pieces), limits


@given(rounds())
def test_a_round_keeps_every_limit(
    case: tuple[dict[str, NodeHistory], Replicas, RoundLimits],
) -> None:
    cluster, replicas, limits = case
    placed = choose(cluster, replicas, limits, NOW)
    origins = [p.origin for p in placed]
    destinations = [p.destination for p in placed]
    assert len(placed) <= limits.nodes
    assert len(set(origins)) == len(origins)
    assert len(set(destinations)) == len(destinations)
    assert not set(destinations) & {n for n, at in replicas.chosen.items() if NOW - at < DAY}
    assert not (set(origins) | set(destinations)) & replicas.offline
    for p in placed:
        assert p.origin != p.destination
        assert cluster[p.origin].fails
        assert len(cluster[p.destination].fails) <= 1
        rest = replicas.sizes[p.origin] - replicas.held_bytes(p.origin, p.destination)
        assert p.size == rest > 0 if p.whole else replicas.pieces[p.origin] <= p.size < rest
        used = sum(c.size for c in replicas.copies if c.destination == p.destination)
        assert used + p.size <= limits.capacity.get(p.destination, limits.otherwise)
        assert sum(c.origin == p.origin for c in replicas.copies) < limits.outgoing


# ── hostile input ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
def test_times_that_are_no_numbers_are_refused(time: float) -> None:
    for make in (
        lambda: NodeHistory(time),
        lambda: NodeHistory(0, (1.0, time)),
        lambda: NodeHistory(0, (), (time,)),
        lambda: Replicas({}, chosen={"a": time}),
        lambda: choose({}, Replicas({}), RoundLimits(), time),
    ):
        with pytest.raises(DataError):
            make()


def test_impossible_replicas_and_limits_are_refused() -> None:
    copy = Replica("a", "b", 1)
    for make in (
        lambda: Replica("a", "a", 1),
        lambda: Replica("a", "b", -1),
        lambda: Replicas({"a": -1}),
        lambda: Replicas({}, (copy, copy)),
        lambda: RoundLimits(nodes=-1),
        lambda: RoundLimits(capacity={"a": -1}),
        lambda: RoundLimits(recent=math.nan),
        lambda: choose({"a": NodeHistory(0)}, Replicas({}), RoundLimits(), NOW),
    ):
        with pytest.raises(DataError):
            make()


def test_huge_histories_and_clusters_are_fine() -> None:
    long = NodeHistory(-1e300, tuple(range(100_000)))
    assert 0 < instability(long, 1e300) < math.inf
    many = {f"n{i}": NodeHistory(0, (float(i),) * (i % 3)) for i in range(2000)}
    assert (
        len(choose(many, Replicas(dict.fromkeys(many, 2**60)), RoundLimits(otherwise=2**62), NOW))
        == 3
    )
