"""Query files with their expected plans and results beside them.

`tests/cases/NAME.ins` is a query. `NAME.plan` is its plan after the rules. `NAME.ndjson` holds the
records of every stream (`NAME.STREAM.ndjson`: of one stream), in order of arrival, and `NAME.out`
the results, one record a line. Each case runs as a batch and as a stream of tiny batches, and both
must give what the plain-Python reference gives.

`pytest tests/test_cases.py --write-cases` writes plans and outputs anew; read the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.language.ast import QueryFile
from fogline.language.parser import parse
from fogline.model.results import Result, parse_results
from fogline.plan.analysis.build import plan_text
from fogline.plan.explain.show import show_plan
from fogline.plan.lowering.program import Program, lower
from fogline.plan.operators import Plan
from fogline.plan.rules import optimise
from fogline.plan.user_functions import UserFunctions
from fogline.spark.compile.functions import spark_functions
from fogline.spark.compile.scan import Input
from fogline.spark.run.engine import StreamRun, run_batch
from fogline.testing.reference import ReferenceRecord, evaluate
from fogline.testing.reference.formulas import iso

pytestmark = pytest.mark.spark

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.ins"))
FUNCTIONS = UserFunctions(CASES / "functions")
TINY = 300
"""Bytes in a micro-batch: two or three records."""
SAMPLED = {"sample"}
"""Cases that the reference, which ignores sampling, cannot answer."""
TOLD_BY_SPARK = {"sample", "bounded"}
"""Cases whose records say more than the reference knows: fractions, bounds."""

Rows = list[dict[str, Any]]


def query_text(name: str) -> str:
    return (CASES / f"{name}.ins").read_text(encoding="utf-8")


def optimised(name: str) -> Plan:
    return optimise(plan_text(query_text(name), FUNCTIONS.check))[0]


# ── records ──────────────────────────────────────────────────────────────────────────────────────


def inputs_of(name: str, program: Program) -> dict[str, Path]:
    """The file of records of every stream."""
    scans = (*program.scans, *program.record_scans)
    streams = {scan.stream.name for scan in scans}
    own = {stream: CASES / f"{name}.{stream}.ndjson" for stream in streams}
    return {s: path if path.exists() else CASES / f"{name}.ndjson" for s, path in own.items()}


def records(name: str, query: QueryFile) -> list[ReferenceRecord]:
    found = []
    for path in sorted(CASES.glob(f"{name}*.ndjson")):
        stream = path.name.removeprefix(name).strip(".").rpartition("ndjson")[0].rstrip(".")
        declared = [s for s in query.streams if not stream or s.name == stream]
        time = str(declared[0].provider.get("time") or "timestamp")
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            record = ReferenceRecord(time=millis(fields[time]), fields=fields)
            found.append(ReferenceRecord(**record, stream=stream) if stream else record)
    return found


def millis(time: str | int) -> int:
    return time if isinstance(time, int) else round(datetime.fromisoformat(time).timestamp() * 1000)


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def from_reference(name: str) -> Rows:
    query = parse(query_text(name))
    return [told(result) for result in evaluate(query, records(name, query))]


def told(result: dict[str, Any]) -> dict[str, Any]:
    """A result of the reference as the output record has it."""
    window = {side: iso(result["window"][side]) for side in ("start", "end")}
    return {**result, "window": window}


def from_batch(spark: SparkSession, name: str) -> Rows:
    program = lower(optimised(name))
    inputs = {s: Input(path, format="ndjson") for s, path in inputs_of(name, program).items()}
    kept: list[Result] = []
    run_batch(
        spark,
        program,
        inputs,
        lambda lines: kept.extend(parse_results(lines)),
        spark_functions(FUNCTIONS),
    )
    return [json.loads(result.record) for result in kept]


def from_stream(spark: SparkSession, name: str, scratch: Path, max_bytes: int = TINY) -> Rows:
    program = lower(optimised(name))
    inputs = {
        stream: Input(path, format="ndjson", max_bytes=max_bytes)
        for stream, path in inputs_of(name, program).items()
    }
    kept: list[Result] = []
    functions = spark_functions(FUNCTIONS)
    with StreamRun(
        spark,
        program,
        inputs,
        lambda lines: kept.extend(parse_results(lines)),
        scratch,
        functions,
        True,
    ) as run:
        assert run.wait(120)
    return [json.loads(result.record) for result in kept]


def expected(name: str) -> Rows:
    lines = (CASES / f"{name}.out").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def same(rows: Iterable[dict[str, Any]]) -> Rows:
    """Records in one order, numbers without their last digits: what is compared."""
    return sorted((_rounded(row) for row in rows), key=_order)


def _order(row: dict[str, Any]) -> tuple[str, ...]:
    window = row["window"]
    parts = (json.dumps(row[part]) for part in ("keys", "value"))
    return (window["end"], row["insight"], window["start"], *parts)


def _rounded(value: Any) -> Any:
    """Every number as a float of ten digits: 8 and 8.0 are one number."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(f"{round(value, 9):.10g}") + 0.0


# ── the tests ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def writing(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--write-cases"))


@pytest.mark.parametrize("name", NAMES)
def test_plan(name: str, writing: bool) -> None:
    plan = show_plan(optimised(name)) + "\n"
    if writing:
        (CASES / f"{name}.plan").write_text(plan, encoding="utf-8")
    assert plan == (CASES / f"{name}.plan").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(set(NAMES) - SAMPLED))
def test_reference(name: str, writing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CASES / "functions")
    found = from_reference(name)
    if writing and name not in TOLD_BY_SPARK:
        write_output(name, found)
    assert same(exact(found)) == same(exact(expected(name)))


def write_output(name: str, rows: Rows) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in sorted(rows, key=_order))
    (CASES / f"{name}.out").write_text("".join(lines), encoding="utf-8")


def exact(rows: Rows) -> Rows:
    """Without what only sampling tells."""
    about = ("insight", "window", "keys", "value", "count")
    return [{part: row[part] for part in about} for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_batch(spark: SparkSession, name: str, writing: bool) -> None:
    found = from_batch(spark, name)
    if writing and name in TOLD_BY_SPARK:
        write_output(name, found)
    assert same(found) == same(expected(name))


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"bounded"}))
def test_stream(spark: SparkSession, name: str, scratch: Path) -> None:
    assert same(from_stream(spark, name, scratch)) == same(expected(name))


def test_a_bounded_stream_stays_within_its_bound(spark: SparkSession, scratch: Path) -> None:
    """A stream learns how few records will do; what it estimates is close to the exact result."""
    exact_values = {_place(row): row["value"] for row in expected("bounded")}
    found = from_stream(spark, "bounded", scratch)
    assert {_place(row) for row in found} == set(exact_values)
    for row in found:
        assert row["value"] == pytest.approx(exact_values[_place(row)], rel=0.1)
        assert 0 <= row["error"] < 0.1
        assert row["confidence"] == 0.95


def _place(row: dict[str, Any]) -> tuple[str, str]:
    return row["window"]["end"], row["insight"]
