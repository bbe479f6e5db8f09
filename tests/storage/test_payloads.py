"""csv, xml and cbor messages into values: what counts as what, and that none of them does harm."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import UsageError
from fogline.formats.values import number_in
from fogline.storage.ingest.columns import decode_batch
from fogline.storage.ingest.decode import decode
from fogline.storage.ingest.mapping import Decoded, Readings
from fogline.storage.values import Value, to_values
from tests.storage.kit import START, same_values

ARRIVAL = START + 5
CSV = Readings(format="csv", header=("t", "s", "x", "y"), entity="s", time="t")
XML = Readings(format="xml", entity="s", time="t")
CBOR = Readings(format="cbor", entity="s", time="t")
GOOD = {
    "csv": b"%d,a,1.5,on" % START,
    "xml": b'<r t="%d" s="a"><x>1.5</x><y>on</y></r>' % START,
    "cbor": cbor2.dumps({"t": START, "s": "a", "x": 1.5, "y": "on"}),
}
EXPECTED = [Value("x", "a", START, 1.5), Value("y", "a", START, "on")]


def read(source: Readings, *payloads: bytes) -> Decoded:
    return decode(source, [("city/1", payload, ARRIVAL) for payload in payloads])


def found(source: Readings, *payloads: bytes) -> list[tuple[str, float | str]]:
    result = read(source, *payloads)
    assert result.rejected == {}
    return [(value.metric, value.value) for value in to_values(result.table)]


@pytest.mark.parametrize("source", [CSV, XML, CBOR], ids=lambda source: source.format)
@pytest.mark.parametrize("count", [1, 40])
def test_they_are_kept_as_json_is(source: Readings, count: int) -> None:
    messages = [("city/1", GOOD[source.format], ARRIVAL)] * count
    result = decode_batch(source, messages)
    assert to_values(result.table) == EXPECTED * count
    assert result.rejected == {}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0), ("-7.25", -7.25), (" 2 ", 2.0), ("+1", 1.0), (".5", 0.5), ("5.", 5.0),
        ("1e3", 1000.0), ("1E-3", 0.001), ("-0", 0.0), ("9007199254740993", 9007199254740992.0),
        ("0" * 10_000 + "1", 1.0),
    ],
)  # fmt: skip
def test_texts_that_are_numbers(text: str, number: float) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    "text",
    ["", " ", "a", "1 2", "1_000", "0x10", "1d", "1f", "NaN", "Infinity", "-inf", "1e999",
     "9" * 400, "--1", "1e", ".", "e5", "٣", "\u00a01", "1\n", "1,5", "true", "2026-01-01"],
)  # fmt: skip
def test_texts_that_are_none(text: str) -> None:
    assert number_in(text) == text


# ── csv ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{t},a,1,2", [("x", 1.0), ("y", 2.0)]),
        ("{t},a,,2", [("y", 2.0)]),
        ('{t},a,"",2', [("x", ""), ("y", 2.0)]),
        ('{t},a,"1.5","a ""b"", c"', [("x", 1.5), ("y", 'a "b", c')]),
        ('{t},a,b"c,d""', [("x", 'b"c'), ("y", 'd""')]),
        ('{t},a,"line\nbreak",2\n', [("x", "line\nbreak"), ("y", "2\n")]),
        ("{t},a,ü, b ", [("x", "ü"), ("y", " b ")]),
    ],
)
def test_csv_values(line: str, expected: list[tuple[str, float | str]]) -> None:
    assert found(CSV, line.replace("{t}", str(START)).encode()) == expected


def test_a_csv_entity_stays_as_it_is_written() -> None:
    (value,) = to_values(read(CSV, b'"2026-01-01T00:00:00Z",007,1,').table)
    assert value == Value("x", "007", START, 1.0)


def test_of_columns_with_one_name_the_last_counts() -> None:
    assert found(Readings(format="csv", header=("x", "x")), b"1,2") == [("x", 2.0)]


def test_csv_needs_the_names_of_its_columns() -> None:
    with pytest.raises(UsageError, match="header"):
        Readings(format="csv")


# ── xml ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('<r x="1"><y>2</y></r>', {"x": 1.0, "y": 2.0}),
        ('<r x=""><y/><z> \n </z></r>', {}),
        ('<r><x unit="C"> 21.5 </x></r>', {"x": 21.5, "x.unit": "C"}),
        ("<r><p><lat>1</lat><q><z>a</z></q></p></r>", {"p.lat": 1.0, "p.q.z": "a"}),
        ("<r>text<x>1</x>tail<y>a<z>2</z>b</y></r>", {"x": 1.0, "y.z": 2.0}),
        ('<r x="1"><x>2</x><x>3</x></r>', {"x": 3.0}),
        ("<r><p><x>1</x></p><p.x>2</p.x></r>", {"p.x": 2.0}),
        ("<r><p.x/><p><x>1</x></p></r>", {"p.x": 1.0}),
        ("<r><p><a.b>1</a.b></p><c.d><e>2</e></c.d></r>", {}),
        ('<n:r xmlns:n="u" xmlns="v" n:x="1"><n:y>2</n:y></n:r>', {"x": 1.0, "y": 2.0}),
        ("<r><x>a&amp;b&#252;<![CDATA[<c>]]><!-- d --></x></r>", {"x": "a&bü<c>"}),
        ('\ufeff<?xml version="1.0" encoding="latin1"?><r x="ü"/>\n', {"x": "ü"}),
        ("<x>1</x>", {}),
    ],
)
def test_xml_values(document: str, expected: dict[str, float | str]) -> None:
    assert dict(found(Readings(format="xml"), document.encode())) == expected


def test_a_path_may_be_the_time_the_entity_and_a_label() -> None:
    source = Readings(format="xml", time="head.t", entity="head.id", labels=("head.at",))
    payload = b'<r><head t="%d" at="bern"><id>007</id></head><x>1</x></r>' % START
    assert to_values(read(source, payload).table) == [
        Value("x", "007", START, 1.0, {"head.at": "bern"})
    ]


def test_elements_in_a_declared_field_are_no_value() -> None:
    result = read(Readings(format="xml", fields=("x", "y")), b"<r><x><z>1</z></x><y>2</y></r>")
    assert [value.metric for value in to_values(result.table)] == ["y"]
    assert result.rejected == {"not a number or a text": 1}


def test_no_entity_is_expanded_and_no_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    document = f'<!DOCTYPE r [<!ENTITY e SYSTEM "{secret.as_uri()}">]><r><x>&e;</x></r>'
    result = read(Readings(format="xml"), document.encode())
    assert (len(result.table), result.rejected) == (0, {"not xml": 1})


# ── cbor ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"x": 1, "y": -2}, [("x", 1.0), ("y", -2.0)]),
        ({"x": True, "y": False}, [("x", 1.0), ("y", 0.0)]),
        ({"x": None, "y": cbor2.undefined, "z": cbor2.CBORSimpleValue(99)}, []),
        ({"x": "1.5", "y": "ü"}, [("x", 1.5), ("y", "ü")]),
        ({"x": b"1", "y": [1], "z": {"a": {1: 2}}, "w": 5}, [("w", 5.0)]),
        ([{"x": 1}, {}, {"x": 2}], [("x", 1.0), ("x", 2.0)]),
        ([], []),
        ({7: 1, -3: 2, 1.5: 3, None: 4, True: 5, b"k": 6, (1, 2): 7, "": 8},
         [("7", 1.0), ("-3", 2.0), ("", 8.0)]),
        ({"x": 2**64 - 1, "y": -(2**64), "z": 2**70, "w": -(2**70)},
         [("x", 2.0**64), ("y", -(2.0**64)), ("z", 2.0**70), ("w", -(2.0**70))]),
        ({2**63: 1, 2**70: 2, 2**63 - 1: 3}, [(str(2**63 - 1), 3.0)]),
        (cbor2.CBORTag(55799, {"x": cbor2.CBORTag(1, cbor2.CBORTag(32, "a"))}), [("x", "a")]),
        ({"x": cbor2.CBORTag(0, "2026-01-01"), "y": cbor2.CBORTag(1, 5)},
         [("x", "2026-01-01"), ("y", 5.0)]),
        ({"w": cbor2.CBORTag(4, [1, 2]), "x": cbor2.CBORTag(35, "(("), "y": cbor2.CBORTag(29, 3),
          "z": cbor2.CBORTag(25, 4)}, [("x", "(("), ("y", 3.0), ("z", 4.0)]),
    ],
)  # fmt: skip
def test_cbor_values(item: Any, expected: list[tuple[str, float | str]]) -> None:
    assert found(Readings(format="cbor"), cbor2.dumps(item)) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("bf 6178 18 7b 7f 6161 6162 ff 7f 63 c3a9 78 ff ff", [("x", 123.0), ("ab", "éx")]),
        ("9f bf 6178 01 ff a1 6178 02 ff", [("x", 1.0), ("x", 2.0)]),
        ("a3 6178 f93e00 6179 fa3fc00000 617a fb3ff8000000000000",
         [("x", 1.5), ("y", 1.5), ("z", 1.5)]),
        ("a2 6178 5f 4101 4102 ff 6179 9f 01 bf 01 02 ff ff", []),
        ("a2 6178 01 6178 02", [("x", 2.0)]),
        ("a1 6178 f820", []),
    ],
)  # fmt: skip
def test_cbor_in_its_other_forms(item: str, expected: list[tuple[str, float | str]]) -> None:
    assert found(Readings(format="cbor"), bytes.fromhex(item)) == expected


@pytest.mark.parametrize("time", [cbor2.CBORTag(1, START / 1e6), cbor2.CBORTag(0, "2026-01-01")])
def test_a_tagged_time_is_a_time(time: object) -> None:
    payload = cbor2.dumps({"t": time, "s": 7, "x": 1})
    assert to_values(read(CBOR, payload).table) == [Value("x", "7", START, 1.0)]


# ── broken, hostile, huge ────────────────────────────────────────────────────────────────────────

LAUGHS = b"".join(b'<!ENTITY e%d "%s">' % (i + 1, b"&e%d;" % i * 10) for i in range(9))
COLLIDING = [
    b"\xc2\x4a" + (i * ((1 << 61) - 1)).to_bytes(10, "big") + b"\x00" for i in range(1, 20_001)
]
"""Keys with one hash in Python, and values."""
HOSTILE: dict[str, list[bytes]] = {
    "csv": [
        b"", b"\n", b"1,2,3", b"1,2,3,4,5", b'1,"2,3,4', b'1,"2"3,4,5', b'1,2,3,"', b"\xff,2,3,4",
        b"1,2,3,\0", b"," * 4_000_000, b'"' * 4_000_001, b'"' + b'a""' * 1_000_000,
        b"a" * 4_000_000, b'"a",' * 1_000_000,
    ],
    "xml": [
        b"", b"r", b"<r>", b"<r/><r/>", b"<r>&e;</r>", b'<r x="&e;"/>', b"<r x=1/>", b"<r><a></r>",
        b'<r x="1" x="2"/>', b"<n:r/>", b'<r n:x="1"/>', b"<:r/>", b"<r>\xff</r>", b"<r>\0</r>",
        b'<r><a xmlns:n="u"/><n:b/></r>', b"<!DOCTYPE r><r/>", b"<r>&#0;</r>",
        b" <?xml version='1.0'?><r/>",
        b"<!DOCTYPE r [<!ENTITY e0 \"lol\">" + LAUGHS + b"]><r>&e9;</r>",
        b"<!DOCTYPE r [<!ENTITY e '" + b"a" * 100_000 + b"'>]><r>" + b"&e;" * 100_000 + b"</r>",
        b'<!DOCTYPE r SYSTEM "http://127.0.0.1:9/r.dtd"><r/>', "<r/>".encode("utf-16"),
        "<!DOCTYPE r><r/>".encode("utf-16"), "<r/>".encode("utf-16-le"),
        b"<a>" * 129 + b"</a>" * 129, b"<a>" * 1_000_000,
        b"<r " + b" ".join(b'a%d="1"' % i for i in range(100_001)) + b"/>",
        b"<r>" + b"".join(b"<p%d><a/></p%d>" % (i, i) for i in range(60_000)) + b"</r>",
    ],
    "cbor": [
        b"", b"\x00", b"\x60", b"\xf6", b"\xff", b"\x81\x01", b"\x81\x80", b"\xa0\xa0",
        b"\xa1\x61x",
        b"\xa1\x61x\x61\xff", b"\xa1\x61\xff\x01", b"\xa1\x61x\xff", b"\xbf\x61x\xff",
        b"\xbf\x61x\x01",
        b"\xa1\x61x\x1c", b"\xa1\x61x\x1f", b"\xa1\x61x\x7f\x01\xff", b"\xa1\x61x\x7f\x7f\xff\xff",
        b"\xa1\x61x\x7f\x41a\xff", b"\xa1\x61x\xdf\x00", b"\xa1\x61x\xfb\x00", b"\xc6", b"\x9f\xa0",
        b"\xbb" + b"\xff" * 8, b"\x9b\x7f" + b"\xff" * 7, b"\xba\x7f\xff\xff\xff",
        b"\xa1\x61x\x7b" + b"\xff" * 8, b"\xa1\x61x\x5a\x7f\xff\xff\xff",
        b"\xa1\x61x\x9a\x7f\xff\xff\xff", b"\xa1\x61x\xc2\x59\x04\x00",
        b"\x81" * 1_000_000, b"\x9f" * 1_000_000, b"\xa1\x61x" + b"\x81" * 128 + b"\x00",
        b"\xa1\x61x" * 1_000_000, b"\xc6" * 1_000_000, b"\xc6" * 1_000_000 + b"\x00",
        b"\x9a" + struct.pack(">I", 100_001) + b"\xa0" * 100_001,
        b"\x9f" + b"\xa0" * 100_001 + b"\xff",
        b"\xba" + struct.pack(">I", 1_000_001) + b"\x00\x00" * 1_000_001,
        b"\xbf" + b"\x00\x00" * 1_000_001 + b"\xff",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "payload"),
    [(source, payload) for source in (CSV, XML, CBOR) for payload in HOSTILE[source.format]],
    ids=lambda item: item.format if isinstance(item, Readings) else repr(item[:30]),
)
def test_a_bad_message_costs_nothing_but_itself(source: Readings, payload: bytes) -> None:
    good = GOOD[source.format]
    result = read(source, good, payload, good)
    assert to_values(result.table) == EXPECTED * 2
    assert result.rejected == {f"not {source.format}": 1}


@pytest.mark.parametrize(
    ("source", "payload", "rejected"),
    [
        (CSV, b"never,a,1,2", {"no time": 1}),
        (CSV, b",a,1,2", {"no time": 1}),
        (CSV, b"1,,1,2", {"no metric or entity": 2}),
        (CSV, b"1,a," + b"x" * 70_000 + b",", {"text too long": 1}),
        (CSV, b"1,a," + b"9" * 4_000_000 + b",", {"text too long": 1}),
        (XML, b'<r s="a" x="1"/>', {"no time": 1}),
        (XML, b'<r t="1"><s><x>1</x></s></r>', {"no metric or entity": 1}),
        (XML, b'<r t="1" s="a"><x>' + b"y" * 4_000_000 + b"</x></r>", {"text too long": 1}),
        (XML, b'<r t="1" s="a"><%b>1</%b></r>' % ((b"n" * 4_000_000,) * 2), {"name too long": 1}),
        (CBOR, cbor2.dumps({"t": True, "s": "a", "x": 1}), {"no time": 1}),
        (CBOR, cbor2.dumps({"t": 10**30, "s": "a", "x": 1}), {"no time": 1}),
        (CBOR, cbor2.dumps({"t": 1, "s": b"a", "x": 1}), {"no metric or entity": 1}),
        (CBOR, cbor2.dumps({"t": 1, "s": "a", "x" * 2000: 1}), {"name too long": 1}),
        (CBOR, cbor2.dumps({"t": 1, "s": "a", "x": "y" * 4_000_000}), {"text too long": 1}),
    ],
    ids=lambda item: repr(item)[:40],
)  # fmt: skip
def test_what_is_no_value_is_counted(
    source: Readings, payload: bytes, rejected: dict[str, int]
) -> None:
    good = GOOD[source.format]
    result = read(source, good, payload, good)
    assert to_values(result.table) == EXPECTED * 2
    assert result.rejected == rejected


@pytest.mark.parametrize(
    "payload",
    [
        b"\xa2\x61x\xb9\x4e\x20" + b"".join(COLLIDING) + b"\x61y\x01",
        b"\xa2\x61x" + b"\x81" * 126 + b"\x00\x61y\x01",
        b"\xa2\x61x" + b"\xc6" * 1_000_000 + b"\x80\x61y\x01",
        b"\xa2\x61x\xd8\x1c\x81\xd8\x1d\x00\x61y\x01",
        b"\xa2\x61x\xc2\x59\x04\x01" + b"\xff" * 1025 + b"\x61y\x01",
        b"\xa2\x61x\x5f" + b"\x40" * 1_000_000 + b"\xff\x61y\x01",
    ],
    ids=["colliding keys", "deep", "tags", "a list in itself", "a large integer", "chunks"],
)  # fmt: skip
def test_odd_cbor_that_is_valid_is_passed_over(payload: bytes) -> None:
    assert found(Readings(format="cbor"), payload) == [("y", 1.0)]


def test_names_and_namespaces_of_xml_are_not_multiplied() -> None:
    deep = b"<%b>" % (b"n" * 10_000) * 100 + b"<x>1</x>" * 10_000 + b"</%b>" % (b"n" * 10_000) * 100
    spaces = b'<r xmlns="%b">' % (b"u" * 1_000_000) + b"<x>1</x>" * 100_000 + b"</r>"
    result = read(Readings(format="xml"), b"<r>" + deep + b"</r>", spaces)
    assert [(value.metric, value.value) for value in to_values(result.table)] == [("x", 1.0)]
    assert result.rejected == {}


@pytest.mark.parametrize("source", [CSV, XML, CBOR], ids=lambda source: source.format)
def test_damaged_messages_never_raise(source: Readings) -> None:
    rng, good = random.Random(7), GOOD[source.format]
    payloads = []
    for _ in range(3_000):
        payload = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        payloads.append(bytes(payload[: rng.randint(1, 2 * len(payload))]))
    result = read(source, good, *payloads, good)
    values = to_values(result.table)
    assert values[:2] == values[-2:] == EXPECTED


@given(st.binary(max_size=60))
def test_no_bytes_make_it_raise(payload: bytes) -> None:
    for source in (CSV, XML, CBOR, Readings(format="cbor", fields=("x", "1"))):
        read(source, payload, payload)


# ── the same records in another format ───────────────────────────────────────────────────────────

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
WORDS = TEXTS.filter(lambda text: number_in(text) is text)
LINE = st.fixed_dictionaries(
    {
        "t": st.one_of(st.integers(0, 2**51), st.sampled_from(["2026-01-01", "never", None])),
        "s": st.one_of(WORDS, st.none()),
        "x": st.one_of(st.floats(allow_nan=False, allow_infinity=False), WORDS, st.none()),
        "y": st.one_of(st.integers(-(2**70), 2**70), WORDS, st.none()),
    }
)


def csv_text(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else repr(value)


def assert_same_as_json(source: Readings, records: Any, payload: bytes) -> None:
    plain = Readings(entity=source.entity, time=source.time, fields=source.fields)
    expected, result = read(plain, json.dumps(records).encode()), read(source, payload)
    assert same_values(to_values(result.table), to_values(expected.table))
    assert result.rejected == expected.rejected


@given(LINE)
def test_a_csv_line_is_what_it_is_in_json(record: dict[str, Any]) -> None:
    ordered = {name: record[name] for name in CSV.header}
    line = ",".join(csv_text(value) for value in ordered.values())
    assert_same_as_json(CSV, ordered, line.encode())


LEAVES = st.one_of(
    st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**64 - 1), TEXTS,
    st.sampled_from([2**70, -(2**80), 10**400, -(10**400), START, "2026-01-01"]),
)  # fmt: skip
NAMES = st.one_of(st.sampled_from(["t", "s", "x", "y"]), TEXTS)
ITEMS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.dictionaries(NAMES, ITEMS, max_size=5)


@given(st.one_of(RECORDS, st.lists(RECORDS, max_size=4)))
def test_a_cbor_item_is_what_it_is_in_json(records: Any) -> None:
    payload = cbor2.dumps(records)
    for source in (CBOR, Readings(format="cbor"), Readings(format="cbor", fields=("x", "y"))):
        assert_same_as_json(source, records, payload)
