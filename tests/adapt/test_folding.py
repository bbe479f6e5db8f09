"""A history that is kept small has the scores of the whole one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.adapt.replication.folding import fold_history
from fogline.adapt.replication.stability import (
    DAY,
    NodeHistory,
    Past,
    Replicas,
    RoundLimits,
    choose,
    instability,
    most_stable,
    stability,
)
from fogline.common.errors import DataError

NOW = 100 * DAY
OLD = st.floats(0, 92 * DAY)
ANY = st.floats(0, NOW)


@given(st.lists(OLD, max_size=30), st.lists(ANY, max_size=5), st.lists(ANY, max_size=20))
def test_folding_what_is_old_changes_no_score(
    old: list[float], new: list[float], restarts: list[float]
) -> None:
    whole = NodeHistory(0.0, (*old, *new), tuple(restarts))
    recent = sum(1 for fail in whole.fails if NOW - fail <= 7 * DAY)
    small = fold_history(whole, max(recent, 1))
    assert len(small.fails) <= max(recent, 1)
    assert len(small.restarts) <= max(recent, 1)
    assert small.failures == len(whole.fails)
    assert instability(small, NOW) == pytest.approx(instability(whole, NOW))
    assert stability(small, NOW) == stability(whole, NOW)


@given(st.lists(ANY, min_size=1, max_size=30), st.integers(0, 10), st.integers(0, 10))
def test_folding_again_is_folding_once(fails: list[float], first: int, second: int) -> None:
    whole = NodeHistory(0.0, tuple(fails), tuple(fails))
    twice = fold_history(fold_history(whole, first + second), second)
    once = fold_history(whole, second)
    assert twice.fails == once.fails
    assert twice.past.closeness == pytest.approx(once.past.closeness)
    assert (twice.past.fails, twice.past.restarts) == (once.past.fails, once.past.restarts)
    assert twice.past.last == once.past.last


def test_a_node_that_fails_all_the_time_stays_the_most_unstable() -> None:
    often = NodeHistory(0.0, tuple(NOW - 60.0 * n for n in range(5000)))
    seldom = NodeHistory(0.0, (NOW - DAY, NOW - 2 * DAY))
    assert instability(fold_history(often, 1000), NOW) > instability(seldom, NOW)


def test_failures_of_the_past_keep_a_node_from_taking_data() -> None:
    shaky = NodeHistory(0.0, past=Past(fails=2, closeness=0.1, last=5.0))
    histories = {"a": NodeHistory(0.0, (1.0,)), "b": shaky, "c": NodeHistory(0.0)}
    replicas = Replicas(dict.fromkeys(histories, 10))
    assert most_stable(histories, replicas, RoundLimits(nodes=1, recent=0), NOW) == ["c"]


def test_a_refused_destination_is_passed_over() -> None:
    histories = {"a": NodeHistory(0.0, (1.0,)), "b": NodeHistory(0.0), "c": NodeHistory(1.0)}
    sizes = dict.fromkeys(histories, 10)
    free = choose(histories, Replicas(sizes), RoundLimits(), NOW)
    assert [(p.origin, p.destination) for p in free] == [("a", "b")]
    refused = Replicas(sizes, refused=frozenset({("a", "b")}))
    other = choose(histories, refused, RoundLimits(), NOW)
    assert [(p.origin, p.destination) for p in other] == [("a", "c")]


@pytest.mark.parametrize("past", [Past(closeness=float("nan")), Past(last=float("inf"))])
def test_sums_that_are_no_numbers(past: Past) -> None:
    with pytest.raises(DataError):
        NodeHistory(0.0, past=past)
