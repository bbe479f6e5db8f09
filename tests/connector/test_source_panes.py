"""Panes made in the source: the partials of every channel, key and pane, against a plain loop."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BASE = 1_700_000_000_000
PANE = 1000
FIELDS = [
    {"name": "c0", "type": "string", "from": "room"},
    {"name": "c1", "type": "double", "from": "x"},
    {"name": "c2", "type": "double", "from": "y"},
]
ROOM = {"name": "room", "column": "c0"}
HOT = {"op": ">", "column": "c1", "value": 0}
KINDS = ["count", "sum", "logsum", "min", "max", "moments", "first", "last", "timed"]
SLOTS = [{"kind": kind, "inputs": [0]} for kind in KINDS] + [
    {"kind": "comoments", "inputs": [0, 1]},
    {"kind": "values", "inputs": [1]},
    {"kind": "events", "inputs": [0, 1]},
]
CHANNELS = [
    {"number": 0, "keys": [ROOM], "inputs": [{"column": "c1"}, {"column": "c2"}]},
    {"number": 3, "keys": [], "inputs": [{"column": "c1", "when": HOT}, None]},
]

Record = dict[str, Any]
Pair = tuple[float | None, float | None]


def comoments(pairs: list[tuple[float, float]]) -> list[float]:
    if not pairs:
        return [0.0] + [math.nan] * 5
    a, b = (statistics.fmean(side) for side in zip(*pairs, strict=True))
    return [
        len(pairs), a, b, sum((x - a) ** 2 for x, _ in pairs), sum((y - b) ** 2 for _, y in pairs),
        sum((x - a) * (y - b) for x, y in pairs),
    ]  # fmt: skip


def numbers(pane: int, rows: list[tuple[float, Pair]]) -> list[float]:
    timed = [(t, x) for t, (x, _) in rows if x is not None]
    xs = [x for _, x in timed]
    logs = [math.log(x) for x in xs if x > 0]
    none = [math.nan]
    moments = (
        [len(xs), statistics.fmean(xs), statistics.pvariance(xs) * len(xs)]
        if xs
        else [0.0, *none * 2]
    )
    origin = [pane] if xs else none
    return [
        len(xs), *([sum(xs)] if xs else none), *([sum(logs)] if logs else none),
        *([min(xs), max(xs)] if xs else none * 2), *moments,
        *(min(timed) if xs else none * 2), *(max(timed) if xs else none * 2),
        *comoments([((t - pane) / 1000, x) for t, x in timed]), *origin,
        *comoments([(x, y) for _, (x, y) in rows if x is not None and y is not None]),
    ]  # fmt: skip


def lists(rows: list[tuple[float, Pair]]) -> list[list[float]]:
    events = sorted((t, *(math.inf if v is None else v for v in pair)) for t, pair in rows)
    return [sorted(y for _, (_, y) in rows if y is not None), *map(list, zip(*events, strict=True))]


def expected(records: Iterable[Record]) -> dict[tuple[int, str, int], Any]:
    panes = defaultdict(list)
    for r in records:
        x, y = r.get("x"), r.get("y")
        pane = r["time"] // PANE * PANE
        if x is not None or y is not None:
            room = json.dumps(r["room"], ensure_ascii=False)
            panes[0, f'{{"room":{room}}}', pane].append((r["time"], (x, y)))
        if x is not None and x > 0:
            panes[3, "{}", pane].append((r["time"], (x, None)))
    return {key: (numbers(key[2], rows), lists(rows)) for key, rows in panes.items()}


def random_records(rng: random.Random, count: int) -> list[Record]:
    def record(n: int) -> Record:
        made = {"time": BASE + n * 7, "room": rng.choice(["a", "b é", None, 'q"uote'])}
        made |= {name: round(rng.gauss(1, 3), 3) for name in ("x", "y") if rng.random() < 0.8}
        return made

    return [record(n) for n in range(count)]


def close(left: list[float], right: list[float]) -> bool:
    return left == pytest.approx(right, rel=1e-9, abs=1e-9, nan_ok=True)


def read(spark: SparkSession, path: Path, split: int) -> list[Any]:
    spec = {"paneMs": PANE, "channels": CHANNELS, "slots": SLOTS}
    options = {"format": "json", "time": "time", "splitBytes": str(split)}
    reader = spark.read.format("fogline").options(**options)
    reader = reader.option("fields", json.dumps(FIELDS)).option("panes", json.dumps(spec))
    return reader.load(str(path)).collect()


def as_infinite(lists: list[list[float]]) -> list[list[float]]:
    return [[math.inf if math.isnan(v) else v for v in values] for values in lists]


def test_every_partial(spark: SparkSession, tmp_path: Path) -> None:
    records = random_records(random.Random(3), 3000)
    path = tmp_path / "in"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    wanted = expected(records)
    rows = read(spark, path, 1 << 20)
    assert len(rows) == len(wanted)
    for row in rows:
        nums, values = wanted[row["channel"], row["key"], row["pane"]]
        assert close(row["nums"], nums), row
        first, *events = as_infinite(row["lists"])
        assert [
            sorted(first),
            *map(list, zip(*sorted(zip(*events, strict=True)), strict=True)),
        ] == values


def test_partitions_each_give_their_part(spark: SparkSession, tmp_path: Path) -> None:
    records = random_records(random.Random(4), 2000)
    path = tmp_path / "in"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    counts: dict[Any, float] = defaultdict(float)
    rows = read(spark, path, 3000)
    for row in rows:
        counts[row["channel"], row["key"], row["pane"]] += row["nums"][0]
    wanted = expected(records)
    assert len(rows) > len(wanted)
    assert counts == {key: nums[0] for key, (nums, _) in wanted.items()}


def test_keys_that_differ_in_one_byte_are_different(spark: SparkSession, tmp_path: Path) -> None:
    """Of every length: they are hashed and compared several bytes at a time."""
    lengths = range(1, 40)
    ones = {"s" * n for n in lengths}
    others = {"s" * at + "t" + "s" * (n - at - 1) for n in lengths for at in range(n)}
    keys = sorted(ones | others | {"", "s" * 1000})
    records = [
        {"time": BASE + n % PANE, "room": key, "x": n} for n, key in enumerate([*keys, *keys])
    ]
    path = tmp_path / "in"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    found = [row for row in read(spark, path, 1 << 20) if row["channel"] == 0]
    assert {row["key"]: row["nums"][0] for row in found} == {f'{{"room":"{k}"}}': 2 for k in keys}
    assert len(found) == len(keys)
