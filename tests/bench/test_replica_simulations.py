"""The two simulations in small: what they are there to show holds, and they repeat themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fogline.adapt.replication.stability import RoundLimits
from fogline.bench import replica_queries, replica_stability
from fogline.bench.replica_queries import Experiment, Gains
from fogline.bench.replica_stability import Scenario, StabilityOutcome, document_rates, zipf_rates
from fogline.common.errors import DataError

pytestmark = pytest.mark.site

SMALL = Scenario(rates=(0.01, 0.006, *(0.0002,) * 13), steps=2000, disk_loss=0.3)


@pytest.fixture(scope="module")
def copied() -> StabilityOutcome:
    return replica_stability.simulate(SMALL, seed=3)


@pytest.fixture(scope="module")
def alone() -> StabilityOutcome:
    return replica_stability.simulate(replace(SMALL, replicate=False), seed=3)


def test_the_same_failures_with_and_without_copies(
    copied: StabilityOutcome, alone: StabilityOutcome
) -> None:
    assert copied.histories == alone.histories
    assert alone.copied == 0 < copied.copied
    assert replica_stability.simulate(SMALL, seed=3) == copied


def test_unstable_nodes_are_found(copied: StabilityOutcome) -> None:
    last = copied.scores[-1]
    assert set(sorted(range(len(last)), key=lambda n: -last[n])[:2]) == {0, 1}
    assert all(copied.chosen[n] > 0 for n in (0, 1))


def test_copies_keep_data_readable_and_alive(
    copied: StabilityOutcome, alone: StabilityOutcome
) -> None:
    assert alone.reachable() == 0
    assert copied.reachable((0, 1)) > 0.3
    assert copied.survived > alone.survived


def test_replicas_that_follow_keep_more(copied: StabilityOutcome) -> None:
    following = replica_stability.simulate(replace(SMALL, follow=True), seed=3)
    assert following.reachable() > copied.reachable()
    assert following.survived >= copied.survived


def test_without_room_nothing_is_copied() -> None:
    full = replace(SMALL, limits=RoundLimits(otherwise=0))
    assert replica_stability.simulate(full, seed=3).copied == 0


def test_without_failures_nothing_happens() -> None:
    calm = replica_stability.simulate(Scenario((0.0,) * 4, steps=200), seed=1)
    assert (calm.copied, calm.survived, calm.reachable()) == (0, 1, 0)


def test_zipf_rates_have_a_few_bad_nodes_among_many_good_ones() -> None:
    rates = zipf_rates(500, seed=1)
    assert rates == zipf_rates(500, seed=1)
    assert sum(rate <= 0.0002 for rate in rates) > 300
    assert 0 < sum(rate >= 0.002 for rate in rates) < 50
    assert max(rates) <= 0.01


def test_the_document_s_cluster_has_zipf_rates_with_three_bad_nodes() -> None:
    rates = document_rates()
    assert (len(rates), sum(0.0025 <= rate <= 0.009 for rate in rates)) == (50, 3)
    assert max(rates[3:]) < 0.001
    assert sum(rate < 0.00025 for rate in rates) > 40


def test_in_the_document_s_cluster_bad_nodes_are_found_and_data_survives() -> None:
    """50 nodes, 5,000 steps, Zipf failures, of which a fifth lose the disk."""
    scenario = Scenario(document_rates(), disk_loss=0.2, follow=True)
    copied = replica_stability.simulate(scenario, seed=2022)
    alone = replica_stability.simulate(replace(scenario, replicate=False), seed=2022)
    orders = [sorted(range(50), key=lambda n: -row[n]) for row in copied.scores]
    later = orders[len(orders) // 10 :]
    assert sum(0 in order[:3] for order in later) > 0.9 * len(later)
    assert sum(len({0, 1, 2} & set(order[:3])) for order in later) > 2 * len(later)
    assert all(copied.chosen[n] > 0 for n in (0, 1, 2))
    assert alone.reachable() == 0
    assert copied.reachable((0, 1, 2)) > 0.8
    assert copied.survived > alone.survived


CLEARLY_BAD = 0.002
"""Ten failures in 5,000 steps on average. Below that chance alone decides who fails most."""


@pytest.mark.parametrize("seed", range(1, 11))
def test_rates_that_nobody_picked(seed: int) -> None:
    """As large as the document's cluster, with Zipf rates as they come from the first ten seeds.

    The bounds hold for any draw, not for the average one: a clearly bad node is found, and no
    cluster is worse off with copies. Of the seeds up to 30 none is outside them.
    """
    scenario = Scenario(tuple(zipf_rates(50, seed)), disk_loss=0.2, follow=True)
    copied = replica_stability.simulate(scenario, seed)
    alone = replica_stability.simulate(replace(scenario, replicate=False), seed)
    bad = [node for node, rate in enumerate(scenario.rates) if rate >= CLEARLY_BAD]
    later = copied.scores[len(copied.scores) // 10 :]
    if bad:
        first = [sorted(range(50), key=lambda n: -row[n])[:3] for row in later]
        assert sum(0 in order for order in first) > 0.75 * len(later)
        assert copied.reachable(bad) > 0.6
    assert all(copied.chosen[node] > 0 for node in bad)
    assert copied.histories == alone.histories
    assert alone.reachable() == 0 < 0.35 < copied.reachable()
    assert 0.75 < alone.survived < copied.survived
    assert copied.survived > 0.9


@pytest.fixture(scope="module")
def gains() -> dict[int, Gains]:
    return {r: replica_queries.simulate(Experiment(25, r), runs=60, seed=5) for r in (3, 20)}


def test_more_replicas_pay_more_often(gains: dict[int, Gains]) -> None:
    assert gains[3].share < gains[20].share
    assert all(found.proven for found in gains.values())


def test_where_replicas_pay_both_l_and_f_fall(gains: dict[int, Gains]) -> None:
    for gain in gains[20].found:
        assert 0 < gain.objective <= gain.latency <= 100
        assert 0 <= gain.degraded <= 90
        assert gain.staleness_ratio >= 0


def test_runs_repeat_themselves(gains: dict[int, Gains]) -> None:
    assert replica_queries.simulate(Experiment(25, 3), runs=60, seed=5) == gains[3]


def test_without_replicas_nothing_pays() -> None:
    found = replica_queries.simulate(Experiment(25, 0), runs=5, seed=1)
    assert (found.share, found.mean("latency"), found.median("objective")) == (0, 0, 0)


def test_impossible_settings_are_refused() -> None:
    for make in (
        lambda: Experiment(10, 5, sources=10),
        lambda: Experiment(10, 10, sources=3),
        lambda: Experiment(10, 5, sources=3, zipf=1.0),
        lambda: Scenario(()),
        lambda: Scenario((1.5,)),
        lambda: Scenario((0.5,), steps=0),
    ):
        with pytest.raises(DataError):
            make()
