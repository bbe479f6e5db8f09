"""Public sample streams through the examples; expected numbers come straight from the files.

The samples are not part of the project; without them beside it these tests are skipped.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import mean, median, mode, stdev
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.language.parser import parse
from fogline.model.results import Result, parse_results
from fogline.plan.analysis.build import plan_text
from fogline.plan.lowering.program import lower
from fogline.plan.rules import optimise
from fogline.spark.compile.scan import Input
from fogline.spark.run.engine import StreamRun, run_batch
from fogline.testing.reference import evaluate
from fogline.testing.reference.formulas import iso

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT.parent / "shared" / "data"
FILES = {"city": "SYS", "taxi": "TAXI", "fit": "FIT"}
MINUTE = 60_000

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample streams are not here"),
]

Rows = list[dict[str, Any]]


@cache
def records(name: str) -> tuple[tuple[int, dict[str, str]], ...]:
    """Time and fields of every line, read with nothing but the json module."""
    found = []
    for line in (SAMPLES / f"{FILES[name]}_sample_data_senml.csv").read_text().splitlines():
        pack = json.loads(line.split(",", 1)[1])
        fields = {entry["n"]: entry.get("v", entry.get("sv")) for entry in pack["e"]}
        found.append((int(pack["bt"]), fields))
    return tuple(found)


def values(name: str, field: str, start: int, end: int, **keys: str) -> list[float]:
    return [
        float(fields[field])
        for time, fields in records(name)
        if start <= time < end and all(fields[key] == value for key, value in keys.items())
    ]


def results(spark: SparkSession, name: str, scratch: Path, stream: bool) -> Rows:
    text = (ROOT / "examples" / name / f"{name}.ins").read_text(encoding="utf-8")
    if name == "fit":  # the file is not sorted, so as a stream it needs patience
        text = text.replace('lateness="2 s"', 'lateness="1 h"')
    program = lower(optimise(plan_text(text))[0])
    path = SAMPLES / f"{FILES[name]}_sample_data_senml.csv"
    given = Input(path, max_bytes=100_000 if name != "fit" else 10_000)
    scans = (*program.scans, *program.record_scans)
    inputs = {scan.stream.name: given for scan in scans}
    kept: list[Result] = []
    if stream:
        with StreamRun(
            spark,
            program,
            inputs,
            lambda lines: kept.extend(parse_results(lines)),
            scratch,
            available_now=True,
        ) as run:
            assert run.wait(240)
    else:
        run_batch(spark, program, inputs, lambda lines: kept.extend(parse_results(lines)))
    return [json.loads(result.record) for result in kept]


@pytest.fixture(scope="module")
def replay(spark: SparkSession, scratch: Path) -> Callable[[str], Rows]:
    """The results of an example over its sample, as a batch; checked to be those of the stream."""

    @cache
    def run(name: str) -> Rows:
        batch, stream = (results(spark, name, scratch, stream=s) for s in (False, True))
        assert rounded(batch) == rounded(stream)
        return batch

    return run


def rounded(rows: Rows) -> list[str]:
    def text(value: Any) -> str:
        return json.dumps(json.loads(json.dumps(value), parse_float=lambda x: f"{float(x):.9g}"))

    return sorted(text(row) for row in rows)


def of(rows: Rows, insight: str, **keys: str) -> dict[int, Any]:
    """End of the window (milliseconds) to value."""
    from datetime import datetime

    return {
        round(datetime.fromisoformat(row["window"]["end"]).timestamp() * 1000): row["value"]
        for row in rows
        if row["insight"] == insight and all(row["keys"][k] == v for k, v in keys.items())
    }


def ends(name: str, period: int, length: int) -> range:
    times = [time for time, _ in records(name)]
    return range(min(times) // period * period + period, max(times) + length + 1, period)


# ── city: 1000 readings within 59 s ──────────────────────────────────────────────────────────────


def test_city_temperature(replay: Callable[[str], Rows]) -> None:
    found = of(replay("city"), "city_temperature")
    wanted = {e: values("city", "temperature", e - 30_000, e) for e in ends("city", 10_000, 30_000)}
    assert found == {e: pytest.approx(mean(xs)) for e, xs in wanted.items() if xs}
    assert len(found) == 8


def test_dirtiest_air(replay: Callable[[str], Rows]) -> None:
    end, top = max(of(replay("city"), "dirtiest_air").items())
    sources: dict[str, list[float]] = defaultdict(list)
    for time, fields in records("city"):
        if end - 30_000 <= time < end:
            sources[fields["source"]].append(float(fields["airquality_raw"]))
    best = sorted((-mean(xs), source) for source, xs in sources.items())[:5]
    assert [(-entry["value"], entry["keys"]["source"]) for entry in top] == [
        (pytest.approx(value), source) for value, source in best
    ]


def test_fire_risk(replay: Callable[[str], Rows]) -> None:
    found = [row for row in replay("city") if row["insight"] == "fire_risk"]
    wanted = [
        (iso(time), fields["source"], float(fields["temperature"]))
        for time, fields in records("city")
        if float(fields["temperature"]) > 25 and float(fields["humidity"]) < 40
    ]
    told = [(r["window"]["end"], r["keys"]["source"], r["value"]) for r in found]
    assert sorted(told) == sorted(wanted)


# ── taxi: 1000 rides in 4.6 h ────────────────────────────────────────────────────────────────────


def test_fare_rate(replay: Callable[[str], Rows]) -> None:
    found = of(replay("taxi"), "fare_rate")
    wanted = {}
    for end in ends("taxi", MINUTE, 10 * MINUTE):
        fares = values("taxi", "fare_amount", end - 10 * MINUTE, end)
        distance = sum(values("taxi", "trip_distance", end - 10 * MINUTE, end))
        if fares and distance:
            wanted[end] = pytest.approx(sum(fares) / distance)
    assert found == wanted


@pytest.mark.parametrize("payment", ["CSH", "CRD"])
def test_takings(replay: Callable[[str], Rows], payment: str) -> None:
    found = of(replay("taxi"), "takings", payment_type=payment)
    wanted = {}
    for end in ends("taxi", 5 * MINUTE, 10 * MINUTE):
        paid = values("taxi", "total_amount", end - 10 * MINUTE, end, payment_type=payment)
        if paid:
            wanted[end] = pytest.approx(sum(paid))
    assert found == wanted


def test_median_ride(replay: Callable[[str], Rows]) -> None:
    found = of(replay("taxi"), "median_ride")
    every = ends("taxi", 5 * MINUTE, 30 * MINUTE)
    rides = {e: values("taxi", "trip_time_in_secs", e - 30 * MINUTE, e) for e in every}
    assert found == {e: median(xs) for e, xs in rides.items() if xs}


# ── fit: 45 readings of one person ───────────────────────────────────────────────────────────────


def test_movement_and_activity(replay: Callable[[str], Rows]) -> None:
    rows = replay("fit")
    person = records("fit")[0][1]["subjectId"]
    moved = of(rows, "movement", subjectId=person)
    wanted = {
        e: values("fit", "acc_ankle_y", e - 5000, e, subjectId=person)
        for e in ends("fit", 1000, 5000)
    }
    assert moved == {e: pytest.approx(stdev(xs)) for e, xs in wanted.items() if len(xs) > 1}
    active = of(rows, "activity", subjectId=person)
    labels = {e: values("fit", "label", e - 10_000, e) for e in ends("fit", 5000, 10_000)}
    assert active == {e: mode(sorted(xs)) for e, xs in labels.items() if xs}


@pytest.mark.parametrize("name", ["fit", "city"])
def test_all_insights_are_those_of_the_reference(replay: Callable[[str], Rows], name: str) -> None:
    text = (ROOT / "examples" / name / f"{name}.ins").read_text(encoding="utf-8")
    made = [{"time": time, "fields": fields} for time, fields in records(name)]
    wanted = evaluate(parse(text), made)  # type: ignore[arg-type]
    assert [place(row) for row in sorted(replay(name), key=place)] == sorted(
        (w["insight"], iso(w["window"]["end"]), json.dumps(w["keys"]), w["count"]) for w in wanted
    )


def place(row: dict[str, Any]) -> tuple[str, str, str, int]:
    return row["insight"], row["window"]["end"], json.dumps(row["keys"]), row["count"]
