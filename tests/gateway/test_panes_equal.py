"""Panes of the gateway and of the Spark source, for the same messages: the same numbers."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.gateway.operators.hashing import unit, xxh64
from tests.gateway.helpers import BASE, run

pytestmark = pytest.mark.spark

PANE = 1000
FIELDS = [
    {"name": "c0", "type": "string", "from": "room"},
    {"name": "c1", "type": "double", "from": "x"},
    {"name": "c2", "type": "double", "from": "y"},
    {"name": "c3", "type": "double", "from": "k"},
]
KINDS = ["count", "sum", "min", "max", "moments", "first", "last", "timed", "logsum"]
SPEC: dict[str, Any] = {
    "paneMs": PANE,
    "channels": [
        {
            "number": 0,
            "keys": [{"name": "room", "column": "c0"}],
            "inputs": [{"column": "c1"}, {"column": "c2"}],
        },
        {
            "number": 3,
            "keys": [{"name": "k", "column": "c3"}],
            "inputs": [{"column": "c1", "when": {"op": ">", "column": "c1", "value": 0}}, None],
        },
        {"number": 4, "keys": [], "inputs": [{"column": "c0"}, None]},
    ],
    "slots": [{"kind": kind, "inputs": [0]} for kind in KINDS]
    + [
        {"kind": "comoments", "inputs": [0, 1]},
        {"kind": "values", "inputs": [1]},
        {"kind": "events", "inputs": [0, 1]},
    ],
}
LOGSUM = 18
ROOMS = ["a", "b é", None, 'q"\\', "\u0001\n\u001f/", "😀\u007f", "7"]


def reading(rng: random.Random, n: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "room": rng.choice(ROOMS),
        "k": rng.choice([0, -0.0, 1.5, 1e7, 12345678.25]),
    }
    made |= {name: round(rng.gauss(1, 3), 3) for name in ("x", "y") if rng.random() < 0.8}
    return made


def json_lines(rng: random.Random) -> list[str]:
    odd: list[Any] = [" 2.5 ", "1e3", True, "none", {"q": 1}, 1e400, -0.0]
    lines = []
    for n in range(400):
        row = reading(rng, n) | {"time": BASE + n * 7}
        if rng.random() < 0.1:
            row["x"] = rng.choice(odd)
        lines.append(json.dumps(row).replace("Infinity", "1e400"))
    return [*lines, "{broken", '{"x": 1}']


def senml_lines(rng: random.Random) -> list[str]:
    lines = []
    for n in range(300):
        row = reading(rng, n)
        base = {"bt": (BASE + n * 7) / 1000, "bn": row.pop("room") or ""}
        kinds = {str: "vs", bool: "vb"}
        entries = [{"n": name, kinds.get(type(v), "v"): v} for name, v in row.items()]
        if rng.random() < 0.2:
            base["bv"] = 2.5
        form = rng.choice(["pack", "old", "arrival"])
        if form == "pack":
            lines.append(json.dumps([base, *entries]))
        else:
            before = f"{BASE + n}," if form == "arrival" else ""
            lines.append(before + json.dumps({"e": entries, **base}))
    return [*lines, "[{]", '[{"n": 3, "v": 1}]', '[{"x_": 1}]']


def by_source(spark: SparkSession, path: Path, options: dict[str, str]) -> dict[Any, Any]:
    reader = spark.read.format("fogline").options(**options)
    reader = reader.option("fields", json.dumps(FIELDS)).option("panes", json.dumps(SPEC))
    rows = reader.load(str(path)).collect()
    return {(r["channel"], r["key"], r["pane"]): (r["nums"], r["lists"]) for r in rows}


def by_gateway(lines: list[str], options: dict[str, str]) -> dict[Any, Any]:
    step = {"op": "panes", **SPEC, "lateness": 1000}
    payloads = [line.encode() for line in lines]
    records, _ = run([step], payloads, **{"time": None, "fields": FIELDS} | options)
    found = {(r["channel"], r["key"], r["pane"]): (r["nums"], r["lists"]) for r in records}
    assert len(found) == len(records)
    assert [r["t"] for r in records] == sorted(r["t"] for r in records)
    assert all(r["t"] // 1000 // PANE * PANE == r["pane"] for r in records)
    return found


def nan(values: list[Any]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def bits(values: list[Any]) -> list[str]:
    return [float(value).hex() for value in nan(values)]


CASES: list[tuple[Callable[[random.Random], list[str]], dict[str, str]]] = [
    (json_lines, {"format": "json", "time": "time"}),
    (senml_lines, {"format": "senml", "entity": "room"}),
]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("make", "options"), CASES, ids=["json", "senml"])
def test_the_same_numbers(
    spark: SparkSession,
    tmp_path: Path,
    make: Callable[[random.Random], list[str]],
    options: dict[str, str],
    seed: int,
) -> None:
    lines = make(random.Random(seed))
    path = tmp_path / "in"
    path.write_text("\n".join(lines), encoding="utf-8")
    wanted, found = by_source(spark, path, options), by_gateway(lines, options)
    assert found.keys() == wanted.keys()
    for key, (nums, lists) in wanted.items():
        own, own_lists = found[key]
        assert (
            own[LOGSUM] == pytest.approx(nums[LOGSUM], rel=1e-14, nan_ok=True)
            or own[LOGSUM] is None
        )
        assert bits(own[:LOGSUM] + own[LOGSUM + 1 :]) == bits(nums[:LOGSUM] + nums[LOGSUM + 1 :])
        assert [bits(values) for values in own_lists] == [bits(values) for values in lists]


def test_the_same_sample(spark: SparkSession, tmp_path: Path) -> None:
    lines = json_lines(random.Random(5))[:-2]
    path = tmp_path / "in"
    path.write_text("\n".join(lines), encoding="utf-8")
    reader = spark.read.format("fogline").options(format="json", time="time", sample="0.3")
    rows = reader.option("fields", json.dumps([{"name": "_raw"}])).load(str(path)).collect()
    assert sorted(r["_raw"] for r in rows) == sorted(
        line for line in lines if unit(xxh64(line.encode())) < 0.3
    )
