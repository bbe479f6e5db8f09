"""Tables over the wire: exactly what went in comes out, and nothing hostile gets through."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import DataError
from fogline.fabric.api.routes_values import with_node
from fogline.fabric.api.values_body import from_arrow_body, from_json_body
from fogline.fabric.http.arrow import from_arrow, to_arrow
from fogline.fabric.query import times
from fogline.fabric.query.json_tables import rows_json, values_json
from fogline.fabric.query.paging import PageStart
from fogline.fabric.query.query_types import ChangeOffset
from fogline.storage.errors import BadQuery, BadValue
from fogline.storage.values import END_TIME, FIRST_TIME, Value, batch, from_values, to_values
from tests.fabric.kit_node import START
from tests.storage.kit import same_values

VALUE = st.builds(
    Value,
    st.text(max_size=5),
    st.text(max_size=5),
    st.integers(FIRST_TIME, END_TIME - 1),
    st.one_of(st.floats(), st.text(max_size=5)),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


def told(values: list[Value]) -> list[dict[str, Any]]:
    found = json.loads(values_json(with_node(from_values(values), "north")))
    assert all(item.pop("node") == "north" for item in found)
    return list(found)


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(VALUE, max_size=8))
def test_values_survive_json(values: list[Value]) -> None:
    body = json.dumps({"values": told(values)}).encode()
    assert same_values(to_values(from_json_body(body, now=0)), values)


def test_what_json_says() -> None:
    values = [
        Value("cpu", 'a"b', START + 678_000, 0.5, {"x": "é"}),
        Value("cpu", "b", START, "on"),
        Value("cpu", "c", START, math.nan),
        Value("cpu", "d", START, -math.inf),
    ]
    first, second, third, fourth = told(values)
    assert first["time"] == "2026-01-01T00:00:00.678Z"
    assert (first["entity"], first["value"], first["labels"]) == ('a"b', 0.5, {"x": "é"})
    assert (second["value"], second["labels"]) == ("on", {})
    assert (third["value"], third["number"]) == ("NaN", True)
    assert (fourth["value"], fourth["number"]) == ("-Infinity", True)
    assert told([Value("a", "b", START + 1, 1.0)])[0]["time"] == "2026-01-01T00:00:00.000001Z"
    assert told([]) == []


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, math.nan, math.inf, None]),
        pa.array([2**63 - 1, 0, -1, None]),
        pa.array([True, False, None, None]),
        pa.array([START, 0, FIRST_TIME, None]).cast(pa.timestamp("us")),
        pa.array([2**62, 0, 1, None]).cast(pa.timestamp("s")),
        pa.array([1, 2, 3, None]).cast(pa.timestamp("ns", "UTC")),
        pa.array([1, 2, 3, None], pa.int32()).cast(pa.date32()),
        pa.array([b"\xff", b"", b"a", None]),
        pa.array([[1.0, math.nan], [], None, [math.inf]]),
        pa.array([{"x": math.nan}, {"x": 1.0}, None, {"x": None}]),
        pa.array(["a", '"', "\u2028", None]).dictionary_encode(),
        pa.array([1, 2, 3, None]).cast(pa.decimal128(20)),
    ],
)
def test_rows_of_any_type_are_json_or_refused(column: Any) -> None:
    table = pa.table({"x": column})
    try:
        found = json.loads(rows_json(table), parse_constant=pytest.fail)
    except BadQuery:
        assert column.type.unit == "s"  # only years that cannot be written
        return
    assert len(found) == 4
    assert found[3]["x"] is None or column.type == pa.list_(pa.float64()) or "x" in found[3]


# ── Arrow ────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(VALUE, max_size=8))
def test_values_survive_arrow(values: list[Value]) -> None:
    table, extra = from_arrow(to_arrow(from_values(values), {"next": "é"}))
    assert extra == {"next": "é"}
    assert same_values(to_values(table), values)
    assert same_values(to_values(from_arrow_body(to_arrow(table), now=0)), values)


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


PLAIN = batch(["a"] * 40, ["b"] * 40, list(range(40)), [1.0] * 40, None, ['{"k":"v"}'] * 40)


@pytest.mark.parametrize("method", ["lz4", "zstd"])
def test_compressed_streams_are_refused(method: str) -> None:
    with pytest.raises(BadValue, match="compressed"):
        from_arrow(stream(PLAIN, compression=method))
    dictionary_only = PLAIN.select(["metric"]).slice(0, 1)
    with pytest.raises(BadValue, match="compressed"):
        from_arrow(stream(dictionary_only, compression=method))


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 100, b"\xff" * 100, b"ARROW1\0\0", stream(PLAIN)[:-9], stream(PLAIN)[:300],
     stream(pa.table({"x": pa.nulls(1_000_000_000)})),
     stream(PLAIN.replace_schema_metadata({"fogline": "["})),
     stream(PLAIN.replace_schema_metadata({"fogline": "[1]"})),
     stream(PLAIN.replace_schema_metadata({"fogline": "[" * 100_000}))],
)  # fmt: skip
def test_bytes_that_are_no_table(data: bytes) -> None:
    with pytest.raises(BadValue):
        from_arrow(data)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_streams_give_an_error_or_sound_values(seed: int) -> None:
    good, chance = stream(PLAIN), random.Random(seed)
    for _ in range(400):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            found = from_arrow_body(bytes(data), now=0)
        except BadValue:
            continue
        assert all(value.metric is not None for value in to_values(found))


GOOD = {"metric": ["a"], "entity": ["b"], "value": [1.0]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": [None]}, {"entity": [1]}, {"metric": ["m" * 2_000]}, {"value": ["x"]},
        {"value": [None]}, {"text": ["both"]}, {"time": ["2026"]}, {"time": [None]},
        {"time": [FIRST_TIME - 1]}, {"time": pa.array([2**62]).cast(pa.timestamp("s"))},
        {"labels": ["no json"]}, {"labels": ["[1]"]}, {"labels": ['{"a":1}']}, {"labels": [5]},
        {"labels": ["[" * 100_000]}, {"text": ["x" * 70_000], "value": [None]}, {"other": [1]},
        {"metric": [["a"]]},
    ],
)  # fmt: skip
def test_columns_that_are_no_values(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        from_arrow_body(to_arrow(pa.table(GOOD | wrong)), now=0)


def test_columns_are_read_generously() -> None:
    zoned = pa.array([START]).cast(pa.timestamp("us", "Europe/Berlin"))
    for time in ([START], zoned, zoned.cast(pa.timestamp("ns", "UTC"))):
        found = from_arrow_body(to_arrow(pa.table(GOOD | {"time": time, "value": [1]})), now=5)
        assert to_values(found) == [Value("a", "b", START, 1.0)]
    text = pa.table({"metric": ["a"], "entity": ["b"], "text": ["on"]})
    assert to_values(from_arrow_body(to_arrow(text), now=5)) == [Value("a", "b", 5, "on")]
    labels = pa.table(GOOD | {"labels": ['{"b": "1", "a": "2"}']})
    assert from_arrow_body(to_arrow(labels), 5)["labels"].to_pylist() == ['{"a":"2","b":"1"}']


WRONG: list[dict[str, Any]] = [
    {"metric": 1}, {"entity": None}, {"value": None}, {"value": [1]}, {"x": 1}, {"time": "soon"},
    {"value": "NaNa", "number": True}, {"time": 1.5}, {"time": True}, {"time": 10**30},
    {"labels": []}, {"labels": {"a": 1}}, {"metric": "\ud800"}, {"labels": {"a": "\ud800"}},
    {"value": "\ud800"}, {"metric": "m" * 2_000}, {"value": "x" * 70_000}, {"node": "south"},
]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\xff", b"[]", b"null", b"{}", b'{"values":{}}', b'{"values":[],"x":1}',
        b'{"values":[1]}', b'{"values":[{}]}', b"[" * 100_000, b'{"values":' + b"[" * 100_000,
        b'{"values":[{"metric":"a","entity":"b","value":NaN}]}',
        *(json.dumps({"values": [{"metric": "a", "entity": "b", "value": 1} | wrong]}).encode()
          for wrong in WRONG),
    ],
)  # fmt: skip
def test_json_that_is_no_values(body: bytes) -> None:
    with pytest.raises((BadValue, BadQuery, DataError)):
        from_json_body(body, now=START)


def test_a_wrong_value_is_named() -> None:
    rows = [{"metric": "a", "entity": "b", "value": 1}] * 3 + [{"metric": "a"}]
    with pytest.raises(BadValue, match="value 4 of 4"):
        from_json_body(json.dumps({"values": rows}).encode(), now=START)


# ── times and cursors ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("-5", -5), (str(START), START), ("now", START), ("-15m", START - 900_000_000),
     ("-1.5s", START - 1_500_000), ("2026-01-01", START), ("2026-01-01T00:00:00Z", START),
     ("2026-01-01T01:00:00 01:00", START), ("2026-01-01T01:00:00+0100", START),
     ("2026-01-01T00:00:00.000001Z", START + 1), ("9" * 20, 1 << 60), ("-" + "9" * 20, -(1 << 60))],
)  # fmt: skip
def test_times_of_questions(text: str, expected: int) -> None:
    assert times.moment(text, now=START) == expected


@pytest.mark.parametrize(
    "text",
    ["", "-", "soon", "2026-01-01000000", "-15x", "15m", "1e9", "2026-99-99", "٣", "9" * 21,
     "-" + "9" * 19 + "w", "2026-01-01T00:00:00Z\0", "nan", "2026-01-01" + "0" * 10_000],
)  # fmt: skip
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(BadQuery):
        times.moment(text, now=START)


@pytest.mark.parametrize("text", ["", "60", "s", "-5m", "1y", "9" * 18 + "w", "1.5.5s", "0x1s"])
def test_lengths_of_time_that_are_none(text: str) -> None:
    with pytest.raises(BadQuery):
        times.duration(text)


@given(
    st.dictionaries(st.text(max_size=9), st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2)),
    st.none() | st.integers(-(2**62), 2**62),
)
def test_a_cursor_belongs_to_its_question(
    places: dict[str, ChangeOffset], start: int | None
) -> None:
    page = PageStart(places, start)
    text = page.encode(("question", 1))
    assert PageStart.decode(text, ("question", 1)) == page
    with pytest.raises(BadQuery, match="another query"):
        PageStart.decode(text, ("question", 2))


@given(st.text(max_size=50))
def test_texts_that_are_no_cursor(text: str) -> None:
    with pytest.raises(BadQuery):
        PageStart.decode(text, "question")


@pytest.mark.parametrize("content", [1, [], [{}, 1], [[], None, None], [{"a": [1]}, None, None],
                                     [{"a": [1, True]}, None, None], [{"a": [1, 2**64]}, 0, 0],
                                     [{"a" * 2_000: [1, 2]}, 0, 0], [{}, "x", None]])  # fmt: skip
def test_forged_cursors(content: Any) -> None:
    from fogline.fabric.query.paging import seal

    with pytest.raises(BadQuery):
        PageStart.decode(seal(content, "question"), "question")
