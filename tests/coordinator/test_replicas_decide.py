"""Decisions about copies, as pure functions; what nodes tell, however broken; both databases."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.adapt.replication.stability import NodeHistory
from fogline.common.errors import DataError, NotFoundError, UsageError
from fogline.coordinator.config import parse_config
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.nodes.replicas import (
    MANUAL,
    QUERY,
    REFUSED,
    STABILITY,
    Decision,
    covers,
    desired_copies,
    holds,
    to_hold,
    unite_metrics,
)
from fogline.coordinator.nodes.store_reports import (
    Held,
    Metrics,
    Report,
    matches,
    read_metrics,
    read_report,
)
from fogline.coordinator.replication.config import ReplicaConfig
from fogline.coordinator.replication.decisions import Decisions
from fogline.coordinator.replication.fabric_jobs import FabricJob, FabricStream, fabric_job
from fogline.coordinator.replication.node_stores import StoreView
from fogline.coordinator.replication.queries import by_queries
from fogline.coordinator.replication.stability import (
    MOST_NAMED,
    Situation,
    by_stability,
    without_copy,
)
from fogline.coordinator.replication.staleness import behind
from fogline.coordinator.replication.status import copy_statuses
from fogline.coordinator.repository.schema import copies as copies_table
from fogline.coordinator.repository.store import Store
from fogline.model.jobs import Job, Query, Steps

NOW = 1_000_000.0
HOUR, MEGABYTE = 3600.0, 1 << 20
CONFIG = ReplicaConfig()

names = st.lists(st.sampled_from(["a", "a%", "ab", "ab%", "b", "%", "a\\%", "abc"]), max_size=5)
metrics = st.none() | names.map(tuple)


def held(metrics: Metrics, until: float | None, size: int) -> Held:
    return Held(metrics, until, size, metrics)


def report(size: int, *, copies: dict[str, Held] | None = None, **sizes: int) -> Report:
    return Report("id", size, sizes or {"cpu_user": size}, copies or {})


# ── joining ──────────────────────────────────────────────────────────────────────────────────────


@given(metrics, metrics, st.sampled_from(["a", "ab", "abc", "b", "a%", "xyz"]))
def test_united_metrics_are_those_of_either(one: Metrics, other: Metrics, name: str) -> None:
    both = unite_metrics(one, other)

    def holds_it(some: Metrics) -> bool:
        return some is None or any(matches(pattern, name) for pattern in some)

    assert holds_it(both) == (holds_it(one) or holds_it(other))
    assert both == unite_metrics(other, one) == unite_metrics(both, one)
    assert covers(both, one)
    assert covers(both, other)


def test_all_values_win_over_some_and_refusals_are_no_wishes() -> None:
    found = desired_copies(
        [
            Decision("a", "x", QUERY, "j1", ("cpu_%",)),
            Decision("a", "x", MANUAL, metrics=("cpu_user", "mem")),
            Decision("b", "x", QUERY, "j1", ("cpu",)),
            Decision("b", "x", STABILITY),
            Decision("c", "x", REFUSED),
        ]
    )
    assert found == {"x": {"a": ("cpu_%", "mem"), "b": None}}


def test_a_copy_that_may_be_the_last_one_is_kept() -> None:
    copies = {
        "gone": held(None, None, 5),
        "less": held(("a", "b"), None, 5),
        "here": held(None, None, 5),
        "x": held(None, None, 5),
    }
    there = report(9, copies=copies)
    told = to_hold({"less": ("a",), "new": None, "x": None}, there, {"here": True}, "x")
    assert told == {"gone": None, "less": ("a", "b"), "new": None}
    assert not holds(there, told)
    may = dict.fromkeys(copies, True)
    assert to_hold({}, there, may, "x") == {}
    assert holds(report(9, copies={"a": held(("q", "p"), None, 0)}), {"a": ("p", "q")})


# ── what nodes tell ──────────────────────────────────────────────────────────────────────────────

GOOD: dict[str, Any] = {
    "id": "s1",
    "bytes": 10,
    "metrics": {"cpu": 7, "mem": 3},
    "copies": {"b": {"metrics": ["x%"], "until": 1_700_000_000_000_000, "bytes": 4}},
}


def test_a_report_is_read() -> None:
    found = read_report(GOOD)
    assert found.copies["b"] == held(("x%",), 1_700_000_000.0, 4)
    assert found.size_of(("c%",)) == 7
    assert found.size_of(None) == found.size_of(("%",)) == 10
    making: dict[str, Any] = {"b": {"metrics": [], "wanted": None, "until": None, "bytes": 0}}
    found = read_report(GOOD | {"copies": making})
    assert found.copies["b"] == Held((), None, 0, None)
    assert holds(found, {"b": None})
    text = {"b": {"metrics": None, "until": "2023-11-14T22:13:20Z", "bytes": 4}}
    assert read_report(GOOD | {"copies": text}).copies["b"] == held(None, 1_700_000_000.0, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 7},
        {"id": ""},
        {"id": "x" * 1000},
        {"bytes": -1},
        {"bytes": 1 << 70},
        {"bytes": 1.5},
        {"bytes": True},
        {"bytes": None},
        {"metrics": ["cpu"]},
        {"metrics": {"cpu": "7"}},
        {"metrics": {"": 1}},
        {"metrics": {"c" * 2000: 1}},
        {"metrics": {"\ud800": 1}},
        {"metrics": {"a\0b": 1}},
        {"metrics": {str(n): 1 for n in range(200_001)}},
        {"copies": None},
        {"copies": {"b": None}},
        {"copies": {"a/b": {"metrics": None, "until": None, "bytes": 1}}},
        {"copies": {"../b": {"metrics": None, "until": None, "bytes": 1}}},
        {"copies": {"b": {"metrics": None, "wanted": 7, "until": None, "bytes": 1}}},
        {"copies": {"b": {"metrics": "x", "until": None, "bytes": 1}}},
        {"copies": {"b": {"metrics": [7], "until": None, "bytes": 1}}},
        {"copies": {"b": {"metrics": None, "until": "soon", "bytes": 1}}},
        {"copies": {"b": {"metrics": None, "until": 10**300, "bytes": 1}}},
        {"copies": {"b": {"metrics": None, "until": True, "bytes": 1}}},
        {"copies": {"b": {"metrics": None, "until": None, "bytes": 10**30}}},
        {"copies": {f"n{n}": {"metrics": None, "bytes": 1} for n in range(10_001)}},
    ],
    ids=lambda wrong: str(wrong)[:40].encode("ascii", "replace").decode(),
)
def test_reports_that_are_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        read_report(GOOD | wrong)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), json_values))
def test_any_answer_is_a_report_or_an_error_of_ours(told: dict[str, Any]) -> None:
    try:
        read_report(GOOD | told)
    except DataError:
        return


@pytest.mark.parametrize("told", ["x", [""], [None], {"a": 1}, 7, ["x" * 5000]])
def test_metrics_that_are_none(told: Any) -> None:
    with pytest.raises(DataError):
        read_metrics(told)


# ── by stability ─────────────────────────────────────────────────────────────────────────────────


def cluster(**more: Any) -> Situation:
    """`bad` has failed; `good` is the oldest."""
    histories = {
        "bad": NodeHistory(0.0, (NOW - 50 * HOUR, NOW - 30 * HOUR)),
        "good": NodeHistory(0.0),
        "young": NodeHistory(NOW - 10),
    }
    reports = {name: report(10 * MEGABYTE) for name in histories}
    given: dict[str, Any] = {"reports": reports, "here": frozenset(reports)}
    return Situation(NOW, **given | {"histories": histories} | more)


def pairs(decisions: tuple[Decision, ...]) -> set[tuple[str, str]]:
    return {item.pair for item in decisions}


def test_the_data_of_an_unstable_node_goes_to_a_stable_one() -> None:
    (made,) = by_stability(cluster(), CONFIG.limits)
    assert (made.pair, made.metrics, made.since) == (("bad", "good"), None, NOW)
    assert made.detail["instability"] > 0 == made.detail["stability"]


def test_a_decision_stays_whatever_the_scores_are_and_is_not_made_twice() -> None:
    first = by_stability(cluster(), CONFIG.limits)
    again = cluster(decisions=first)
    assert by_stability(again, CONFIG.limits) == first
    calm = cluster(decisions=first, histories={})
    assert by_stability(calm, CONFIG.limits) == first
    later = Situation(NOW + 25 * HOUR, again.reports, again.here, again.histories, first)
    assert pairs(by_stability(later, CONFIG.limits)) == {("bad", "good"), ("bad", "young")}


def test_capacity_refusals_and_absence_are_respected() -> None:
    small = ReplicaConfig(capacity_megabytes=9).limits
    assert by_stability(cluster(), small) == ()
    no = (Decision("bad", "good", REFUSED),)
    assert pairs(by_stability(cluster(decisions=no), CONFIG.limits)) == {("bad", "young")}
    alone = cluster(here=frozenset({"bad"}))
    assert by_stability(alone, CONFIG.limits) == ()
    away = cluster(here=frozenset({"good", "young"}))
    assert by_stability(away, CONFIG.limits) == ()


def test_room_counts_what_is_wanted_and_has_not_come_yet() -> None:
    wish = (Decision("young", "good", MANUAL),)
    tight = ReplicaConfig(capacity_megabytes=15).limits
    assert pairs(by_stability(cluster(decisions=wish), tight)) == {("bad", "young")}


def large(decisions: tuple[Decision, ...] = (), hours: float = 0.0) -> Situation:
    """`bad` stores more than anybody may hold; `pay%` is a metric with such a name."""
    base = cluster(decisions=decisions)
    sizes = {
        "cpu": 100 * MEGABYTE,
        "mem": 150 * MEGABYTE,
        "pay%": MEGABYTE,
        "video": 149 * MEGABYTE,
    }
    reports = {**base.reports, "bad": report(400 * MEGABYTE, **sizes)}
    return replace(base, reports=reports, now=NOW + hours * HOUR)


def test_of_an_origin_above_the_capacity_as_many_metrics_are_copied_as_fit() -> None:
    (first,) = by_stability(large(), CONFIG.limits)
    assert (first.pair, first.metrics) == (("bad", "good"), ("cpu", "pay\\%", "video"))
    after = large((first,))
    assert sum(after.room(CONFIG.capacity).values()) == (3 * 256 - 250) * MEGABYTE
    assert without_copy(after, CONFIG.limits)["bad"].startswith("only a part has a copy")
    both = by_stability(large((first,), hours=25), CONFIG.limits)
    assert {item.holder: item.metrics for item in both} == {
        "good": ("cpu", "pay\\%", "video"),
        "young": ("mem",),
    }
    assert by_stability(large(both, hours=50), CONFIG.limits) == both
    roomy = ReplicaConfig(capacity_megabytes=500).limits
    found = by_stability(large(both, hours=75), roomy)
    assert {item.holder: item.metrics for item in found} == {"good": None, "young": ("mem",)}


def test_the_reason_for_no_copy_is_told() -> None:
    small = ReplicaConfig(capacity_megabytes=9).limits
    assert without_copy(cluster(), small) == {
        "bad": "no copy: it stores 10.0 MB, and no site can take more than 9.0 MB of copies"
        " (capacity_megabytes)"
    }
    done = by_stability(cluster(), CONFIG.limits)
    assert without_copy(cluster(decisions=done), CONFIG.limits) == {}


def test_many_metrics_take_no_time() -> None:
    sizes = dict.fromkeys((f"m{n}" for n in range(50_000)), MEGABYTE)
    base = cluster()
    reports = {**base.reports, "bad": report(50_000 * MEGABYTE, **sizes)}
    limits = ReplicaConfig(capacity_megabytes=3e4).limits
    made = by_stability(replace(base, reports=reports), limits)
    assert made[0].metrics is not None
    assert len(made[0].metrics) == MOST_NAMED


def test_copies_for_queries_do_not_keep_an_unstable_node_from_its_own() -> None:
    base = cluster(histories={**cluster().histories, "bad": NodeHistory(0.0, tuple(range(20)))})
    reports = {**base.reports, "bad": report(MEGABYTE, cpu=10), "third": report(1)}
    more = {"reports": reports, "here": frozenset(reports), "histories": base.histories}
    holders = ("good", "young", "third")
    for_queries = tuple(Decision("bad", name, QUERY, "j", ("cpu",)) for name in holders)
    (made,) = by_stability(cluster(decisions=for_queries, **more), CONFIG.limits)
    assert (made.origin, made.metrics, made.detail["completes"]) == ("bad", None, True)
    by_hand = tuple(Decision("bad", name, MANUAL) for name in holders)
    assert by_stability(cluster(decisions=by_hand, **more), CONFIG.limits) == ()


def test_who_holds_a_part_already_goes_first_and_gets_the_rest() -> None:
    base = cluster()
    reports = {**base.reports, "bad": report(10 * MEGABYTE, cpu=4 * MEGABYTE, mem=6 * MEGABYTE)}
    wish = (Decision("bad", "young", QUERY, "j", ("cpu",)),)
    histories = {**base.histories, "third": NodeHistory(0.0)}
    reports["third"] = report(1)
    part = cluster(reports=reports, here=frozenset(reports), histories=histories, decisions=wish)
    found = by_stability(part, CONFIG.limits)
    assert pairs(found) == {("bad", "good")}  # young is not of the better half
    histories["young"] = NodeHistory(-1.0)
    found = by_stability(part, CONFIG.limits)
    assert pairs(found) == {("bad", "young")}
    assert found[0].detail["completes"]
    assert found[0].detail["bytes"] == 6 * MEGABYTE


# ── for queries ──────────────────────────────────────────────────────────────────────────────────

JOB = FabricJob("j", "near", (FabricStream("s", ("cpu_%",)),))


def far(latency: float = 50.0, **more: Any) -> Situation:
    """The job runs at `near`, the values arise at `far`, `middle` is between them."""
    reports = {
        "far": report(10 * MEGABYTE, cpu_user=MEGABYTE, mem=9 * MEGABYTE),
        "middle": report(5, mem=5),
        "near": report(5, mem=5),
    }
    links = {("near", "far"): latency, ("middle", "near"): latency / 4}
    given: dict[str, Any] = {"reports": reports, "here": frozenset(reports), "links": links}
    return Situation(NOW, **given | more)


@pytest.mark.site
def test_a_copy_is_made_where_the_query_runs_if_the_way_is_long() -> None:
    (made,) = by_queries(far(), [JOB], CONFIG)
    assert (made.pair, made.metrics, made.job) == (("far", "near"), ("cpu_%",), "j")
    assert made.detail["objective"] < made.detail["home_objective"]
    assert by_queries(far(0.5), [JOB], CONFIG) == ()


@pytest.mark.site
def test_beta_weighs_the_way_against_being_behind() -> None:
    assert by_queries(far(6.0), [JOB], ReplicaConfig(beta=0.01)) == ()
    assert len(by_queries(far(6.0), [JOB], ReplicaConfig(beta=10))) == 1


@pytest.mark.site
def test_a_copy_stays_while_the_job_runs_and_goes_with_it() -> None:
    first = by_queries(far(), [JOB], CONFIG)
    faster = far(2.5, decisions=first)
    assert by_queries(far(2.5), [JOB], CONFIG) == ()
    assert by_queries(faster, [JOB], CONFIG) == first
    assert by_queries(far(decisions=first), [], CONFIG) == ()
    for gone in ("far", "near"):
        here = frozenset({"far", "near", "middle"} - {gone})
        assert by_queries(far(decisions=first, here=here), [JOB], CONFIG) == first


@pytest.mark.site
def test_it_moves_when_another_place_is_much_better() -> None:
    before = (Decision("far", "middle", QUERY, "j", ("cpu_%",), 5.0),)
    found = by_queries(far(200.0, decisions=before), [JOB], CONFIG)
    assert pairs(found) == {("far", "near")}


@pytest.mark.site
def test_a_share_makes_the_way_shorter() -> None:
    """F = L (β + D) / min q, L = max lat q: read at home at 51 ms, or beside the job at 1 ms."""
    sampled = FabricJob("j", "near", (FabricStream("s", ("cpu_%",), fraction=0.1),))
    (made,) = by_queries(far(), [sampled], CONFIG)
    told = {key: made.detail[key] for key in ("share", "latency_ms", "home_latency_ms")}
    assert told == pytest.approx({"share": 0.1, "latency_ms": 0.1, "home_latency_ms": 5.1})
    assert made.detail["home_objective"] == pytest.approx(51)
    both = FabricJob("j", "near", (*sampled.streams, FabricStream("t", ("mem",))))
    told = by_queries(far(), [both], CONFIG)[0].detail
    assert told["home_latency_ms"] == pytest.approx(51)
    assert told["home_objective"] == pytest.approx(510)


@pytest.mark.site
def test_the_second_step_is_told_to_queries_that_sample() -> None:
    """One source far, one near: with Q = 0.6 the far one may be cut down most."""
    streams = (
        FabricStream("s", ("cpu_%",), fraction=0.5),
        FabricStream("t", ("mem",), fraction=0.5),
    )
    base = far(200.0)
    reports = {**base.reports, "far": replace(base.reports["far"], metrics={"cpu_user": MEGABYTE})}
    job = FabricJob("j", "near", streams)
    no = (Decision("far", "near", REFUSED),)
    situation = far(200.0, reports=reports, decisions=no)
    (made,) = by_queries(situation, [job], ReplicaConfig(least_quality=0.6))
    assert made.pair == ("far", "middle")
    assert made.detail["share"] == 0.5
    assert 0.05 <= made.detail["sampled_share"] < 0.5
    assert made.detail["sampled_latency_ms"] < made.detail["latency_ms"]
    (exact,) = by_queries(situation, [job], ReplicaConfig(least_quality=1))
    assert exact.detail["sampled_share"] == 0.5
    assert "sampled_share" not in by_queries(far(), [JOB], CONFIG)[0].detail


@pytest.mark.site
def test_how_far_a_copy_is_behind_follows_from_the_way() -> None:
    """F at home is 51 · β, at the copy 1 · (β + D)."""
    assert behind(far(), "far", "near", None) == pytest.approx(2.05)
    assert behind(far(links={}), "far", "near", None) == 2.0
    assert behind(far(links={("near", "far"): -1.0}), "far", "near", None) == 2.0
    a_byte_a_second = 10 * MEGABYTE / HOUR * 8 / 1e6
    for mbits, seconds in ((2 * a_byte_a_second, 4.1), (4 * a_byte_a_second, 2.05 / 0.75)):
        narrow = far(mbits={("far", "near"): mbits})
        assert behind(narrow, "far", "near", None) == pytest.approx(seconds)
    never = far(mbits={("near", "far"): a_byte_a_second / 20})
    assert behind(never, "far", "near", None) is None
    assert pairs(by_queries(never, [JOB], CONFIG)) == {("far", "middle")}
    old = far(histories={"far": NodeHistory(NOW - 100 * HOUR)}, mbits=never.mbits)
    assert pairs(by_queries(old, [JOB], CONFIG)) == {("far", "near")}


@pytest.mark.site
def test_a_copy_that_is_far_behind_does_not_pay() -> None:
    slow = {("near", "far"): 50.0, ("middle", "near"): 40.0, ("near", "middle"): 40.0}
    assert pairs(by_queries(far(links=slow), [JOB], CONFIG)) == {("far", "near")}
    narrow = far(links=slow, mbits={("near", "far"): MEGABYTE / HOUR * 8 / 1e6 * 1.01})
    assert by_queries(narrow, [JOB], CONFIG) == ()


@pytest.mark.site
def test_refusals_room_and_names_are_respected() -> None:
    no = (Decision("far", "near", REFUSED),)
    assert pairs(by_queries(far(decisions=no), [JOB], CONFIG)) == {("far", "middle")}
    assert by_queries(far(), [JOB], ReplicaConfig(capacity_megabytes=0.5)) == ()
    assert by_queries(far(links={}), [JOB], CONFIG) == ()
    elsewhere = FabricJob("j", "near", (FabricStream("s", None, ("north%",)),))
    assert by_queries(far(), [elsewhere], CONFIG) == ()
    nothing = FabricJob("j", "near", (FabricStream("s", ("disk",)),))
    assert by_queries(far(), [nothing], CONFIG) == ()


@pytest.mark.site
def test_two_streams_of_one_origin_are_one_copy() -> None:
    streams = (FabricStream("s", ("cpu_%",)), FabricStream("t", ("mem",)))
    found = by_queries(far(), [FabricJob("j", "near", streams)], CONFIG)
    far_one = next(item for item in found if item.origin == "far")
    assert (far_one.holder, far_one.metrics) == ("near", ("cpu_%", "mem"))
    whole = FabricJob("j", "near", (*streams, FabricStream("u")))
    found = by_queries(far(), [whole], CONFIG)
    assert next(item for item in found if item.origin == "far").metrics is None


@pytest.mark.site
def test_copies_that_do_not_fit_together_are_never_wanted_together() -> None:
    chance = random.Random(5)
    names = [f"n{n}" for n in range(6)]
    for _ in range(20):
        reports = {name: report(chance.randrange(1, 9) * MEGABYTE) for name in names}
        links = {("n0", name): chance.uniform(5, 100) for name in names[1:]}
        situation = Situation(NOW, reports, frozenset(names), links=links)
        job = FabricJob("j", "n0", (FabricStream("s"),))
        config = ReplicaConfig(capacity_megabytes=chance.randrange(1, 30))
        found = by_queries(situation, [job], config)
        left = Situation(NOW, reports, decisions=found).room(config.capacity)
        assert min(left.values()) >= 0


@pytest.mark.parametrize("latency", [-5.0, 1e300, 1e15, 0.0])
def test_links_that_cannot_be_are_as_if_not_measured(latency: float) -> None:
    found = by_queries(far(links={("near", "far"): latency}), [JOB], CONFIG)
    assert found == ()


@pytest.mark.site
def test_more_sources_than_can_be_solved() -> None:
    names = [f"n{n}" for n in range(150)]
    reports = {name: report(1000) for name in names}
    links = {("n0", name): 50.0 + n for n, name in enumerate(names)}
    situation = Situation(NOW, reports, frozenset(names), links=links)
    found = by_queries(situation, [FabricJob("j", "n0", (FabricStream("s"),))], CONFIG)
    assert len(found) == 100
    assert ("n149", "n0") in pairs(found)


@pytest.mark.site
def test_no_time_to_solve_changes_nothing() -> None:
    first = by_queries(far(), [JOB], CONFIG)
    in_no_time = ReplicaConfig(solve_seconds=0)
    assert by_queries(far(decisions=first), [JOB], in_no_time) == first
    assert by_queries(far(), [JOB], in_no_time) == ()


def test_which_jobs_read_stored_values() -> None:
    text = (
        'cpu = STREAM FROM storageFabric(metricID="cpu_%", nodeID="edge-1", entityType="POD");\n'
        'rooms = STREAM FROM mqtt(topic="rooms");\n'
        "load = COMPUTE ARITHMETIC_MEAN(cpu, 10 s) EVERY 10 s;\n"
    )
    found = fabric_job(Job("j", "north", Query(text)), "north")
    assert found == FabricJob("j", "north", (FabricStream("cpu", ("cpu_%",), ("edge-1",)),))
    assert fabric_job(Job("j", "north", Query(text), running=False), "north") is None
    some = Query("s = STREAM FROM storageFabric(); i = COMPUTE COUNT(s) EVERY 1 s WITH SAMPLE 0.5;")
    assert fabric_job(Job("j", "", some), "n") == FabricJob(
        "j", "n", (FabricStream("s", fraction=0.5),)
    )
    assert fabric_job(Job("j", "north", Query("storageFabric (")), "north") is None
    assert fabric_job(Job("j", "north", Steps(())), "north") is None


# ── kept in both databases ───────────────────────────────────────────────────────────────────────


def test_decisions_survive(store_url: str) -> None:
    store = Store(store_url)
    book = Decisions(store)
    copy = Decision("a", "x", QUERY, "j", ("cpu_%", "\u00e4"), 7.5, {"objective": 3.5})
    settled = book.settle([copy, Decision("a", "y", STABILITY, since=1.0)])
    assert len(settled.added) == 2
    assert not book.settle(book.all()).added
    book.add_manual("b", "x", ("m",), 2.0)
    before = book.all()
    store.close()
    store = Store(store_url)
    book = Decisions(store)
    assert book.all() == before
    assert next(i for i in book.all() if i.reason == QUERY).detail == {"objective": 3.5}
    assert [item.pair for item in book.settle([copy]).dropped] == [("a", "y")]
    assert {item.reason for item in book.all()} == {QUERY, MANUAL}
    store.forget_node("x")
    book.reload()
    assert book.all() == ()
    store.close()


def test_a_refusal_holds_until_a_wish(store_url: str) -> None:
    store = Store(store_url)
    book = Decisions(store)
    decided = Decision("a", "x", STABILITY, since=1.0)
    book.settle([decided])
    book.add_manual("a", "x", ("m",), 2.0)
    assert {item.reason for item in book.refuse("a", "x", 3.0).dropped} == {STABILITY, MANUAL}
    assert [item.reason for item in book.all()] == [REFUSED]
    book.settle([decided])
    assert [item.reason for item in book.all()] == [REFUSED]
    book.refuse("a", "x", 4.0)
    assert [item.reason for item in book.all()] == [REFUSED]
    book.add_manual("a", "x", None, 5.0)
    assert [item.reason for item in book.all()] == [MANUAL]
    book.refuse("a", "x", 6.0)
    assert book.all() == ()
    with pytest.raises(NotFoundError):
        book.refuse("a", "x", 7.0)
    store.close()


def test_many_threads_change_decisions(store_url: str) -> None:
    store = Store(store_url)
    book = Decisions(store)

    def work(number: int) -> None:
        for turn in range(5):
            book.add_manual(f"a{number}", "x", None, float(turn))
            book.settle([Decision("a", f"y{turn}", STABILITY)])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([item for item in book.all() if item.reason == MANUAL]) == 4
    assert len([item for item in book.all() if item.reason == STABILITY]) == 1
    assert Decisions(store).all() == book.all()
    store.close()


@pytest.mark.parametrize("broken", ["[", "7", '["\\u0000"]'])
def test_a_damaged_row_is_told(tmp_path: Path, broken: str) -> None:
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    row = {"origin": "a", "holder": "x", "reason": MANUAL, "job": ""}
    with store.change() as connection:
        more = {"metrics": broken, "detail": "{}", "since": 1.0}
        connection.execute(copies_table.insert(), [row | more])
    with pytest.raises(RepositoryError, match="damaged"):
        Decisions(store)
    store.close()


# ── showing, configuration ───────────────────────────────────────────────────────────────────────


def test_states_of_copies() -> None:
    copies = {"a": held(None, NOW - 3, 5), "b": held(("m",), None, 1), "old": held(None, None, 1)}
    seen = {
        "x": StoreView(
            True, report(9, copies={**copies, "k": held(None, None, 1)}), desired={"k": None}
        )
    }
    decisions = [
        Decision("a", "x", STABILITY),
        Decision("b", "x", MANUAL, metrics=("m", "n")),
        Decision("c", "x", REFUSED),
        Decision("a", "unseen", MANUAL),
    ]
    found = {(c["origin"], c["holder"]): c for c in copy_statuses(decisions, seen, NOW)}
    states = {pair: copy["state"] for pair, copy in found.items()}
    assert states == {
        ("a", "x"): "held",
        ("b", "x"): "wanted",
        ("c", "x"): "refused",
        ("k", "x"): "kept",
        ("old", "x"): "leaving",
        ("a", "unseen"): "wanted",
    }
    assert found["a", "x"]["behind_seconds"] == 3.0
    assert found["b", "x"]["behind_seconds"] is None


def test_the_configuration(tmp_path: Path) -> None:
    found = parse_config({"replicas": {"seconds": 5, "enabled": False}}, tmp_path, "c").replicas
    assert found == ReplicaConfig(enabled=False, seconds=5.0)
    assert parse_config({}, tmp_path, "c").replicas == ReplicaConfig()
    assert ReplicaConfig(capacity_megabytes=2, recent_hours=1).limits.otherwise == 2 * MEGABYTE


@pytest.mark.parametrize(
    "wrong",
    [
        7,
        None,
        [1],
        {1: 2},
        {"second": 5},
        {"seconds": 0},
        {"seconds": "60"},
        {"seconds": True},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": 10**400},
        {"enabled": 1},
        {"nodes": 1.5},
        {"nodes": -1},
        {"beta": -1},
        {"least_quality": 1.1},
        {"solve_seconds": -1},
    ],
)
def test_configurations_that_are_wrong(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(UsageError):
        parse_config({"replicas": wrong}, tmp_path, "c")
