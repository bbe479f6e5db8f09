"""Every format of the source gives typed columns; what cannot be read as its type is null."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import cbor2
import pytest

pytestmark = pytest.mark.spark

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data"


def write(folder: Path, *lines: str, name: str = "in.txt") -> Path:
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def test_json_types(batch: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"d": 1.5, "l": 7, "s": "x", "b": true}',
        '{"d": "2.25", "l": "-8", "s": 3.50, "b": "False"}',
        '{"d": true, "l": false, "s": false, "b": 1}',
        '{"d": {}, "l": [], "s": {"a": 1}, "b": "no"}',
        '{"d": null, "l": 1.0, "s": null, "b": null}',
        '{"d": 1e999, "l": 99999999999999999999, "s": "", "b": 2}',
        '{"d": "NaN", "l": 1.5, "s": "a\\"\\u00e9\\ud83d\\ude00\\n", "b": 0}',
        '{"d": -0.1e-3, "l": 1e3, "s": "\\ud800", "b": "TRUE"}',
        "{}",
    )
    rows = batch(path, "json", "d double, l long, s string, b boolean")
    values = [(row["d"], row["l"], row["s"], row["b"]) for row in rows]
    assert values == [
        (1.5, 7, "x", True),
        (2.25, -8, "3.50", False),
        (1.0, 0, "false", True),
        (None, None, None, None),
        (None, 1, None, None),
        (None, None, "", None),
        (None, None, 'a"é😀\n', False),
        (-0.0001, 1000, "\ufffd", True),
        (None, None, None, None),
    ]


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0",
        "0.1",
        "1.005",
        "123456789012345678",
        "9007199254740993",
        "0.30000000000000004",
        "1e22",
        "1e23",
        "4.9e-324",
        "1.7976931348623157e308",
        "179769313486231570000",
        "3.14159265358979323846264338327950288",
        "-7.25",
    ],
)
def test_doubles_are_exact(batch: Callable, tmp_path: Path, number: str) -> None:
    path = write(tmp_path, f'{{"x": {number}, "y": "{number}"}}')
    row = batch(path, "json", "x double, y double")[0]
    assert (row["x"], row["y"]) == (float(number), float(number))


def test_json_list_is_several_records(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, '[{"a": 1}, {"a": 2, "a": 3}]', "[]", ' { "a" : 4 } ')
    assert [row["a"] for row in batch(path, "json", "a long")] == [1, 3, 4]


def test_nested_paths_and_literal_dots(batch: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"o": {"p": {"q": 1}, "p.q": 9}, "x": 1}',
        '{"o": {"p": {"q": 1}}, "o.p.q": 2}',
        '{"o.p.q": 3, "o": {"p": {"q": 1}}}',
        '{"o": {"p": 4}}',
        '{"o": [{"p": {"q": 5}}]}',
    )
    rows = batch(path, "json", "v long<o.p.q, p string<o.p")
    assert [(row["v"], row["p"]) for row in rows] == [
        (1, None),
        (2, None),
        (3, None),
        (None, "4"),
        (None, None),
    ]


def test_names_with_escapes_are_found(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, '{"t\\u0065mp": 1, "größe": 2}')
    row = batch(path, "json", "temp long, g long<größe")[0]
    assert (row["temp"], row["g"]) == (1, 2)


def test_ndjson_lines_are_objects(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, '{"a": 1}', '[{"a": 2}]', '{"a": 3}{"a": 4}', '{"a": 5}')
    rows = batch(path, "ndjson", "a long, _error")
    assert [row["a"] for row in rows] == [1, None, None, 5]
    assert [row["_error"] is None for row in rows] == [True, False, False, True]


def test_metric_named_in_the_record(batch: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{"metric": "cpu", "value": 1.5, "node": "a"}',
        '{"node": "b", "value": 2, "metric": "mem"}',
        '{"cpu": 3, "mem": 4}',
        '{"metric": "cpu", "value": 5, "cpu": 6}',
        '{"metric": "disk", "value": 7}',
    )
    rows = batch(
        path,
        "json",
        "cpu double!, mem double!, node string",
        metricField="metric",
        valueField="value",
    )
    assert [(row["cpu"], row["mem"]) for row in rows] == [
        (1.5, None),
        (None, 2),
        (3, 4),
        (6, None),
        (None, None),
    ]


def test_csv_header_of_the_file(batch: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '\ufeffid,"t, x",v',
        "a,2024-01-01T00:00:00Z,1.5",
        '"b, ""c""",2024-01-01 00:00:01,',
        '"",7,x',
    )
    rows = batch(path, "csv", "id string, v double", time="t, x")
    assert [row["id"] for row in rows] == ["a", 'b, "c"', ""]
    assert [row["v"] for row in rows] == [1.5, None, None]
    assert rows[1]["_time"] == micros("2024-01-01T00:00:01")


def test_csv_header_option(batch: Callable, tmp_path: Path) -> None:
    path = write(tmp_path, "1,x", "2,y")
    rows = batch(path, "csv", "a long, b string", header=["a", "b"])
    assert [(row["a"], row["b"]) for row in rows] == [(1, "x"), (2, "y")]


def test_xml(batch: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '<r id="s1"><temp unit="C"> 21.5 </temp><pos><lat>1</lat><lon>2</lon></pos><e/>'
        "<t>a&amp;b<![CDATA[<c>]]></t></r>",
        '<?xml version="1.0"?><n:r xmlns:n="u"><n:temp>3</n:temp><!-- x --><t>ü</t></n:r>',
    )
    rows = batch(
        path,
        "xml",
        "id string, temp double, unit string<temp.unit, lat long<pos.lat, e string, t string, "
        "pos string",
    )
    assert [rows[0][name] for name in ("id", "temp", "unit", "lat", "e", "t", "pos")] == [
        "s1",
        21.5,
        "C",
        1,
        None,
        "a&b<c>",
        None,
    ]
    assert (rows[1]["temp"], rows[1]["t"]) == (3, "ü")


def test_cbor_sequence(batch: Callable, tmp_path: Path) -> None:
    items = [
        {"a": 1, "s": "ü", "b": True, "o": {"p": 2.5}, 7: "seven"},
        [{"a": -5, "s": None}, {"a": 2**64 - 1, "s": "x" * 300, "b": False}],
        {"a": 2**70, "s": b"bytes", "o": [1, {"p": 3}]},
        {"a": datetime(2024, 1, 1, tzinfo=UTC), "s": 1.5},
        {"a": 1.5, "x": cbor2.CBORTag(4, [1, 2]), "o": {"p": float("inf")}},
    ]
    indefinite = bytes.fromhex(
        "bf6161187b61737f61786179ff61620bff"
    )  # {_ "a": 123, "s": (_ "x", "y"), "b": 11}
    half = bytes.fromhex("a16161f93e00")  # {"a": 1.5 as a half}
    path = tmp_path / "in.cbor"
    path.write_bytes(b"".join(map(cbor2.dumps, items)) + indefinite + half)
    rows = batch(path, "cbor", "a double, s string, b boolean, p double<o.p, n string<7")
    assert [(row["a"], row["s"], row["b"], row["p"], row["n"]) for row in rows] == [
        (1, "ü", True, 2.5, "seven"),
        (-5, None, None, None, None),
        (2.0**64, "x" * 300, False, None, None),
        (2.0**70, None, None, None, None),
        (None, "1.5", None, None, None),
        (1.5, None, None, None, None),
        (123, "xy", None, None, None),
        (1.5, None, None, None, None),
    ]


def test_senml_pack_of_the_rfc(batch: Callable, tmp_path: Path) -> None:
    pack = [
        {"bn": "urn:dev:1/", "bt": 1_700_000_000, "bu": "A", "bver": 5, "n": "voltage", "v": 120.1},
        {"n": "current", "t": -5, "v": 1.2},
        {"n": "label", "vs": "on"},
        {"n": "current", "t": -5.0, "v": 1.3},
        {"bn": "urn:dev:2/", "n": "voltage", "v": 7},
        {"n": "open", "vb": True},
    ]
    path = write(tmp_path, json.dumps(pack))
    rows = batch(
        path,
        "senml",
        "node string, voltage double, current double, label string, open boolean",
        entity="node",
    )
    assert [
        (row["node"], row["voltage"], row["current"], row["label"], row["open"]) for row in rows
    ] == [
        ("urn:dev:1/", 120.1, None, "on", None),
        ("urn:dev:1/", None, 1.3, None, None),
        ("urn:dev:2/", 7, None, None, True),
    ]
    assert [row["_time"] for row in rows] == [
        1_700_000_000_000_000,
        1_699_999_995_000_000,
        1_700_000_000_000_000,
    ]


def test_senml_base_value_and_relative_time(batch: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '1600000000000,[{"bn":"x","bv":20,"n":"a","v":1.5,"t":-10},{"n":"b","v":2}]',
        '1600000000000,{"e":[{"n":"a","v":"4"},{"n":"b","sv":"5","t":2}]}',
    )
    rows = batch(path, "senml", "a double, b double")
    assert [(row["a"], row["b"], row["_time"] // 1_000_000) for row in rows] == [
        (21.5, None, 1_599_999_990),
        (None, 22, 1_600_000_000),
        (4, None, 1_600_000_000),
        (None, 5, 1_600_000_002),
    ]


@pytest.mark.skipif(
    not (SAMPLES / "SYS_sample_data_senml.csv").exists(), reason="sample data is absent"
)
def test_senml_samples(batch: Callable) -> None:
    for name, numeric, text in [
        ("SYS", "temperature", "source"),
        ("TAXI", "fare_amount", "taxi_identifier"),
    ]:
        path = SAMPLES / f"{name}_sample_data_senml.csv"
        rows = batch(path, "senml", f"n double<{numeric}, s string<{text}")
        expected = []
        for line in path.read_text().splitlines():
            pack = json.loads(line.partition(",")[2])
            values = {entry["n"]: entry.get("v", entry.get("sv")) for entry in pack["e"]}
            expected.append((float(values[numeric]), values[text], pack["bt"] * 1000))
        assert [(row["n"], row["s"], row["_time"]) for row in rows] == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1700000000", 1_700_000_000_000_000),
        ("1700000000.123456", 1_700_000_000_123_456),
        ("1700000000123", 1_700_000_000_123_000),
        ("1700000000123456", 1_700_000_000_123_456),
        ("1.7e9", 1_700_000_000_000_000),
        ("-1", -1_000_000),
        ('"1700000000123"', 1_700_000_000_123_000),
        ('"2024-02-29T12:34:56.789Z"', micros("2024-02-29T12:34:56.789")),
        ('"2024-02-29 12:34:56"', micros("2024-02-29T12:34:56")),
        ('"2024-02-29T12:34"', micros("2024-02-29T12:34:00")),
        ('"2024-02-29"', micros("2024-02-29T00:00:00")),
        ('"2024-02-29T12:34:56.1234567+02:00"', micros("2024-02-29T10:34:56.123456")),
        ('"2024-02-29T12:34:56-0530"', micros("2024-02-29T18:04:56")),
        ('"1969-12-31T23:59:59Z"', -1_000_000),
        ('"0001-01-01"', -62_135_596_800_000_000),
        ('"2023-02-29"', None),
        ('"2024-13-01"', None),
        ('"2024-01-01T24:00"', None),
        ('"2024-01-01T10:00:60"', None),
        ('"2024-01-01Tten"', None),
        ('"9999-01-01"', None),
        ('"soon"', None),
        ('""', None),
        ("1e300", None),
        ("true", None),
        ("{}", None),
        ("null", None),
    ],
)
def test_times(batch: Callable, tmp_path: Path, written: str, expected: int | None) -> None:
    rows = batch(write(tmp_path, f'{{"t": {written}}}'), "json", "_error", time="t")
    assert [row["_time"] for row in rows] == [expected]
    assert (rows[0]["_error"] is None) == (expected is not None)


def test_times_of_any_number_of_digits(batch: Callable, tmp_path: Path) -> None:
    """Seconds, milliseconds or microseconds, by their size; digits are read several at a time."""
    numbers = [int("9876543210123456789"[:n]) for n in range(1, 20)]
    numbers += [10**n + k for n in range(1, 19) for k in (-1, 0, 1)]
    rows = batch(write(tmp_path, *(f'{{"t": {n}}}' for n in numbers)), "json", "_error", time="t")
    assert [row["_time"] for row in rows] == [_micros(n) for n in numbers]


def test_what_is_no_digit_in_a_time(batch: Callable, tmp_path: Path) -> None:
    good = "1735689600123"
    signs = "/:;@a\u00b9\u0663 -"
    broken = [good[:at] + sign + good[at + 1 :] for at in range(13) for sign in signs]
    lines = (json.dumps({"t": text}, ensure_ascii=False) for text in [good, *broken])
    rows = batch(write(tmp_path, *lines), "json", "_error", time="t")
    assert rows[0]["_time"] == 1_735_689_600_123_000
    blank_ends = {f" {good[1:]}", f"{good[:-1]} "}
    for text, row in zip(broken, rows[1:], strict=True):
        assert (row["_time"] is None) == (text not in blank_ends), text


def _micros(number: int) -> int | None:
    unit = 1 if number >= 10**14 else 1_000 if number >= 10**11 else 1_000_000
    return number * unit if number * unit < micros("9999-01-01T00:00:00") else None


def test_time_is_arrival_where_nothing_else_is_known(batch: Callable, tmp_path: Path) -> None:
    before = datetime.now(UTC).timestamp()
    row = batch(write(tmp_path, "{}"), "json", "")[0]
    assert before - 1 <= row["_time"] / 1e6 <= datetime.now(UTC).timestamp() + 1


def test_many_lines_alike_and_what_is_unlike_among_them(batch: Callable, tmp_path: Path) -> None:
    """Lines like the one before are read without a search for their end; the rest is not."""
    chance = random.Random(7)
    lines, expected = [], []
    for number in range(9_000):
        what = chance.choice(
            ["plain"] * 20 + ["time", "order", "blank", "crlf", "cut", "list", "text"]
        )
        good = {
            "name": "n" * chance.randrange(60),
            "t": 1_735_689_600_000 + number,
            "x": number / 4,
        }
        if what == "order":
            good = dict(reversed(good.items()))
        elif what == "text":
            good["name"] = 'quote " and \u00fc'
        elif what == "time":
            good["t"] = "never"
        text = json.dumps([good] if what == "list" else good, ensure_ascii=False)
        lines.append(
            {"blank": " \n", "cut": "\n"}.get(what, "") + (text[:-3] if what == "cut" else text)
        )
        lines.append("\r\n" if what == "crlf" else "\n")
        if what not in ("time", "cut"):
            expected.append((good["name"], good["x"], good["t"] * 1_000))
    path = tmp_path / "in.json"
    path.write_text("".join(lines[:-1]), encoding="utf-8", newline="")
    assert path.stat().st_size > 2 << 18
    for more in ({}, {"splitBytes": 100_000}):
        plain = batch(path, "json", "name string, x double", time="t", **more)
        assert [(row["name"], row["x"], row["_time"]) for row in plain] == expected
        slow = batch(path, "json", "name string, x double, _error", time="t", **more)
        told = [(row["name"], row["x"], row["_time"]) for row in slow if row["_error"] is None]
        assert told == expected
        assert len(slow) == 9_000
