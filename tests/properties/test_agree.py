"""Meaning is one: batch, micro-batch and the plain reference give the same for random queries."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from fogline.language import parse
from fogline.spark.compile.scan import Input
from fogline.testing import generate
from fogline.testing.reference import evaluate
from tests.properties.agree import (
    differences,
    in_batch,
    in_stream,
    indexed,
    program_of,
    write_records,
)
from tests.tiers import seeds

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_batch_stream_and_reference_agree(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = generate.case(seed)
    expected = indexed(evaluate(parse(case.text), case.records))
    program = program_of(case.text)
    path = write_records(tmp_path / "records.ndjson", case.records)
    most = Random(seed).choice([300, 1200, 5000, 1_000_000])
    batch = in_batch(spark, program, {"s": Input(path)})
    assert differences(expected, batch) == [], case.text
    stream = in_stream(spark, program, {"s": Input(path, max_bytes=most)}, tmp_path)
    assert differences(expected, stream) == [], case.text


def test_the_comparison_can_fail() -> None:
    one = indexed([_record(1.0, 3)])
    assert differences(one, indexed([_record(1.0 + 1e-12, 3)])) == []
    assert differences(one, indexed([_record(1.1, 3)]))
    assert differences(one, indexed([_record(1.0, 4)]))
    assert differences(one, indexed([]))
    assert differences(indexed([]), one)
    assert differences(one, indexed([_record(1.0, 3), _record(1.0, 3)]))


def _record(value: float, count: int) -> dict[str, object]:
    window = {"start": 0, "end": 1000}
    return {"insight": "a", "window": window, "keys": {}, "value": value, "count": count}
