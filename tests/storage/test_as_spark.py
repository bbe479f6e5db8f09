"""What the store keeps of a csv, xml or cbor message is what a Spark query sees of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cbor2
import pytest
from pyspark.sql import SparkSession

from fogline.log import LogWriter
from fogline.storage.decode import decode
from fogline.storage.mapping import Readings
from fogline.storage.values import to_values
from tests.storage.kit import START

T = START // 1000
CSV = Readings(format="csv", header=("t", "id", "x", "y"), time="t", fields=("id", "x", "y"))
LINES = [
    "{t},a,1.5,2", '{t},"a, ""b""", 2 ,', "{t},007,1e3,-0", "{t},a,1e999,NaN", "{t},a,0x10,1_0",
    "{t},a,1d,Infinity", '{t},"","","1.5"', "{t},,.5,5.", "{t},a,+1,--1", "{t},a,1 2,\u00a01",
    "{t},a,1,2\n", "{t},a,1,2\r\n", '{t},a,"x\ny",true', '{t},a"b,c"d",1', "{t},é,٣,E",
    "2026-01-01T00:00:00Z,a,1,2", '"1767225600",a,1,2', "1767225600.5,a,1,2",
    "{t},a," + "9" * 400 + ",0." + "1" * 500, "{t},a,4.9e-324,9007199254740993",
    "", "\n", "{t},a,1", "{t},a,1,2,3", '{t},"a,1,2', '{t},"a"b,1,2', "{t},a\0,1,2", "never,a,1,2",
    ",a,1,2", "\ufeff{t},a,1,2", "true,a,1,2",
]  # fmt: skip
XML = Readings(format="xml", time="t", fields=("id", "x", "y", "p.x", "p.q.x", "x.unit", "n.m"))
ELEMENTS = [
    '<r t="{t}" id="007"><x unit="C"> 21.5 </x><y>on</y></r>', '<r t="{t}" x="" id=" "><y/></r>',
    '<r t="{t}"><p x="1"><q><x>2</x></q></p></r>', '<r t="{t}"><p><x>1</x></p><p.x>2</p.x></r>',
    '<r t="{t}"><p.x/><p><x>1</x></p></r>', '<r t="{t}"><n.m><x>1</x></n.m><n><m>2</m></n></r>',
    '<r t="{t}" x="1"><x>2</x><x>3</x></r>', '<r t="{t}"><x>1<z/></x><y>a<!-- b -->c</y></r>',
    '<r t="{t}" x="1"><x/></r>', '<r t="{t}"><p><x>1</x></p><p/></r>', '<r><t>{t}</t><x>1</x></r>',
    '<n:r xmlns:n="u" xmlns="v" t="{t}" n:x="1"><n:y>2</n:y></n:r>', '<r xml:id="7" t="{t}"/>',
    '<r t="{t}"><x>a&amp;b&#252;<![CDATA[<c>]]></x><y>&#160;1&#x2003;</y></r>',
    '\ufeff<?xml version="1.0"?>\n<r t="{t}" x="ü\n1"/>\n', '  <r t="{t}" x="1"/>  ',
    '<?xml version="1.0" encoding="latin1"?><r t="{t}" x="ü"/>',
    '<r t="{t}" x="1">' + "<a>" * 127 + "</a>" * 127 + "</r>",
    "", "r", "<r>", '<r t="{t}"/><r/>', '<r t="{t}">&e;</r>', '<r t="{t}" x="&e;"/>',
    '<r t="{t}" x="1" x="2"/>', '<n:r t="{t}"/>', '<r t="{t}" n:x="1"/>', '<r t="{t}">\0</r>',
    '<!DOCTYPE r><r t="{t}" x="1"/>', '<!DOCTYPE r [<!ENTITY e "1">]><r t="{t}"><x>&e;</x></r>',
    '<r t="{t}"><a xmlns:n="u"/><n:x>1</n:x></r>',
    '<r t="{t}">' + "<a>" * 128 + "</a>" * 128 + "</r>",
    '<r x="1"/>', '<r t="never" x="1"/>', '<r t="" x="1"/>', '<r x="1"><t><x>1</x></t></r>',
]  # fmt: skip
CBOR = Readings(format="cbor", time="t", fields=("x", "y", "7", "-3"))
ITEMS = [
    {"t": T, "x": 1, "y": -2, 7: "seven", -3: 1.5}, {"t": T, "x": True, "y": False, "7": None},
    [{"t": T, "x": 1}, {"t": T + 1, "y": "on"}], [], {"t": T, "x": b"1", "y": [1], 7: {"x": 1}},
    {"t": T, "x": 2**63 - 1, "y": -(2**63)}, {"t": T, "x": 2**63, "y": 2**64 - 1, 7: -(2**64)},
    {"t": T, "x": 2**70, "y": -(2**70), 7: 2**63 + 3071, -3: -(2**63) - 3072},
    {"t": cbor2.CBORTag(1, T / 1e3), "x": cbor2.CBORTag(0, "a"), "y": cbor2.CBORTag(35, "(")},
    {"t": cbor2.CBORTag(0, "2026-01-01T00:00:00Z"), "x": cbor2.CBORTag(4, [1, 2])},
    {"t": T, "x": cbor2.CBORTag(29, 3), "y": cbor2.CBORTag(25, 4), 1.5: 1, None: 2, b"x": 3},
    {"t": T, 2**63: 1, (1, 2): 2, True: 3, "x": cbor2.undefined, "y": cbor2.CBORSimpleValue(99)},
    {"t": T, "x": cbor2.CBORTag(2, b"\xff" * 1025), "y": "ü" * 300}, {"t": True, "x": 1},
    {"x": 1}, {"t": "never", "x": 1}, {"t": 10**30, "x": 1}, 1, "x", None, [1], [[{}]],
]  # fmt: skip
ODD_ITEMS = [
    "bf 6174 1b{t} 6178 7f 6161 62c3a9 ff 6179 f93e00 ff", "9f bf 6174 1b{t} 6178 01 ff ff",
    "a3 6174 1b{t} 6178 fa3fc00000 6179 f97bff", "a3 6174 1b{t} 6178 01 6178 02",
    "a3 6174 1b{t} 6178 01 6178 f6", "a2 6174 1b{t} 7f 6178 ff 05", "a2 6174 1b{t} 6178 f814",
    "a2 6174 1b{t} 6178 5f 4101 4102 ff", "a2 6174 1b{t} 37 05", "a2 6174 1b{t} 22 05",
    "", "a0 a0", "a1 6178", "a1 6178 61ff", "a1 6178 ff", "bf 6178 ff", "a1 6178 1c", "a1 6178 1f",
    "a1 6178 7f 01 ff", "a1 6178 7f 7f ff ff", "a1 6178 df 00", "bb ffffffffffffffff",
    "9b 7fffffffffffffff", "a1 6178 9a 7fffffff", "a1 6178 7b ffffffffffffffff", "c6",
    "a2 6174 1b{t} 6178" + "81" * 126 + "00", "a2 6174 1b{t} 6178" + "81" * 127 + "80",
    "a2 6174 1b{t} 6178" + "81" * 128 + "00", "a2 6174 1b{t} 6178" + "c6" * 5000 + "05",
]  # fmt: skip


def seen_by_spark(
    spark: SparkSession, log: Path, source: Readings
) -> tuple[list[tuple[str, int, float | str]], int]:
    """Name, time and value of every field of a query, and how many messages are bad."""
    kinds = [(f"{kind[0]}{i}", kind, name)
             for i, name in enumerate(source.fields) for kind in ("double", "string")]  # fmt: skip
    columns = [{"name": column, "type": kind, "from": name} for column, kind, name in kinds]
    columns.append({"name": "_error", "type": "string"})
    reader = spark.read.format("fogline").option("format", source.format).option("log", "true")
    reader = reader.option("fields", json.dumps(columns)).option("time", source.time or "")
    if source.header:
        reader = reader.option("header", json.dumps(source.header))
    frame = reader.load(str(log)).selectExpr("* except (_time)", "unix_micros(_time) as _time")
    rows = [row.asDict() for row in frame.collect()]
    good = [row for row in rows if row["_error"] is None]
    return [value for row in good for value in values_in(row, source)], len(rows) - len(good)


def values_in(row: Mapping[str, Any], source: Readings) -> list[tuple[str, int, float | str]]:
    found = []
    for i, name in enumerate(source.fields):
        value = row[f"s{i}"] if row[f"d{i}"] is None else row[f"d{i}"]
        if value is not None:
            found.append((name, row["_time"], value))
    return found


def payloads(source: Readings) -> list[bytes]:
    if source.format == "cbor":
        odd = [bytes.fromhex(item.replace("{t}", f"{T:016x}")) for item in ODD_ITEMS]
        return [*map(cbor2.dumps, ITEMS), *odd]
    texts = LINES if source.format == "csv" else ELEMENTS
    return [
        *(text.replace("{t}", str(T)).encode() for text in texts),
        b"\xff,a,1,2",
        b"<r>\xff</r>",
    ]


@pytest.mark.parametrize("source", [CSV, XML, CBOR], ids=lambda source: source.format)
def test_the_store_keeps_what_spark_sees(
    spark: SparkSession, tmp_path: Path, source: Readings
) -> None:
    messages = payloads(source)
    with LogWriter(tmp_path / "log", "city", min_free_bytes=0) as log:
        log.append([("city", payload) for payload in messages])
        log.commit()
    expected, bad = seen_by_spark(spark, tmp_path / "log", source)
    kept, refused = [], 0
    for payload in messages:
        result = decode(source, [("city", payload, START)])
        kept += [(value.metric, value.time, value.value) for value in to_values(result.table)]
        refused += any(reason in result.rejected for reason in (f"not {source.format}", "no time"))
    assert len(expected) > 20
    assert kept == expected
    assert refused == bad > 10
