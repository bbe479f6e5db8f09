"""What is left out: filters with SQL's null logic, samples that never change, wrong options."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIELDS = "i long, d double, s string, b boolean"
RECORDS = [
    {"d": d, "s": s, "b": b}
    for d in (None, -1.5, 0, 2.5)
    for s in (None, "", "ab", "abc", "ä")
    for b in (None, True, False)
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "in"
    path.write_text(
        "".join(json.dumps({"i": i, **record}) + "\n" for i, record in enumerate(RECORDS))
    )
    return path


def compare(op: str, column: str, value: Any) -> dict[str, Any]:
    return {"op": op, "column": column, "value": value}


def sql(condition: dict[str, Any]) -> str:
    """The same condition for Spark."""
    op = condition["op"]
    if op in ("and", "or"):
        return "(" + f" {op} ".join(map(sql, condition["args"])) + ")"
    if op == "not":
        return f"(not {sql(condition['arg'])})"
    if op == "in":
        return f"({condition['column']} in ({', '.join(map(json.dumps, condition['values']))}))"
    if op == "prefix":
        return f"startswith({condition['column']}, {json.dumps(condition['value'])})"
    return f"({condition['column']} {op} {json.dumps(condition['value'])})"


def random_condition(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    kind = rng.choice(["and", "or", "not", "leaf"]) if depth else "leaf"
    if kind == "not":
        return {"op": "not", "arg": random_condition(rng, depth - 1)}
    if kind != "leaf":
        return {
            "op": kind,
            "args": [random_condition(rng, depth - 1) for _ in range(rng.randint(1, 3))],
        }
    column = rng.choice("idsb")
    values = {
        "i": [3, 20.5, None],
        "d": [0, -1.5, 1, None],
        "s": ["", "ab", "b", "ä", None],
        "b": [True, False, None],
    }[column]
    if rng.random() < 0.3:
        return {
            "op": "in",
            "column": column,
            "values": rng.sample(values, rng.randint(1, len(values))),
        }
    if column == "s" and rng.random() < 0.3:
        return compare("prefix", "s", rng.choice(["", "a", "abc"]))
    ops = ["==", "!="] if column == "b" else [">", ">=", "<", "<=", "==", "!="]
    return compare(rng.choice(ops), column, rng.choice(values))


@pytest.mark.parametrize("seed", range(25))
def test_filter_is_what_spark_says(
    spark: SparkSession, batch: Callable, path: Path, seed: int
) -> None:
    condition = random_condition(random.Random(seed))
    frame = spark.read.schema("i long, d double, s string, b boolean").json(str(path))
    expected = [row["i"] for row in frame.where(sql(condition)).collect()]
    assert [row["i"] for row in batch(path, "json", FIELDS, filter=condition)] == expected


def test_filter_on_time(batch: Callable, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text('{"t": 1700000000}\n{"t": 1700000001}\n')
    condition = compare(">", "_time", "2023-11-14T22:13:20Z")
    assert [row["t"] for row in batch(path, "json", "t long", time="t", filter=condition)] == [
        1700000001
    ]


def test_pruned_columns_do_not_change_the_rows(spark: SparkSession, path: Path) -> None:
    fields = json.dumps(
        [{"name": name, "type": kind} for name, kind in (("i", "long"), ("d", "double"))]
    )
    reader = spark.read.format("fogline").option("format", "json").option("fields", fields)
    frame = reader.option("filter", json.dumps(compare(">", "d", 0))).load(str(path))
    assert frame.count() == 15
    assert [row["i"] for row in frame.select("i").collect()] == list(range(45, 60))


def many(folder: Path) -> Path:
    path = folder / "many"
    path.write_text("".join(f'{{"i": {i}}}\n' for i in range(4000)))
    return path


def test_sample_is_decided_by_content(batch: Callable, stream: Callable, tmp_path: Path) -> None:
    path = many(tmp_path)
    tenth = {row["i"] for row in batch(path, "json", "i long", sample=0.1)}
    assert 300 < len(tenth) < 500
    assert {row["i"] for row in batch(path, "json", "i long", sample=0.1, splitBytes=1000)} == tenth
    assert {
        row["i"] for row in stream(path, "json", "i long", sample=0.1, maxBytesPerTrigger=20_000)
    } == tenth
    assert tenth < {row["i"] for row in batch(path, "json", "i long", sample=0.3)}
    other = {row["i"] for row in batch(path, "json", "i long", sample=0.1, sampleSeed=7)}
    assert len(other & tenth) < 100
    assert batch(path, "json", "i long", sample=0) == []


def test_live_fraction(spark: SparkSession, stream: Callable, tmp_path: Path) -> None:
    path = many(tmp_path)
    control = spark.sparkContext._jvm.io.fogline.source.SampleControl
    assert control.get("nobody") == 1.0
    control.set("live", 0.25)
    assert control.get("live") == 0.25
    rows = stream(path, "json", "i long, _fraction double", control="live")
    assert 800 < len(rows) < 1200
    assert {row["_fraction"] for row in rows} == {0.25}
    with pytest.raises(Exception, match="not between 0 and 1"):
        control.set("live", 1.5)


def test_hash_tells_records_apart(batch: Callable, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text('[{"i": 1}, {"i": 1}]\n{"i": 1}\n{"i": 1}\n')
    first, second, third, fourth = (row["_hash"] for row in batch(path, "json", "i long, _hash"))
    assert len({first, second, third}) == 3
    assert third == fourth


def test_raw(batch: Callable, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text('{"i": "ü"}\r\n')
    assert batch(path, "json", "_raw")[0]["_raw"] == '{"i": "ü"}'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "yaml"}, "option format: yaml is none of"),
        ({"path": "/nowhere/at/all"}, "there is no file or folder /nowhere/at/all"),
        ({"fields": "x"}, "option fields is not JSON"),
        ({"fields": "{}"}, "option fields: expected a JSON list"),
        ({"fields": '[{"type": "long"}]'}, "a column has no name"),
        ({"fields": '[{"name": "a", "type": "int"}]'}, "type of column a is none of"),
        (
            {"fields": '[{"name": "a", "type": "long"}, {"name": "a", "type": "long"}]'},
            "column a is there twice",
        ),
        ({"fields": '[{"name": "_time", "type": "long"}]'}, "column _time is there twice"),
        ({"sample": "2"}, "option sample: 2 is not a number from 0 to 1"),
        ({"sample": "x"}, "option sample: x is not a number from 0 to 1"),
        ({"splitBytes": "0"}, "option splitBytes: 0 is not an integer from 1 on"),
        ({"lateness": "-1"}, "option lateness: -1 is not an integer from 0 on"),
        ({"maxBytesPerTrigger": "many"}, "option maxBytesPerTrigger: many is not an integer"),
        ({"tail": "yes"}, "option tail: yes is neither true nor false"),
        ({"header": "{}"}, "option header: expected a JSON list"),
        ({"metricField": "m"}, "metricField and valueField go together"),
        ({"filter": "["}, "option filter is not JSON"),
        ({"filter": "[]"}, "option filter: expected an object"),
        ({"filter": '{"op": "~", "column": "a", "value": 1}'}, "unknown operator ~"),
        ({"filter": '{"op": ">", "column": "z", "value": 1}'}, "column z is not in option fields"),
        ({"filter": '{"op": ">", "column": "a"}'}, '"value" is missing'),
        ({"filter": '{"op": ">", "column": "a", "value": "x"}'}, "column a is a number"),
        (
            {"filter": '{"op": "prefix", "column": "a", "value": "x"}'},
            "prefix needs a string column",
        ),
        ({"filter": '{"op": "and"}'}, "need a list"),
        ({"filter": '{"op": "not"}'}, "expected an object"),
    ],
)
def test_wrong_options(
    spark: SparkSession, path: Path, options: dict[str, str], message: str
) -> None:
    good = {"path": str(path), "format": "json", "fields": '[{"name": "a", "type": "long"}]'}
    with pytest.raises(IllegalArgumentException) as caught:
        spark.read.format("fogline").options(**{**good, **options}).load().collect()
    assert message in str(caught.value)


def test_missing_options(spark: SparkSession, path: Path) -> None:
    for name in ("format", "fields", "path"):
        options = {"format": "json", "fields": "[]", "path": str(path)}
        del options[name]
        with pytest.raises(Exception, match=f"option {name} is missing"):
            spark.read.format("fogline").options(**options).load().collect()
