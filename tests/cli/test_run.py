"""`fogline run` and `fogline explain`: inputs, outputs, bad and late records, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERY = """
s = STREAM FROM memory(name="s", time="time", lateness="2 s");
mean = COMPUTE AVG(x) BY device EVERY 10 s;
high = COMPUTE x BY device WHEN x > 4;
"""
RECORDS = [
    {"time": "2026-01-01T00:00:01Z", "device": "a", "x": 1},
    {"time": "2026-01-01T00:00:02Z", "device": "a", "x": 3},
    {"time": "2026-01-01T00:00:03Z", "device": "b", "x": 5},
    {"time": "2026-01-01T00:00:12Z", "device": "b", "x": 7},
]
MEANS = [("00:10", "a", 2.0, 2), ("00:10", "b", 5.0, 1), ("00:20", "b", 7.0, 1)]
HIGHS = [("00:03", "b", 5.0, 1), ("00:12", "b", 7.0, 1)]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def rows(out: str, insight: str) -> list[tuple[str, str, float, int]]:
    found = [json.loads(line) for line in out.splitlines()]
    return sorted(
        (r["window"]["end"][14:19], r["keys"]["device"], r["value"], r["count"])
        for r in found
        if r["insight"] == insight
    )


@pytest.mark.parametrize("mode", [(), ("--batch",), ("--max-bytes", "60")])
def test_json_lines(
    spark: SparkSession,
    fogline: Callable[..., Any],
    query: Callable[[str], Path],
    records: Path,
    mode: tuple[str, ...],
) -> None:
    told = fogline("run", query(QUERY), "--input", records, "--format", "ndjson", "--json", *mode)
    assert told.code == 0
    assert rows(told.out, "mean") == MEANS
    assert rows(told.out, "high") == HIGHS
    assert "5 results" in told.err
    assert "  high: 2\n  mean: 3\n" in told.err


def test_plain_lines(
    spark: SparkSession, fogline: Callable[..., Any], query: Callable[[str], Path], records: Path
) -> None:
    told = fogline("run", query(QUERY), "--input", records)
    assert told.code == 0
    assert "2026-01-01 00:00:10.000  mean  device=a  2\n" in told.out
    assert len(told.out.splitlines()) == 5
    assert told.err.startswith("4 records (")


def test_standard_input(
    spark: SparkSession,
    fogline: Callable[..., Any],
    query: Callable[[str], Path],
    records: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with records.open() as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        told = fogline("run", query(QUERY), "--input", "-", "--json")
    assert told.code == 0
    assert rows(told.out, "mean") == MEANS
    assert rows(told.out, "high") == HIGHS


def test_a_file_named_in_the_query(
    spark: SparkSession, fogline: Callable[..., Any], query: Callable[[str], Path], records: Path
) -> None:
    text = QUERY.replace('memory(name="s"', f'file(path="{records}"')
    told = fogline("run", query(text), "--json", "--batch")
    assert rows(told.out, "mean") == MEANS


def test_bad_and_late_records_are_counted_and_kept(
    spark: SparkSession, fogline: Callable[..., Any], query: Callable[[str], Path], tmp_path: Path
) -> None:
    lines = [json.dumps(record) for record in RECORDS]
    lines.insert(1, "this is no json")
    lines.insert(2, '{"x": 3, "device": "no time"}')
    lines.append(json.dumps({"time": "2026-01-01T00:00:01Z", "device": "a", "x": 99}))
    path = tmp_path / "records.ndjson"
    path.write_text("".join(f"{line}\n" for line in lines))
    told = fogline("run", query(QUERY), "--input", path, "--json", "--max-bytes", "60")
    assert told.code == 0
    assert rows(told.out, "mean") == MEANS
    folder = tmp_path / "query.rejects"
    assert f"stream s: 2 bad, 1 late, kept in {folder}" in told.err
    kept = [json.loads(line) for file in folder.rglob("*.ndjson") for line in file.open()]
    windows = [entry for entry in kept if entry["kind"] == "late"]
    assert [json.loads(entry["record"])["x"] for entry in windows] == [99]
    bad = {entry["record"]: entry["reason"] for entry in kept if entry["kind"] == "bad"}
    assert set(bad) == set(lines[1:3])
    assert all(bad.values())


def test_rejects_go_where_they_are_told_to(
    spark: SparkSession, fogline: Callable[..., Any], query: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "bad.ndjson"
    path.write_text('{"time": "yesterday", "x": 1}\n')
    folder = tmp_path / "elsewhere"
    for mode in ([], ["--batch"]):
        told = fogline("run", query(QUERY), "--input", path, "--rejects", folder, *mode)
        assert (told.code, told.out) == (0, "")
        assert f"stream s: 1 bad, 0 late, kept in {folder}" in told.err


def test_an_empty_input_has_no_results(
    spark: SparkSession, fogline: Callable[..., Any], query: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    for mode in ([], ["--batch"]):
        told = fogline("run", query(QUERY), "--input", tmp_path / "empty", *mode)
        assert (told.code, told.out) == (0, "")


WRONG = [
    (["--input", "nowhere.json"], 1, "there is no nowhere.json"),
    ([], 2, "cannot be read live yet (replay a file in its place: --input FILE)"),
    (["--input", "x", "--format", "yaml"], 2, "--format yaml is not one of senml"),
    (["--input", "x", "--speed", "fast"], 2, "neither a number above 0 nor max"),
    (["--input", "x", "--speed", "-1"], 2, "neither a number above 0 nor max"),
    (["--input", "-", "--batch"], 2, "--batch reads a whole file at once"),
    (["--input", "x", "--seconds", "0"], 2, "--seconds"),
]


@pytest.mark.parametrize(("options", "code", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_calls(
    fogline: Callable[..., Any],
    query: Callable[[str], Path],
    options: list[str],
    code: int,
    message: str,
) -> None:
    told = fogline("run", query(QUERY), *options)
    assert (told.code, told.out) == (code, "")
    assert message in told.err


def test_a_file_in_the_query_that_is_not_there(
    fogline: Callable[..., Any], query: Callable[[str], Path]
) -> None:
    told = fogline("run", query('s = STREAM FROM file(path="gone"); i = COMPUTE x;'))
    assert (told.code, told.out) == (1, "")
    assert told.err == "fogline: stream s: there is no gone\n"


def test_explain(
    spark: SparkSession, fogline: Callable[..., Any], query: Callable[[str], Path]
) -> None:
    path = query(QUERY)
    told = fogline("explain", path)
    assert told.code == 0
    for part in ("# plan, as written", "# windows_to_panes", "# plan, after the rules", "# Spark"):
        assert part in told.out
    without = fogline("explain", path, "--no-spark").out
    assert told.out.startswith(without.rstrip("\n"))
    document = json.loads(fogline("explain", path, "--json").out)
    assert {"query", "before", "rules", "after", "spark"} == set(document)
    assert set(document["spark"]) == {"windows", "records"}
