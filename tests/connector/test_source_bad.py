"""Bad input costs a record, never a query: dropped, kept as a reject, or a row with the reason."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbor2
import pytest

pytestmark = pytest.mark.spark

GOOD = b'{"a": 1}'
LIMIT = 16 << 20


def write(folder: Path, *lines: bytes, end: bytes = b"\n") -> Path:
    path = folder / "in.txt"
    path.write_bytes(b"".join(line + end for line in lines))
    return path


def rejected(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.iterdir()) if folder.exists() else []
    assert not [file for file in files if file.suffix != ".ndjson"]
    return [
        json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()
    ]


BAD_JSON = [
    b'{"a": 1',
    b'{"a": 1}}',
    b'{"a": 1} x',
    b'{"a" 1}',
    b'{"a": 1,}',
    b"{a: 1}",
    b"{'a': 1}",
    b'{"a": 01}',
    b'{"a": 1.}',
    b'{"a": .5}',
    b'{"a": +1}',
    b'{"a": 1e}',
    b'{"a": NaN}',
    b'{"a": tru}',
    b'{"a": nul',
    b'{"a": "x}',
    b'{"a": "\\x"}',
    b'{"a": "\\u12"}',
    b'{"a": "\\',
    b'{"a": "\\u00',
    b'{"a": "\x00"}',
    b"\x00",
    b'{"a": "\t"}',
    b'{"a": "\xff"}',
    b'{"a": "\xc3"}',
    b'{"z": "\xed\xa0\x80"}',
    b'{"z": "\xc0\xaf"}',
    b'{"\xff": 1}',
    b"1",
    b'"x"',
    b"null",
    b"[1]",
    b"[",
    b"[{}",
    b'[{"a": 1},]',
    b'[{"a": 1}, 2]',
    b"]",
    b",",
    b"{",
    b'{"a":',
    b'{"a"',
    b'{"',
    b'{"a": -}',
    b'{"a": 1 2}',
    b"\xef\xbb\xbf{}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"z":' + b"[" * 200 + b"]" * 200 + b"}",
    b"[" + b"{}," * 100_000 + b"{}]",
]


def test_bad_json(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, *[line for bad in BAD_JSON for line in (bad, GOOD)])
    rows = batch(path, "json", "a long, _error, _raw", rejects=tmp_path / "rejects", stream="s")
    assert len(rows) == 2 * len(BAD_JSON) + 1
    assert all(row["a"] == 1 and row["_error"] is None for row in rows[::2])
    for row, bad in zip(rows[1::2], BAD_JSON, strict=True):
        assert row["_error"], bad
        assert (row["a"], row["_time"]) == (None, None), bad
        # Java and Python put different numbers of replacement characters for broken UTF-8.
        assert row["_raw"].replace("\ufffd", "") == bad.decode(errors="replace").replace(
            "\ufffd", ""
        ), bad
    kept = rejected(tmp_path / "rejects")
    assert [item["reason"] for item in kept] == [row["_error"] for row in rows[1::2]]
    for item, bad in zip(kept, BAD_JSON, strict=True):
        content = base64.b64decode(item["base64"]) if "base64" in item else item["record"].encode()
        assert content == bad[: 64 << 10]
        assert path.read_bytes()[item["position"] :].startswith(bad)
        assert (item["stream"], item["kind"], item["file"]) == ("s", "bad", "in.txt")


def test_bad_records_are_dropped_where_nobody_asks(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, b"bad", GOOD)
    assert [row["a"] for row in batch(path, "json", "a long")] == [1, 1]
    assert not (tmp_path / "rejects").exists()


def test_bad_rows_pass_the_filter(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, b"bad", b'{"a": 2}')
    rows = batch(path, "json", "a long, _error", filter={"op": ">", "column": "a", "value": 1})
    assert [(row["a"], row["_error"] is None) for row in rows] == [(None, False), (2, True)]


def test_line_ends_blank_lines_and_byte_order_mark(batch: Callable, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n\n  \t\n{"a": 2}\n\r\n{"a": 3}')
    for split in (1, 3, 1000):
        rows = batch(path, "json", "a long, _error", splitBytes=split)
        assert [(row["a"], row["_error"]) for row in rows] == [(1, None), (2, None), (3, None)]


def test_truncated_last_line_is_bad(batch: Callable, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(GOOD + b"\n" + GOOD[:-1])
    assert [row["_error"] is None for row in batch(path, "json", "a long, _error")] == [True, False]


def test_empty_file(batch: Callable, stream: Callable, tmp_path: Path) -> None:
    path = write(tmp_path)
    assert batch(path, "json", "a long") == []
    assert stream(path, "json", "a long") == []
    assert batch(path, "csv", "a long") == []
    assert batch(path, "cbor", "a long") == []


@pytest.mark.parametrize("split", [8 << 20, 5 << 20])
def test_huge_lines_are_bad_not_out_of_memory(batch: Callable, tmp_path: Path, split: int) -> None:
    path = tmp_path / "in.txt"
    fits = b'{"a": 2, "s": "' + b"x" * (LIMIT - 100) + b'"}'
    huge = b'{"a": 3, "s": "' + b"y" * (3 * LIMIT) + b'"}'
    path.write_bytes(GOOD + b"\n" + fits + b"\n" + huge + b"\n" + GOOD + b"\n" + huge)
    rows = batch(path, "json", "a long, _error", splitBytes=split, rejects=tmp_path / "rejects")
    assert [row["a"] for row in rows] == [1, 2, None, 1, None]
    assert "longer than" in rows[2]["_error"]
    kept = rejected(tmp_path / "rejects")
    assert [len(item["record"]) for item in kept] == [64 << 10, 64 << 10]
    assert [item["position"] for item in kept] == [
        len(GOOD + fits) + 2,
        len(GOOD + fits + huge + GOOD) + 4,
    ]


def test_giant_numbers(batch: Callable, tmp_path: Path) -> None:
    digits = b"9" * 100_000
    path = write(
        tmp_path,
        b'{"a": ' + digits + b"}",
        b'{"a": 0.' + digits + b"}",
        b'{"a": "' + digits + b'"}',
        b'{"a": 1e999999999}',
    )
    rows = batch(path, "json", "d double<a, l long<a, b boolean<a, _error")
    assert [(row["d"], row["l"], row["b"], row["_error"]) for row in rows] == [
        (None, None, None, None),
        (1.0, 1, True, None),
        (None, None, None, None),
        (None, None, None, None),
    ]


def test_missing_time_is_bad(batch: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        b'{"a": 1, "t": 5}',
        b'{"a": 1}',
        b'[{"a": 1, "t": 5}, {"a": 2}]',
        b'{"a": 1, "t": null}',
    )
    rows = batch(path, "json", "a long, _error", time="t")
    assert [row["_error"] for row in rows] == [None] + ["the time field is missing"] * 3


def test_bad_csv(batch: Callable, tmp_path: Path) -> None:
    lines = [b"1", b"1,2,3", b'"1,2', b'"1"x,2', b"1,\xff", b"1,\x00", b'1,"', b""]
    path = write(tmp_path, b"a,b", b"1,2", *lines, b"3,4")
    rows = batch(path, "csv", "a long, _error")
    assert [row["a"] for row in rows] == [1, *[None] * 7, 3]
    assert all(row["_error"] for row in rows[1:-1])


def test_bad_csv_header(batch: Callable, tmp_path: Path) -> None:
    rows = batch(write(tmp_path, b'"a,b', b"1,2"), "csv", "a long, _error")
    assert [row["_error"].startswith("the file's header is bad") for row in rows] == [True]


BAD_XML = [
    b"<r><a>1</a>",
    b"<r><a>1</b></r>",
    b"text",
    b"<r/><r/>",
    b"<r>&x;</r>",
    b"<r a='1' a='2'/>",
    b"<r>\xff</r>",
    b"<r>\x00</r>",
    b"<",
    b"<!DOCTYPE r><r/>",
    b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r><a>&x;</a></r>',
    b'<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'
    b"<r><a>&c;</a></r>",
    b"<r>" * 50_000,
]


def test_bad_xml(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, *[line for bad in BAD_XML for line in (bad, b"<r><a>1</a></r>")])
    rows = batch(path, "xml", "a string, _error")
    for bad, row in zip(BAD_XML, rows[::2], strict=True):
        assert row["_error"], bad
        assert row["a"] is None, bad
        assert "\n" not in row["_error"]
    assert [row["a"] for row in rows[1::2]] == ["1"] * len(BAD_XML)


BAD_CBOR = [
    cbor2.dumps(1),
    cbor2.dumps("x"),
    cbor2.dumps([{"a": 1}, 2]),
    bytes.fromhex("a16161"),
    bytes.fromhex("a1617f7f"),
    bytes.fromhex("a16161 62ffff"),
    b"\x81" * 127 + b"\xa0",
    bytes.fromhex("a161617f4161ff"),
    bytes.fromhex("bf6161ff"),
]
UNREADABLE_CBOR = [
    bytes.fromhex("a161615bffffffffffffffff"),
    bytes.fromhex("a161615b7fffffffffffffff"),
    bytes.fromhex("9bffffffffffffffff"),
    bytes.fromhex("bbffffffffffffffff"),
    bytes.fromhex("9b0fffffffffffffff"),
    b"\xff",
    b"\x1c",
    b"\x9f" * 100_000,
    b"\x81" * 100_000,
    bytes.fromhex("a16161"),
    b"\xc1" * 1000,
    bytes.fromhex("bf6161"),
]


def test_bad_cbor_items_between_good_ones(batch: Callable, tmp_path: Path) -> None:
    good = cbor2.dumps({"a": 1})
    for bad in [item for item in BAD_CBOR if item not in UNREADABLE_CBOR]:
        path = tmp_path / "in.cbor"
        path.write_bytes(good + bad + good)
        rows = batch(path, "cbor", "a long, _error")
        assert (rows[0]["a"], rows[0]["_error"]) == (1, None), bad
        assert any(row["_error"] for row in rows[1:]), bad


@pytest.mark.parametrize("bad", UNREADABLE_CBOR, ids=range(len(UNREADABLE_CBOR)))
def test_what_follows_unreadable_cbor_is_one_bad_record(
    batch: Callable, tmp_path: Path, bad: bytes
) -> None:
    path = tmp_path / "in.cbor"
    path.write_bytes(cbor2.dumps({"a": 1}) + cbor2.dumps({"a": 2}) + bad)
    rows = batch(path, "cbor", "a long, _error", splitBytes=1)
    assert [row["a"] for row in rows] == [1, 2, None]
    assert rows[2]["_error"]


def test_huge_cbor_item_is_skipped(batch: Callable, tmp_path: Path) -> None:
    path = tmp_path / "in.cbor"
    path.write_bytes(cbor2.dumps({"a": "x" * (LIMIT + 1)}) + cbor2.dumps({"a": 2}))
    rows = batch(path, "cbor", "a long, _error")
    assert [(row["a"], row["_error"] is None) for row in rows] == [(None, False), (2, True)]


BAD_SENML = [
    b'[{"n": "a", "v": 1}',
    b'{"e": 1}',
    b"{}",
    b'{"bt": 5}',
    b"[1]",
    b'[{"n": 5, "v": 1}]',
    b'[{"bn": 5, "n": "a", "v": 1}]',
    b'[{"bt": "soon", "n": "a", "v": 1}]',
    b'[{"n": "a", "v": 1, "x_": 1}]',
    b'[{"bver": 11, "n": "a", "v": 1}]',
    b'99999999999999999999,[{"n": "a", "v": 1}]',
    b"12,",
    b"12",
    b'x,[{"n": "a", "v": 1}]',
    b'[{"bv": "x", "n": "a", "v": 1}]',
]


def test_bad_senml(batch: Callable, tmp_path: Path) -> None:
    good = b'[{"n": "a", "v": 1}]'
    path = write(tmp_path, *[line for bad in BAD_SENML for line in (bad, good)])
    rows = batch(path, "senml", "a long, _error")
    for bad, row in zip(BAD_SENML, rows[::2], strict=True):
        assert row["_error"], bad
        assert row["a"] is None, bad
    assert [row["a"] for row in rows[1::2]] == [1] * len(BAD_SENML)
