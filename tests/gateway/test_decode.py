"""Messages of every format, and hostile ones: they are bad, and the stream goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.formats.times import parse_time, time_of
from fogline.formats.values import java_double
from fogline.gateway.jobs.chain import Chain, Results
from fogline.gateway.operators.decode import Decoder, read_options
from tests.gateway.helpers import BASE, message, run

FIELDS = json.dumps(
    [
        {"name": "n", "type": "string", "from": "name"},
        {"name": "x", "type": "double", "from": "a.x"},
        {"name": "i", "type": "long"},
        {"name": "b", "type": "boolean"},
    ]
)


def decoded(payload: Any, **options: Any) -> list[tuple[int, dict[str, Any]]]:
    return [(r.time, r.values) for r in Decoder(read_options(options)).decode(message(payload))]


def test_typed_columns() -> None:
    content = b'{"name": 1.50, "a": {"x": " 2e1 "}, "i": "7", "b": "TRUE", "z": [1]}'
    assert decoded(content, fields=FIELDS) == [
        (BASE * 1000, {"n": "1.50", "x": 20.0, "i": 7, "b": True})
    ]
    other = b'{"a.x": 3, "a": {"x": 4}, "name": {"q": 1}, "i": 2.0, "b": 0}'
    assert decoded(other, fields=FIELDS)[0][1] == {"n": None, "x": 3.0, "i": 2, "b": False}
    broken = b'{"a": 3, "i": 2.5, "b": 2, "name": null}'
    assert set(decoded(broken, fields=FIELDS)[0][1].values()) == {None}


def test_lists_lines_and_times() -> None:
    rows = [{"time": BASE, "x": 1}, {"time": "2026-01-01T00:00:01.5Z", "x": 2}]
    assert [t for t, _ in decoded(rows, time="time")] == [BASE * 1000, BASE * 1000 + 1_500_000]
    lines = b'{"x": 1}\n\n \r\n{"x": 2}\r\n'
    assert [v for _, v in decoded(lines, format="ndjson")] == [{"x": 1}, {"x": 2}]


def test_metric_and_value_fields() -> None:
    fields = [{"name": "t", "type": "double", "from": "temp", "metric": True}]
    options = {"fields": fields, "metricField": "m", "valueField": "v"}
    assert decoded({"m": "temp", "v": 3}, **options)[0][1] == {"t": 3.0}
    assert decoded({"m": "other", "v": 3}, **options)[0][1] == {"t": None}
    assert decoded({"m": "temp", "v": 3, "temp": 4}, **options)[0][1] == {"t": 4.0}


def test_senml() -> None:
    pack = [
        {"bn": "dev1", "bt": 1767225600, "n": "x", "v": 1.5},
        {"n": "y", "vs": "on", "t": 0},
        {"n": "x", "v": 2, "t": 1},
    ]
    assert decoded(pack, format="senml", entity="id") == [
        (BASE * 1000, {"id": "dev1", "x": 1.5, "y": "on"}),
        (BASE * 1000 + 1_000_000, {"id": "dev1", "x": 2}),
    ]
    old = b'1767225600000,{"e": [{"n": "x", "v": 1, "t": -5}], "bv": 10}'
    assert decoded(old, format="senml") == [((BASE - 5000) * 1000, {"x": 11.0})]


def test_csv() -> None:
    options = {"format": "csv", "header": "time, name, x", "time": "time"}
    line = b'1767225600000,"a ""b"", c",1.5'
    assert decoded(line, **options) == [
        (BASE * 1000, {"time": float(BASE), "name": 'a "b", c', "x": 1.5})
    ]
    assert decoded(b"1767225600000,,", **options)[0][1]["name"] is None


HOSTILE = [
    b"", b"{", b"nonsense", b"[1]", b"\xff\xfe", b"{\"x\": NaN}", b'{"x": Infinity}', b'{"x": 01}',
    b'{"x": 1}}', b'{"x": "\x01"}', b"[" * 5000, b'{"a":' * 200 + b"1" + b"}" * 200,
    b'{"time": "yesterday"}', b'{"x": 1}', b'{"time": 1e300}', b'{"time": true}',
    b'{"time": ' + b"9" * 5000 + b"}", b"null", b'"text"', b"\xef\xbb\xbf{}",
    b"[" + b"{}," * 100_000 + b"{}]", b'{"x": "' + b"y" * (1 << 20),
]  # fmt: skip


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_messages_are_bad(payload: bytes) -> None:
    out, results = run([], [payload, {"time": BASE, "x": 1}])
    assert out == [{"time": BASE, "x": 1}]
    assert len(results.bad) == 1


def test_odd_but_good_messages() -> None:
    deep = b'{"time": 1767225600, "a":' + b"[" * 127 + b"]" * 127 + b"}"
    large = b'{"time": 1767225600, "x": ' + b"9" * 5000 + b"}"
    halves = b'{"time": 1767225600, "x": "\\ud800 \\ud83d\\ude00"}'
    out, results = run([], [deep, large, halves])
    assert not results.bad
    assert out[2]["x"] == "� 😀"


@given(st.binary(max_size=60), st.sampled_from(["json", "ndjson", "senml", "csv"]))
def test_any_bytes_at_all(payload: bytes, kind: str) -> None:
    _, results = run([], [payload], format=kind, header="time,x", time=None)
    assert len(results.bad) <= 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["e", "n", "v", "t", "bn", "bt", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values, st.sampled_from(["json", "senml"]))
def test_any_json_at_all(content: Any, kind: str) -> None:
    chain = Chain([{"op": "deadband", "field": "x", "band": 1}], {"format": kind}, {})
    results = Results()
    chain.feed(message(content), results)
    chain.restore(json.loads(json.dumps(chain.state())))
    for payload in results.out:
        json.loads(payload)


@pytest.mark.parametrize(
    ("text", "micros"),
    [("1767225600", BASE * 1000), ("1767225600.25", BASE * 1000 + 250_000),
     (" 1767225600000 ", BASE * 1000), ("1767225600000000", BASE * 1000),
     ("2026-01-01", BASE * 1000), ("2026-01-01 01:00:00,5+01:00", BASE * 1000 + 500_000),
     ("2026-02-30", None), ("2026-01-01T24:00", None), ("", None), ("0x10", None),
     ("2026-01-01T00:00:00+19:00", None), ("9" * 19, None)],
)  # fmt: skip
def test_times(text: str, micros: int | None) -> None:
    assert parse_time(text) == micros


def test_times_that_are_none() -> None:
    assert time_of(True) is None
    assert time_of(float("nan")) is None
    assert time_of([1]) is None
    assert time_of(-62_135_596_801) is None


def test_numbers_as_java_writes_them() -> None:
    pairs = {1.0: "1.0", 1e7: "1.0E7", 1234.5: "1234.5", 0.00012: "1.2E-4", -1e22: "-1.0E22"}
    assert {value: java_double(value) for value in pairs} == pairs
