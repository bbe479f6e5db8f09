"""The two small programs of the query placement, for CBC through PuLP.

Both are put in numbers that do not depend on the unit of time: the first in ranks, because only the
order of the staleness decides it, the second in fractions of the largest latency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulp

from fogline.common.errors import SetupError

_CBC = pulp.PULP_CBC_CMD.pulp_cbc_path
"""The one that comes with PuLP up to version 3."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A source could be read at a node."""

    source: str
    node: str
    staleness: float
    replica: bool


@dataclass(frozen=True, slots=True)
class SolverResult:
    """A node for each source, or nothing; proven, unless time ran out."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    proven: bool = True


def least_stale(
    sources: Sequence[str], choices: Sequence[Choice], slots: int | None, seconds: float
) -> SolverResult:
    """One choice for each source so that the stalest is least stale; nothing if there is none.

    x ∈ {0, 1} for each choice, Σ x = 1 for each source, Σ x ≤ slots over a node's replicas, and the
    least R with Σ rank · x ≤ R for each source.
    """
    if set(sources) != {choice.source for choice in choices}:
        return SolverResult()
    problem = pulp.LpProblem("nodes", pulp.LpMinimize)
    x = [problem.add_variable(f"x{i}", cat="Binary") for i in range(len(choices))]
    ranks = {value: i for i, value in enumerate(sorted({c.staleness for c in choices}))}
    stalest = problem.add_variable("stalest", lowBound=0, upBound=len(ranks))
    problem += stalest
    for taken in _group_indexes([c.source for c in choices]).values():
        problem += pulp.lpSum(x[i] for i in taken) == 1
        problem += pulp.lpSum(ranks[choices[i].staleness] * x[i] for i in taken) <= stalest
    for at in _group_indexes([c.node if c.replica else "" for c in choices], skip="").values():
        if slots is not None and len(at) > slots:
            problem += pulp.lpSum(x[i] for i in at) <= slots
    status = _run(problem, seconds)
    if status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return SolverResult(proven=status == pulp.LpSolutionInfeasible)
    chosen = {c.source: c.node for c, taken in zip(choices, x, strict=True) if taken.value() > 0.5}
    return SolverResult(chosen, status == pulp.LpSolutionOptimal)


def least_fraction(
    speeds: Sequence[float], least: float, mean: float, seconds: float
) -> float | None:
    """The least m = min q for which L = m · (largest latency); None if time ran out before.

    `speeds` are latencies as fractions r of the largest. m ≤ q ≤ 1 and r · q ≤ m for each source,
    the mean of the q at least `mean`, m at least `least`.
    """
    if seconds <= 0:
        return None
    problem = pulp.LpProblem("fractions", pulp.LpMinimize)
    m = problem.add_variable("m", lowBound=least, upBound=1)
    q = [problem.add_variable(f"q{i}", lowBound=least, upBound=1) for i in range(len(speeds))]
    problem += m
    for fraction, speed in zip(q, speeds, strict=True):
        problem += fraction >= m
        problem += speed * fraction <= m
    problem += pulp.lpSum(q) >= mean * len(q)
    found = _run(problem, seconds) == pulp.LpSolutionOptimal
    return float(min(1.0, max(least, m.value()))) if found else None


def _run(problem: Any, seconds: float) -> int:
    try:
        problem.solve(pulp.COIN_CMD(path=_CBC, msg=False, timeLimit=seconds))
    except pulp.PulpSolverError as error:
        raise SetupError("the solver CBC does not run", "reinstall the package pulp") from error
    return int(problem.sol_status)


def _group_indexes(keys: Sequence[str], skip: str | None = None) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        if key != skip:
            found.setdefault(key, []).append(i)
    return found
