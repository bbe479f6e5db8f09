"""Compares ways of running a query: same windows, same keys, values equal up to rounding."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fogline.plan.analysis.build import plan_text
from fogline.plan.lowering.program import Program, lower
from fogline.plan.rules import optimise
from fogline.spark.compile.scan import Input
from fogline.spark.run.engine import StreamRun, run_batch
from fogline.testing.reference import ReferenceRecord

Found = dict[tuple[Any, ...], list[tuple[Any, int]]]


def write_records(path: Path, records: Sequence[ReferenceRecord]) -> Path:
    """The records as lines, in order of arrival; the time is the field `time`."""
    lines = [json.dumps({"time": r["time"], **r["fields"]}) for r in records]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def program_of(text: str) -> Program:
    return lower(optimise(plan_text(text))[0])


def in_batch(spark: SparkSession, program: Program, inputs: Mapping[str, Input]) -> Found:
    found: list[str] = []
    run_batch(spark, program, inputs, lambda lines: found.extend(lines.decode().splitlines()))
    return indexed(json.loads(line) for line in found)


def in_stream(
    spark: SparkSession, program: Program, inputs: Mapping[str, Input], scratch: Path
) -> Found:
    found: list[str] = []
    with StreamRun(
        spark,
        program,
        inputs,
        lambda lines: found.extend(lines.decode().splitlines()),
        scratch,
        available_now=True,
    ) as run:
        assert run.wait(300)
    return indexed(json.loads(line) for line in found)


def indexed(records: Any, to_millis: Callable[[Any], int] | None = None) -> Found:
    """Records by insight, window and keys; several values stand sorted."""
    result: Found = {}
    for record in records:
        window = record["window"]
        start, end = (to_ms(window[k]) for k in ("start", "end"))
        key = (record["insight"], start, end, json.dumps(record["keys"], sort_keys=True))
        result.setdefault(key, []).append((record["value"], record["count"]))
    for values in result.values():
        values.sort(key=lambda pair: (pair[1], json.dumps(pair[0])))
    return result


def to_ms(moment: Any) -> int:
    if isinstance(moment, int):
        return moment
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def differences(left: Found, right: Found, most: int = 5) -> list[str]:
    """What differs, in words; empty when the two agree."""
    told = [f"only left: {k} {left[k]}" for k in left if k not in right]
    told += [f"only right: {k} {right[k]}" for k in right if k not in left]
    for key in left.keys() & right.keys():
        if len(left[key]) != len(right[key]) or not all(
            close(a, b) for a, b in zip(left[key], right[key], strict=True)
        ):
            told.append(f"{key}: {left[key]} and {right[key]}")
    return sorted(told)[:most]


def close(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
    return bool(a == b)
