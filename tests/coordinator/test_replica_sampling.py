"""The second step in force: whose values are sent in part, how much of them, and for how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.adapt.replication.query import evaluate
from fogline.common.errors import DataError
from fogline.coordinator.nodes.replicas import QUERY, Decision
from fogline.coordinator.nodes.store_reports import Report, read_report
from fogline.coordinator.replication.config import ReplicaConfig
from fogline.coordinator.replication.fabric_jobs import FabricJob, FabricStream, fabric_streams
from fogline.coordinator.replication.queries import reading
from fogline.coordinator.replication.sampling import find_sample_fractions
from fogline.coordinator.replication.stability import Situation
from fogline.model.sample_fractions import read_sample_fractions

pytestmark = pytest.mark.site

ON = ReplicaConfig(sampling=True, least_quality=0.6)
STREAM = FabricStream("s", ("cpu_%",), fraction=0.5, reducible=True)
JOB = FabricJob("j", "near", (STREAM,))


def situation(latencies: dict[str, float], decisions: tuple[Decision, ...] = ()) -> Situation:
    """A job at `near`, and nodes with values so far away."""
    metrics = {"cpu_user": 1000}
    reports = {name: Report("id", 1000, metrics) for name in latencies}
    reports["near"] = Report("id", 5, {"mem": 5})
    links = {("near", name): latency for name, latency in latencies.items()}
    return Situation(1.0, reports, frozenset(reports), decisions=decisions, links=links)


def test_what_is_far_is_sent_in_part() -> None:
    found = find_sample_fractions(situation({"far": 99.0, "close": 9.0}), [JOB], ON, {})
    assert set(found) == {"j"}
    assert found["j"] == {"s": {"far": pytest.approx(0.1)}}, "0.2 of the 0.5 that SAMPLE leaves"


def test_only_where_it_is_wanted_and_harmless() -> None:
    here = situation({"far": 99.0, "close": 9.0})
    assert find_sample_fractions(here, [JOB], replace(ON, sampling=False), {}) == {}
    assert find_sample_fractions(here, [JOB], replace(ON, least_quality=1.0), {}) == {}
    exact = FabricJob("j", "near", (STREAM, FabricStream("t", ("cpu_%",))))
    assert find_sample_fractions(here, [exact], ON, {}) == {}
    assert find_sample_fractions(here, [], ON, {"j": {"s": {"far": 0.1}}}) == {}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.1, 500), min_size=1),
    st.floats(0.1, 0.95),
)
def test_f_stays_l_falls_and_the_mean_is_q(latencies: dict[str, float], least: float) -> None:
    config = replace(ON, least_quality=least)
    here = situation(latencies)
    told = find_sample_fractions(here, [JOB], config, {}).get("j", {}).get("s", {})
    now = reading(here, JOB, config)
    assert now is not None
    quality = {f"s of {node}": told.get(node, 0.5) / 0.5 for node in latencies}
    assert sum(quality.values()) / len(quality) >= least - 1e-6
    assert all(0.1 - 1e-9 <= share <= 1 for share in quality.values())
    whole, sent = evaluate(now.query, now.nodes), evaluate(now.query, now.nodes, quality)
    assert sent.objective == pytest.approx(whole.objective)
    assert sent.latency <= whole.latency


def test_shares_stay_until_others_are_much_better() -> None:
    first = find_sample_fractions(situation({"far": 99.0, "close": 39.0}), [JOB], ON, {})
    for far, close in ((105.0, 38.0), (92.0, 41.0)):
        jitter = situation({"far": far, "close": close})
        assert find_sample_fractions(jitter, [JOB], ON, {}) != first
        assert find_sample_fractions(jitter, [JOB], ON, first) == first
    nearer = situation({"far": 9.0, "close": 9.0})
    moved = find_sample_fractions(nearer, [JOB], ON, first)
    assert moved["j"]["s"] == pytest.approx({"far": 0.3, "close": 0.3})


def test_who_reads_a_copy_is_sent_more_again() -> None:
    """The first step says where, the second how much: a copy beside the job needs no cut."""
    alone = find_sample_fractions(situation({"far": 99.0, "close": 9.0}), [JOB], ON, {})
    copy = (Decision("far", "near", QUERY, "j", ("cpu_%",)),)
    copied = situation({"far": 99.0, "close": 9.0}, copy)
    found = find_sample_fractions(copied, [JOB], ON, alone)["j"]["s"]
    assert set(found) == {"close"}, "which is farther than the copy now"


def test_which_streams_may_be_cut() -> None:
    def reducible(insight: str) -> list[bool]:
        text = f"s = STREAM FROM storageFabric(); i = COMPUTE {insight};"
        return [stream.reducible for stream in fabric_streams(text)]

    assert reducible("AVG(s, 10 s) EVERY 1 s WITH SAMPLE 0.5") == [True]
    assert reducible("AVG(s, 10 s) EVERY 1 s") == [False]
    for scaled in ("COUNT", "SUM"):
        assert reducible(f"{scaled}(s, 10 s) EVERY 1 s WITH SAMPLE 0.5") == [False]


@pytest.mark.parametrize(
    "told",
    [5, [], {"j": 5}, {"j": {"s": []}}, {"j": {"s": {"n": 0}}}, {"j": {"s": {"n": 1.5}}},
     {"j": {"s": {"n": True}}}, {"j": {"s": {"n": "1"}}}, {"x" * 2000: {}}, None],
)  # fmt: skip
def test_shares_that_are_none(told: Any) -> None:
    with pytest.raises(DataError):
        read_sample_fractions(told)
    answer = {"id": "i", "bytes": 1, "metrics": {}, "copies": {}}
    assert read_report(answer).sample_fractions == {}
    with pytest.raises(DataError):
        read_report(answer | {"shares": told})
