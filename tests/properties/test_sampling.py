"""SAMPLE scales its results; MAX_ERROR keeps its promise over many seeds."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from statistics import mean

import pytest
from pyspark.sql import SparkSession

from fogline.model.results import Result, parse_results
from fogline.plan.analysis.build import plan_text
from fogline.plan.lowering.program import lower
from fogline.plan.rules import optimise
from fogline.spark.compile.scan import Input
from fogline.spark.run.engine import StreamRun

pytestmark = pytest.mark.spark

STREAM = 'STREAM FROM memory(name="s", time="time")'


def _write(path: Path, count: int) -> Path:
    random = Random(7)
    with path.open("w") as file:
        for i in range(count):
            value = random.gauss(100, 20)
            line = {"time": 1_700_000_000_000 + i, "key": f"k{i % 2}", "value": value}
            file.write(json.dumps(line) + "\n")
    return path


def _run(
    spark: SparkSession, text: str, given: Input, scratch: Path
) -> dict[tuple[str, str, int], dict[str, float]]:
    found: list[Result] = []
    program = lower(optimise(plan_text(text))[0])
    with StreamRun(
        spark,
        program,
        {"s": given},
        lambda lines: found.extend(parse_results(lines)),
        scratch,
        available_now=True,
    ) as run:
        assert run.wait(300)
    return {(r.insight, r.key, r.end_ms): json.loads(r.record) for r in found}


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("sampling") / "readings.ndjson", 200_000)


def test_sample_scales_counts_and_sums_and_says_so(
    spark: SparkSession, tmp_path: Path, readings: Path
) -> None:
    text = f"""s = {STREAM};
        n = COMPUTE COUNT(value, 50 SECONDS) EVERY 50 SECONDS WITH SAMPLE 0.2;
        total = COMPUTE SUM(value, 50 SECONDS) EVERY 50 SECONDS WITH SAMPLE 0.2;
        middle = COMPUTE AVG(value, 50 SECONDS) EVERY 50 SECONDS WITH SAMPLE 0.2;
        exact = COMPUTE COUNT(value, 50 SECONDS) EVERY 50 SECONDS;
        exact_total = COMPUTE SUM(value, 50 SECONDS) EVERY 50 SECONDS;"""
    found = _run(spark, text, Input(readings), tmp_path)
    ends = {end for insight, _, end in found if insight == "exact"}
    for end in ends:
        at = {insight: record for (insight, _, e), record in found.items() if e == end}
        if at["exact"]["count"] < 10_000:
            continue
        assert at["n"]["value"] == pytest.approx(at["exact"]["value"], rel=0.1)
        assert at["total"]["value"] == pytest.approx(at["exact_total"]["value"], rel=0.1)
        assert at["middle"]["value"] == pytest.approx(100, rel=0.05)
        assert at["n"]["sampled"] == 0.2
        assert at["n"]["count"] == pytest.approx(0.2 * at["exact"]["count"], rel=0.15)
        assert "sampled" not in at["exact"]


def _insights(options: str) -> str:
    aggregates = "".join(
        f"i_{f} = COMPUTE {f}(value, 10 SECONDS) BY key EVERY 10 SECONDS {options};"
        for f in ("AVG", "SUM", "COUNT")
    )
    return f"s = {STREAM}; {aggregates}"


@pytest.mark.parametrize("seeds", [1, pytest.param(50, marks=pytest.mark.long)])
def test_max_error_keeps_its_bound_and_saves_work(
    spark: SparkSession, tmp_path: Path, readings: Path, seeds: int
) -> None:
    bound = 0.05
    exact = _run(spark, _insights(""), Input(readings), tmp_path)
    text = _insights(f"WITH MAX_ERROR {bound} AND CONFIDENCE 0.95")
    errors, bounds, counts, inside = [], [], [], 0
    for seed in range(seeds):
        given = Input(readings, max_bytes=1_000_000, options={"sampleSeed": str(seed)})
        for key, record in _run(spark, text, given, tmp_path).items():
            truth = exact[key]["value"]
            error = abs(record["value"] - truth) / abs(truth)
            errors.append(error)
            bounds.append(record["error"])
            inside += error <= record["error"] + 1e-12
            counts.append(record["count"] / exact[key]["count"])
            assert record["confidence"] == 0.95
    assert len(errors) > 75 * seeds
    assert inside / len(errors) >= 0.88  # nominally 0.95
    assert mean(e <= bound for e in errors) >= 0.9
    assert mean(b <= bound * 1.3 for b in bounds) >= 0.9
    assert min(counts) < 0.6, "the sample was never made smaller"
    assert mean(counts) < 0.8


def test_a_sample_of_some_insights_leaves_the_others_exact(
    spark: SparkSession, tmp_path: Path, readings: Path
) -> None:
    text = f"""s = {STREAM};
        bounded = COMPUTE AVG(value, 10 SECONDS) EVERY 10 SECONDS
                  WITH MAX_ERROR 0.05 AND AWARENESS ON COMPUTATIONS;
        exact = COMPUTE COUNT(value, 10 SECONDS) EVERY 10 SECONDS;"""
    found = _run(spark, text, Input(readings, max_bytes=2_000_000), tmp_path)
    exact = {end: r for (insight, _, end), r in found.items() if insight == "exact"}
    bounded = {end: r for (insight, _, end), r in found.items() if insight == "bounded"}
    assert sum(r["value"] for r in exact.values()) == 200_000
    assert exact.keys() == bounded.keys()
    assert min(bounded[end]["count"] / exact[end]["count"] for end in exact) < 0.6
    assert mean(abs(r["value"] - 100) / 100 <= 0.05 for r in bounded.values()) >= 0.95
