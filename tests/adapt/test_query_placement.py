"""The solver's answer beside trying everything, its time bound, and input it refuses."""

from __future__ import annotations

import math
import time
from itertools import count, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.adapt.replication import query_placement, solver
from fogline.adapt.replication.query import (
    LEAST_FRACTION,
    LONGEST,
    Candidate,
    QueryPlacement,
    ReplicaQuery,
    Source,
    at_home,
    evaluate,
)
from fogline.adapt.replication.query_placement import sample, solve
from fogline.common.errors import DataError, SetupError

pytestmark = pytest.mark.site

NODES = "uvwx"


def keeps_slots(query: ReplicaQuery, nodes: dict[str, str]) -> bool:
    replicas = [nodes[s.name] for s in query.sources if nodes[s.name] != s.home]
    return query.slots is None or all(replicas.count(n) <= query.slots for n in replicas)


def brute_force(query: ReplicaQuery) -> QueryPlacement | None:
    """Tries every placement without sampling."""
    names = [source.name for source in query.sources]
    choices = product(*([c.node for c in source.candidates] for source in query.sources))
    able = [
        nodes for at in choices if keeps_slots(query, nodes := dict(zip(names, at, strict=True)))
    ]
    placed = [evaluate(query, nodes) for nodes in able]
    return min(placed, key=lambda p: p.objective, default=None)


@st.composite
def queries(draw: st.DrawFn) -> ReplicaQuery:
    most, unit = draw(st.sampled_from([(3, 1.0), (10**7, 1e-6), (1000, 1e-12)]))
    times = st.integers(0, most).map(lambda number: number * unit)
    sources = []
    for i in range(draw(st.integers(1, 4))):
        nodes = draw(st.lists(st.sampled_from(NODES), min_size=1, unique=True))
        found = [Candidate(node, draw(times), draw(times)) for node in nodes]
        sources.append(Source(f"s{i}", tuple(found), draw(st.sampled_from(("", *NODES)))))
    slots = draw(st.sampled_from([None, 0, 1, 2]))
    beta = draw(st.sampled_from([0.0, 1.0, 5.0]))
    return ReplicaQuery(tuple(sources), beta, draw(st.integers(0, 20)) / 20, slots)


@given(queries())
def test_the_solver_finds_what_trying_everything_finds(query: ReplicaQuery) -> None:
    best = brute_force(query)
    if best is None:
        with pytest.raises(DataError, match="slot"):
            solve(query)
        return
    found = solve(query, sampling=False)
    assert found.proven
    assert keeps_slots(query, dict(found.nodes))
    assert found.objective == best.objective


@given(queries())
def test_sampling_keeps_f_and_the_quality_asked_for_and_never_raises_l(query: ReplicaQuery) -> None:
    if brute_force(query) is None:
        return
    plain = solve(query, sampling=False)
    sampled = solve(query)
    shares = sampled.quality.values()
    assert sampled.proven
    assert sampled.nodes == plain.nodes
    assert sampled.objective == pytest.approx(plain.objective)
    assert sampled.latency <= plain.latency
    assert all(LEAST_FRACTION <= share <= 1 for share in shares)
    assert math.fsum(shares) >= query.least_quality * len(shares)


GRID = (0.1, 0.4, 0.6, 0.85, 1.0)


@given(queries())
def test_no_mix_of_nodes_and_samples_beats_the_two_steps(query: ReplicaQuery) -> None:
    """Joint search over a grid of q: F is never lower, nor L at the same nodes and F."""
    if brute_force(query) is None:
        return
    found = solve(query)
    names = [source.name for source in query.sources][:3]
    choices = product(*([c.node for c in source.candidates] for source in query.sources))
    for at in list(choices)[:20]:
        nodes = dict(zip((s.name for s in query.sources), at, strict=True))
        for shares in product(GRID, repeat=len(names)):
            tried = evaluate(query, nodes, dict(zip(names, shares, strict=True)))
            enough = math.fsum(tried.quality.values()) >= query.least_quality * len(tried.quality)
            if not enough or not keeps_slots(query, nodes):
                continue
            assert tried.objective >= found.objective * (1 - 1e-9)
            if nodes == found.nodes and tried.objective <= found.objective * (1 + 1e-12):
                assert tried.latency >= found.latency * (1 - 1e-6)


def source(name: str, home: float, *replicas: tuple[str, float, float]) -> Source:
    found = [Candidate(f"home-{name}", home), *(Candidate(*replica) for replica in replicas)]
    return Source(name, tuple(found), f"home-{name}")


def test_a_worked_example() -> None:
    """At home L = 9 and F = 9; with b read at v, L = 4 and F = 4 · (1 + 0.5) = 6."""
    query = ReplicaQuery((source("a", 4), source("b", 9, ("u", 1, 8), ("v", 3, 0.5))))
    home = at_home(query)
    assert home is not None
    assert (home.latency, home.objective) == (9, 9)
    found = solve(query, sampling=False)
    assert found.nodes == {"a": "home-a", "b": "v"}
    assert (found.latency, found.staleness, found.objective) == (4, 0.5, 6)


def test_a_worked_example_of_sampling() -> None:
    """r = (1, 0.5): with q = (m, min(1, 2 m)) the mean reaches 0.8 at m = 0.6, so L falls to 6."""
    query = ReplicaQuery((source("slow", 10), source("fast", 5)))
    found = solve(query)
    assert found.quality == pytest.approx({"slow": 0.6, "fast": 1.0})
    assert (found.latency, found.objective) == pytest.approx((6, 10))
    home = at_home(query)
    assert home is not None
    assert sample(query, home) == found


def test_slots_spread_the_replicas() -> None:
    near = ("u", 1.0, 0.0), ("v", 2.0, 0.0)
    query = ReplicaQuery((source("a", 9, *near), source("b", 9, *near)), slots=1)
    assert sorted(solve(query).nodes.values()) == ["u", "v"]


def test_everything_for_nothing() -> None:
    found = solve(ReplicaQuery((source("a", 0), source("b", 0))))
    assert (found.latency, found.objective) == (0, 0)
    assert set(found.quality.values()) == {1.0}


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


def contested(sources: int, nodes: int) -> ReplicaQuery:
    """Many levels, one slot a node."""
    found = []
    for i in range(sources):
        near = [
            (f"n{j}", 1 + (7 * i + 13 * j) % 97 / 10, (11 * i + 5 * j) % 89 / 10)
            for j in range(nodes)
        ]
        found.append(source(f"s{i}", 1000, *near))
    return ReplicaQuery(tuple(found), slots=1)


def test_no_time_gives_the_baseline_unproven() -> None:
    query = contested(5, 5)
    found = solve(query, seconds=0)
    assert not found.proven
    assert found.nodes == {s.name: s.home for s in query.sources}


def test_time_that_runs_out_gives_the_best_so_far() -> None:
    """With L = 1, F = 6 is found; the clock says stop before L = 2, where F would be 4."""
    near = ("u", 1.0, 0.0), ("v", 1.0, 5.0), ("w", 2.0, 1.0)
    query = ReplicaQuery((source("a", 1000, *near), source("b", 1000, *near)), slots=1)
    ticks = count(step=10)
    found = solve(query, seconds=25, clock=lambda: float(next(ticks)))
    assert (found.objective, found.proven) == (6, False)
    assert all(share == 1 for share in found.quality.values())
    assert solve(query).objective == pytest.approx(4)


def test_no_time_and_no_baseline_still_gives_a_placement() -> None:
    near = (Candidate("u", 1), Candidate("v", 2))
    query = ReplicaQuery(tuple(Source(f"s{i}", near[: i + 1]) for i in (1, 0)), slots=1)
    found = solve(query, seconds=0)
    assert not found.proven
    assert found.nodes == {"s1": "v", "s0": "u"}


def test_a_query_too_hard_for_its_time_ends_in_time() -> None:
    """It needs many times the half second it gets; the rest of the bound is for slow machines."""
    random = Random(2)
    near = [f"n{j}" for j in range(40)]
    query = ReplicaQuery(
        tuple(
            source(
                f"s{i}", 1e4, *((n, random.uniform(1, 100), random.uniform(0, 100)) for n in near)
            )
            for i in range(40)
        ),
        slots=1,
    )
    began = time.monotonic()
    found = solve(query, seconds=0.5)
    assert time.monotonic() - began < 60
    assert found.objective <= 1e4
    assert keeps_slots(query, dict(found.nodes))


def test_the_solver_gets_no_more_time_than_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    given_seconds = []

    def record(
        sources: object, choices: object, slots: object, seconds: float
    ) -> solver.SolverResult:
        given_seconds.append(seconds)
        return solver.SolverResult(proven=False)

    monkeypatch.setattr(query_placement.solver, "least_stale", record)
    ticks = count()
    found = solve(contested(3, 3), seconds=7, sampling=False, clock=lambda: float(next(ticks)))
    assert not found.proven
    assert given_seconds == [5.0]


# ── hostile input ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, -math.inf, LONGEST * 2])
def test_times_out_of_range_are_refused(value: float) -> None:
    for make in (
        lambda: Candidate("u", value),
        lambda: Candidate("u", 1, value),
        lambda: ReplicaQuery((source("a", 1),), beta=value),
        lambda: ReplicaQuery((source("a", 1),), least_quality=value),
    ):
        with pytest.raises(DataError):
            make()


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0])
def test_a_time_bound_must_be_one(seconds: float) -> None:
    with pytest.raises(DataError, match="time"):
        solve(ReplicaQuery((source("a", 1),)), seconds)


def test_impossible_queries_are_refused() -> None:
    near = Candidate("u", 1)
    for make in (
        lambda: Candidate("", 1),
        lambda: Source("a", ()),
        lambda: Source("a", (near, near)),
        lambda: Source("a", (near,)).at("v"),
        lambda: ReplicaQuery(()),
        lambda: ReplicaQuery((Source("a", (near,)), Source("a", (near,)))),
        lambda: ReplicaQuery((Source("a", (near,)),), slots=-1),
        lambda: ReplicaQuery(tuple(Source(f"s{i}", (near,)) for i in range(101))),
    ):
        with pytest.raises(DataError):
            make()


def test_too_few_slots_name_the_source() -> None:
    near = (Candidate("u", 1),)
    with pytest.raises(DataError, match="source b"):
        solve(ReplicaQuery((Source("a", near), Source("b", near)), slots=1))


def test_a_solver_that_does_not_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "_CBC", "no-such-program")
    with pytest.raises(SetupError, match="CBC"):
        solve(ReplicaQuery((source("a", 9, ("u", 1, 0)),)))


def test_extreme_scales_stay_exact() -> None:
    query = ReplicaQuery((source("a", LONGEST, ("u", 1e-12, 1e-12), ("v", 1e-12, 2e-12)),))
    assert solve(query).nodes == {"a": "u"}


def test_a_huge_query_is_placed() -> None:
    near = [(f"n{j}", 1 + j % 200, float(j % 77)) for j in range(400)]
    found = solve(
        ReplicaQuery(tuple(source(f"s{i}", 1e6 + i, *near) for i in range(40)), slots=10), 60
    )
    assert found.proven
    assert found.objective < 1e6
