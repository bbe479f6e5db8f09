"""Values of the fabric as records: exact, whatever names, labels and numbers there are."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.fabric.query import records
from fogline.fabric.query.records import descriptions_of, from_node, payloads, write_lines
from fogline.formats.times import time_of
from fogline.model.question import FIELDS
from fogline.storage.catalog.metadata import Description
from fogline.storage.errors import BadValue
from fogline.storage.store import SiteStore
from fogline.storage.values import END_TIME, FIRST_TIME, Value, from_values

NOON = 1_767_268_800_000_000


def table(*values: Value, node: str = "north") -> pa.Table:
    return from_node(from_values(values), node)


def read(found: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(payload) for payload in found]


def test_a_value_is_a_record() -> None:
    value = Value("cpu", "pod-1", NOON + 1, 0.1, {"zone": "a"})
    assert payloads(table(value)) == [
        b'{"metricID":"cpu","entityID":"pod-1","nodeID":"north",'
        b'"timestamp":"2026-01-01T12:00:00.000001Z","value":0.1,"zone":"a"}'
    ]


def test_lines_are_the_same_records() -> None:
    found = table(*(Value(f"m{i % 3}", "e", NOON + i, float(i), {"n": str(i)}) for i in range(99)))
    file = io.BytesIO()
    write_lines(found, file)
    assert file.getvalue().endswith(b"\n")
    assert file.getvalue().splitlines() == payloads(found)


def test_nothing_gives_nothing() -> None:
    file = io.BytesIO()
    write_lines(table(), file)
    assert (payloads(table()), file.getvalue()) == ([], b"")


def test_labels_never_replace_what_every_record_has() -> None:
    labels = dict.fromkeys(FIELDS, "wrong") | {"good": "right"}
    value = Value("cpu", "pod", NOON, 1.0, labels)
    bare = Value("cpu", "pod", NOON, 1.0, {"value": "wrong"})
    one, other = read(payloads(table(value, bare)))
    assert one == other | {"good": "right"}
    assert one["value"] == 1.0


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_missing(number: float) -> None:
    assert read(payloads(table(Value("m", "e", NOON, number))))[0]["value"] is None


def test_a_text_is_a_text() -> None:
    values = [Value("m", "e", NOON, text) for text in ('a"b\\', "", "NaN", "line\nbreak", "é😀\0")]
    found = payloads(table(*values, Value("m", "e", NOON, 2.5)))
    assert [r["value"] for r in read(found)] == [*(v.value for v in values), 2.5]
    assert not any(b"\n" in payload for payload in found)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
VALUES = st.builds(
    Value,
    NAMES,
    NAMES,
    st.integers(FIRST_TIME, END_TIME - 1),
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), NAMES),
    st.dictionaries(NAMES | st.sampled_from(FIELDS), NAMES, max_size=3),
)


@given(st.lists(VALUES, max_size=8), NAMES)
def test_every_value_comes_back(values: list[Value], node: str) -> None:
    found = read(payloads(table(*values, node=node)))
    back = [
        Value(r.pop("metricID"), r.pop("entityID"), time_of(r.pop("timestamp")), r.pop("value"), r)
        for r in found
        if r.pop("nodeID") == node
    ]
    kept = [
        {key: text for key, text in value.labels.items() if key not in FIELDS} for value in values
    ]
    assert [b.labels for b in back] == kept
    assert [(b.metric, b.entity, b.time, b.value) for b in back] == [
        (v.metric, v.entity, v.time, v.value) for v in values
    ]


def test_large_tables_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = table(*(Value("m", f"e{i}", NOON + i, float(i), {"n": "x" * i}) for i in range(100)))
    whole = payloads(found)
    monkeypatch.setattr(records, "_BYTES", 200)
    assert payloads(found) == whole


# ── metadata ─────────────────────────────────────────────────────────────────────────────────────


def test_metadata_are_fields_behind_labels(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        store.metadata.put("cpu", Description(unit="%", entity_type="POD", description="load"))
        store.metadata.put("cpu", Description(entity_type="HOST"), "host")
        store.metadata.put("gone", Description(unit="V"))
        store.metadata.remove("gone")
        known = descriptions_of(store.metadata.table())
    values = [
        Value("cpu", "pod", NOON, 1.0),
        Value("cpu", "host", NOON, 2.0),
        Value("cpu", "pod", NOON, 3.0, {"unit": "own", "zone": "a"}),
        Value("gone", "pod", NOON, 4.0),
    ]
    found = [
        {key: text for key, text in record.items() if key not in FIELDS}
        for record in read(payloads(table(*values), known))
    ]
    assert found == [
        {"unit": "%", "entityType": "POD", "description": "load"},
        {"entityType": "HOST"},
        {"unit": "own", "entityType": "POD", "description": "load", "zone": "a"},
        {},
    ]


def test_a_table_without_metadata_is_refused() -> None:
    with pytest.raises(BadValue):
        descriptions_of(pa.table({"metric": ["cpu"]}))


# ── tables of others ─────────────────────────────────────────────────────────────────────────────


def test_labels_that_are_none_are_left_out() -> None:
    texts = [
        "no json",
        "[1]",
        '{"a": {"b": 1}, "c": 7, "d": "kept"}',
        '{"s": "\\ud800"}',
        "[" * 9999,
    ]
    plain = table(*(Value("m", "e", NOON, 1.0) for _ in texts))
    place = plain.column_names.index("labels")
    found = read(payloads(plain.set_column(place, "labels", pa.array(texts))))
    assert [set(r) - set(FIELDS) for r in found] == [set(), set(), {"d"}, set(), set()]


@pytest.mark.parametrize("name", ["node", "metric", "entity", "time", "value", "text", "labels"])
def test_a_missing_column_is_refused(name: str) -> None:
    with pytest.raises(BadValue):
        payloads(table(Value("m", "e", NOON, 1.0)).drop_columns([name]))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("metric", pa.nulls(1, pa.string())),
        ("node", pa.nulls(1, pa.string())),
        ("time", pa.nulls(1, pa.timestamp("us"))),
        ("time", pa.array([END_TIME], pa.timestamp("us"))),
        ("time", pa.array(["yesterday"])),
        ("value", pa.array([[1.0]])),
        ("metric", pa.array([b"\xff"])),
    ],
)
def test_a_column_of_something_else_is_refused(name: str, column: Any) -> None:
    plain = table(Value("m", "e", NOON, 1.0))
    with pytest.raises(BadValue):
        payloads(plain.set_column(plain.column_names.index(name), name, column))
