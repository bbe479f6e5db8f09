"""The two replica placements over many simulated failures and queries; no Spark, one process.

python bench/replicas.py [stability] [queries] [--write-docs]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import stdev
from typing import Any

import click
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import replicas_page  # noqa: E402

from fogline.bench import replica_queries, replica_stability  # noqa: E402
from fogline.bench.replica_queries import Experiment, Gains  # noqa: E402
from fogline.bench.replica_stability import Scenario, StabilityOutcome  # noqa: E402

SEED = 2022
PARTS = ("stability", "queries")
RATES = replica_stability.document_rates()
BAD = (0, 1, 2)
CLUSTERS = 10
DRAWS = 20
"""Of rates that nobody picked, beside `RATES`, which were picked to be like the document's."""
WAYS: dict[str, dict[str, Any]] = {
    "no copies": {"replicate": False},
    "copies": {},
    "copies that follow": {"follow": True},
}
CASES = {
    "A": Experiment(25, 5),
    "B": Experiment(25, 10),
    "C": Experiment(50, 5),
    "D": Experiment(50, 10),
    "E": Experiment(100, 5),
    "F": Experiment(100, 10),
    "D, no bottlenecks": Experiment(50, 10, bottlenecks=False),
}
OTHERS = {
    "D, Zipf exponent 2": Experiment(50, 10, zipf=2.0),
    "D, Zipf exponent 3": Experiment(50, 10, zipf=3.0),
    "D, replicas anywhere, 10 a node": Experiment(50, 10, anywhere=True),
}
FIELDS = ("latency", "objective", "latency_sampled", "degraded", "degraded_home", "staleness_ratio")
console = Console(highlight=False)


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--runs", default=500, show_default=True, help="Queries for each case.")
@click.option("--seed", default=SEED, show_default=True, help="Of everything that is drawn.")
@click.option("--out", type=click.Path(path_type=Path), help="File for the results, as JSON.")
@click.option("--write-docs", is_flag=True, help="Write docs/replicas.md and its plots anew.")
def main(parts: tuple[str, ...], runs: int, seed: int, out: Path | None, write_docs: bool) -> None:
    """Simulates the placement by stability and the placement for queries."""
    found: dict[str, Any] = {"seed": seed}
    for part in parts or PARTS:
        began = time.process_time()
        found[part] = stability(seed) if part == "stability" else queries(seed, runs)
        console.print(f"{part}: {time.process_time() - began:.1f} s")
    if out:
        out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if write_docs:
        replicas_page.write(found)


def stability(seed: int) -> dict[str, Any]:
    """The same failures without copies, with copies as they were made, and with copies kept up."""
    rows = {}
    for loss in (0.0, 0.2):
        for way, changes in WAYS.items():
            scenario = replace(Scenario(RATES, disk_loss=loss), **changes)
            outcomes = [replica_stability.simulate(scenario, seed + i) for i in range(CLUSTERS)]
            rows[f"{way}|{loss:.0%}"] = [survival(outcome) for outcome in outcomes]
    calm = replace(Scenario(RATES), replicate=False)
    ranks = [ranking(replica_stability.simulate(calm, seed + i)) for i in range(CLUSTERS)]
    return {"rates": RATES, "rows": rows, "ranks": ranks, "any_ranks": any_ranks(seed)}


def any_ranks(seed: int) -> list[dict[str, Any]]:
    """One cluster for each of some draws of the rates, as they come."""
    seeds = range(seed, seed + DRAWS)
    drawn = {i: tuple(replica_stability.zipf_rates(len(RATES), i)) for i in seeds}
    scenarios = {i: replace(Scenario(rates), replicate=False) for i, rates in drawn.items()}
    return [ranking(replica_stability.simulate(scenarios[i], i)) for i in seeds]


def survival(outcome: StabilityOutcome) -> dict[str, Any]:
    return {
        "reachable_bad": outcome.reachable(BAD),
        "reachable": outcome.reachable(),
        "survived": outcome.survived,
        "copied": outcome.copied,
        "chosen_bad": sum(outcome.chosen[n] for n in BAD),
        "chosen_others": sum(outcome.chosen) - sum(outcome.chosen[n] for n in BAD),
    }


def ranking(outcome: StabilityOutcome) -> dict[str, Any]:
    """Where the bad nodes stand by U, round by round."""
    orders = [_order(row) for row in outcome.scores]
    return {
        "rounds": len(orders),
        "worst_in_top": sum(order.index(0) < len(BAD) for order in orders),
        "bad_in_top": sum(len(set(order[: len(BAD)]) & set(BAD)) for order in orders),
        "failures": [len(history.fails) for history in outcome.histories],
        "scores": [row[0] for row in outcome.scores],
        "fails_at": outcome.histories[0].fails,
        "round_seconds": Scenario(RATES).round_steps * Scenario(RATES).step_seconds,
    }


def _order(scores: tuple[float, ...]) -> list[int]:
    """The highest score first; of equal ones (no failure yet) the bad nodes last."""
    return sorted(range(len(scores)), key=lambda node: (-scores[node], -node))


def queries(seed: int, runs: int) -> dict[str, Any]:
    found = {name: told(replica_queries.simulate(case, runs, seed)) for name, case in CASES.items()}
    others = {
        name: told(replica_queries.simulate(case, runs, seed)) for name, case in OTHERS.items()
    }
    return {"cases": found, "others": others}


def told(gains: Gains) -> dict[str, Any]:
    return {
        "case": asdict(gains.case),
        "runs": gains.runs,
        "share": gains.share,
        "proven": gains.proven,
        "ratio_median": gains.median("staleness_ratio"),
        "latency_most": max(gains.values("latency"), default=0.0),
        "ratios": list(gains.values("staleness_ratio")),
        "latency_error": error(gains.values("latency")),
        "objective_error": error(gains.values("objective")),
        **{name: gains.mean(name) for name in FIELDS},
    }


def error(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
