"""The table of cases: the Spark source, the gateway and the store see the same in every message."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.formats.readers import (
    ARRIVAL,
    Rows,
    Stored,
    Stream,
    by_columns,
    by_gateway,
    by_spark,
    by_store,
    seen,
)
from tests.formats.table import TABLE, Case, Text

pytestmark = pytest.mark.spark

FORMATS = list(TABLE)
CASES = [case for cases in TABLE.values() for case in cases]


def shown(case: Case) -> str:
    return f"{case.stream.format}-{case.payload[:50]!r}"


def check(case: Case, rows: Rows) -> None:
    """That rows hold what the table says, as numbers and as texts."""
    assert (rows is None) == (case.records is None), case.payload[:200]
    for row, expected in zip(rows or (), case.records or (), strict=True):
        assert row["time"] == expected.get("@", ARRIVAL), case.payload[:200]
        for name in case.stream.asked:
            number, _, text, _ = row[name]
            found: Any = text if number is None else number
            value = expected.get(name)
            if isinstance(value, Text):
                found, value = text, value.text
            assert found == value, (name, case.payload[:200])


def kept(case: Case) -> list[tuple[str, str, int, Any]]:
    """The values of a case that the store keeps."""
    found = []
    for record in case.records or ():
        entity = record.get(case.stream.entity or "", "t" if _may_be_topic(case.stream) else None)
        entity = entity.text if isinstance(entity, Text) else entity
        for name in case.stream.fields:
            value = record.get(name)
            if value is not None and not isinstance(value, Text) and entity is not None:
                found.append((name, str(entity), record.get("@", ARRIVAL), value))
    return found


def several(stream: Stream) -> int:
    """So many messages as go by columns where they can."""
    return 20 if stream.format in ("json", "ndjson") else 2


def _may_be_topic(stream: Stream) -> bool:
    return stream.entity is None or stream.format == "senml"


@pytest.mark.parametrize("name", FORMATS)
def test_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    for stream, cases in by_stream(name).items():
        found = by_spark(spark, tmp_path, stream, [case.payload for case in cases])
        for case, rows in zip(cases, found, strict=True):
            check(case, rows)
            assert rows == by_gateway(stream, case.payload), case.payload[:200]


def by_stream(name: str) -> dict[Stream, list[Case]]:
    found: dict[Stream, list[Case]] = {}
    for case in TABLE[name]:
        found.setdefault(case.stream, []).append(case)
    return found


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_gateway(case: Case) -> None:
    check(case, by_gateway(case.stream, case.payload))


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_store(case: Case) -> None:
    stream, expected = case.stream, kept(case)
    source = case.stream.readings(stream.fields)
    assert by_store(source, case.payload) == expected
    count = several(stream)
    many = by_columns(source, [case.payload] * count)
    assert sorted(many, key=str) == sorted(expected * count, key=str)


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_store_of_all_fields(case: Case) -> None:
    """What is nested in json and cbor is not among them."""
    stream = case.stream
    flat = stream.format in ("csv", "xml")
    names = [name for name in stream.fields if flat or "." not in name]
    expected = sorted((value for value in kept(case) if value[0] in names), key=str)
    for payloads in ([case.payload], [case.payload] * several(stream)):
        found = [v for v in by_columns(stream.readings(), payloads) if v[0] in names]
        assert sorted(found, key=str) == sorted(expected * len(payloads), key=str)


# ── damage ───────────────────────────────────────────────────────────────────────────────────────

SIGNS = [bytes([sign]) for sign in b',"}[\\0-e _.<>:\0\xa1\xc2\xc3\xff']
PIECES = [*SIGNS, b"null", b"\\u0061", b"1e5", b"<x/>", b"\r\n"]


def damaged(rng: random.Random, data: bytes) -> bytes:
    start, end = sorted(rng.choices(range(len(data) + 1), k=2))
    return rng.choice(
        [
            data[:end],
            data[:start] + data[start + 1 :],
            data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :],
            data[:end] + data[start:end] + data[end:],
            data[:start] + rng.choice(PIECES) + data[start:],
        ]
    )


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_messages(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Whatever the cases of the table become: all see the same in it, and nobody fails."""
    rng = random.Random(name)
    for stream, cases in by_stream(name).items():
        small = [case.payload for case in cases if len(case.payload) < 300]
        payloads = [damaged(rng, rng.choice(small)) for _ in range(400)]
        for payload, rows in zip(
            payloads, by_spark(spark, tmp_path, stream, payloads), strict=True
        ):
            assert rows == by_gateway(stream, payload), payload
            if stream.metric is None:
                source = stream.readings(stream.fields)
                assert bounded(by_store(source, payload)) == bounded(seen(stream, rows)), payload


def bounded(values: list[Stored]) -> list[Stored]:
    """Without what may be a number that no double can hold: as a text it looks like one."""
    return [value for value in values if not is_unbounded(value[3])]


def is_unbounded(value: float | str) -> bool:
    try:
        return not math.isfinite(float(value))
    except ValueError:
        return False
