"""The one table of cases for all formats: a message, and what every reader has to see in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import cbor2

from tests.formats.readers import ARRIVAL, Stream

S = ARRIVAL // 1_000_000
MS = ARRIVAL // 1_000
NEXT = ARRIVAL + 1_000_000
BAD = None
LONG = "9" * 400


@dataclass(frozen=True)
class Text:
    """A number that no double can hold: there as a text, but not as a value."""

    text: str


@dataclass(frozen=True)
class Case:
    """`records` have the time as `@` (the arrival where it is left out) and what is not null."""

    stream: Stream
    payload: bytes
    records: list[dict[str, Any]] | None


def cases(stream: Stream, *pairs: tuple[Any, Any]) -> list[Case]:
    return [Case(stream, _payload(stream, content), expected) for content, expected in pairs]


def _payload(stream: Stream, content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    return cbor2.dumps(content) if stream.format == "cbor" else json.dumps(content).encode()


def hexed(text: str) -> bytes:
    return bytes.fromhex(text.replace("{t}", f"1b{MS:016x}"))


# ── SenML ────────────────────────────────────────────────────────────────────────────────────────

PACK = Stream("senml", ("a", "b", "c", "", ":t1"), entity="dev")
SENML = cases(
    PACK,
    # the base value is added to numbers, in quotes or not
    ([{"bn": "dev", "bt": S, "bv": 20, "n": ":t1", "v": 1.5}], [{"dev": "dev", ":t1": 21.5}]),
    ([{"bv": 20, "n": "a", "v": "1.5"}, {"n": "b", "v": "hot"}], [{"a": 21.5, "b": "hot"}]),
    ([{"bv": "20", "n": "a", "v": 1}, {"bv": -1, "n": "b", "v": 1}], [{"a": 21, "b": 0}]),
    ([{"bv": 20, "n": "a", "vs": "1"}, {"n": "b", "vb": True}], [{"a": 1, "b": True}]),
    ([{"bv": 20, "n": "a"}], [{}]),
    ([{"bv": "x", "n": "a", "v": 1}], BAD),
    ('[{"bv":1e999,"n":"a","v":1}]', [{"a": Text("Infinity")}]),
    # times: absolute, relative to the base, relative to the arrival
    ([{"n": "a", "v": 1, "t": S + 1}], [{"@": NEXT, "a": 1}]),
    ([{"n": "a", "v": 1, "t": -5}], [{"@": ARRIVAL - 5_000_000, "a": 1}]),
    ([{"n": "a", "v": 1, "t": 5}], [{"@": ARRIVAL + 5_000_000, "a": 1}]),
    ([{"n": "a", "v": 1, "t": 0}, {"n": "b", "v": 2}], [{"a": 1, "b": 2}]),
    ([{"n": "a", "v": 1, "t": (1 << 28) - 1}], [{"@": ARRIVAL + 268_435_455_000_000, "a": 1}]),
    ([{"n": "a", "v": 1, "t": 1 << 28}], [{"@": 268_435_456_000_000, "a": 1}]),
    ([{"bt": -10, "n": "a", "v": 1, "t": 4}], [{"@": ARRIVAL - 6_000_000, "a": 1}]),
    ([{"bt": S, "n": "a", "v": 1}, {"n": "a", "v": 2, "t": 1}],
     [{"a": 1}, {"@": NEXT, "a": 2}]),
    ([{"bt": "2026-01-01t00:00:00z", "n": "a", "v": 1, "t": 1}], [{"@": NEXT, "a": 1}]),
    ([{"bt": MS, "n": "a", "v": 1, "t": "1.5"}], [{"@": ARRIVAL + 1_500_000, "a": 1}]),
    ([{"bt": "soon", "n": "a", "v": 1}], BAD),
    ([{"n": "a", "v": 1, "t": True}], BAD),
    ([{"n": "a", "v": 1, "t": [1]}], BAD),
    ([{"bt": -62_135_596_800, "n": "a", "v": 1, "t": -62_135_596_800}], BAD),
    ([{"bt": 253_370_764_799_999_999, "n": "a", "v": 1, "t": 1}], BAD),
    (f'{MS + 1000},[{{"n":"a","v":1,"t":-1}}]', [{"a": 1}]),
    ('99999999999999999999,[{"n":"a","v":1}]', BAD),
    # what must be understood
    ([{"n": "a", "v": 1, "x_": 1}], BAD),
    ('[{"n":"a","v":1,"x\\u005f":1}]', BAD),
    ({"e": [{"n": "a", "v": 1}], "x_": 1}, BAD),
    ([{"n": "a", "v": 1, "_x": 1, "x_y": 2, "": 3}], [{"a": 1}]),
    ([{"bver": 10, "n": "a", "v": 1}], [{"a": 1}]),
    ([{"bver": 11, "n": "a", "v": 1}], BAD),
    ([{"bver": "11", "n": "a", "v": 1}], BAD),
    ([{"bver": "new", "n": "a", "v": 1}], BAD),
    ([{"bver": None, "n": "a", "v": 1}], [{"a": 1}]),
    # entries of one base name and one time are one record; the last of a name counts
    ([{"bn": "x", "n": "a", "v": 1}, {"n": "a", "v": 2}, {"n": "b", "vs": "on"}],
     [{"dev": "x", "a": 2, "b": "on"}]),
    ([{"bn": "x", "n": "a", "v": 1}, {"bn": "y", "n": "a", "v": 2}, {"bn": "x", "n": "b", "v": 3}],
     [{"dev": "x", "a": 1, "b": 3}, {"dev": "y", "a": 2}]),
    ([{"bn": "x", "n": "dev", "vs": "own"}, {"n": "a", "v": 1}, {"n": "b", "v": 2, "t": 1}],
     [{"dev": "own", "a": 1}, {"@": NEXT, "dev": "x", "b": 2}]),
    ([{"n": "dev", "v": 7}, {"n": "a", "v": 1}], [{"dev": 7, "a": 1}]),
    ('[{"n":"dev","v":1.50},{"n":"a","v":1}]', [{"dev": Text("1.50"), "a": 1}]),
    ([{"bn": "", "n": "a", "v": 1}], [{"dev": "", "a": 1}]),
    ([{"bn": "x", "v": 3}], [{"dev": "x", "": 3}]),
    ([{"bn": "x", "bt": S}, {"n": "a", "v": 1}, {}, {"u": "C"}], [{"dev": "x", "a": 1}]),
    # kinds of values, numbers as texts
    ([{"n": "a", "v": "4"}, {"n": "b", "sv": " 5e1 "}, {"n": "c", "vs": "0x10"}],
     [{"a": 4, "b": 50, "c": "0x10"}]),
    ([{"n": "a", "v": "1_0"}, {"n": "b", "v": "nan"}, {"n": "c", "v": "inf"}],
     [{"a": "1_0", "b": "nan", "c": "inf"}]),
    ([{"n": "a", "vb": True}, {"n": "b", "vb": False}, {"n": "c", "vd": "aGk"}],
     [{"a": True, "b": False, "c": "aGk"}]),
    ([{"n": "a", "v": None, "vs": "x"}, {"n": "b", "v": None}], [{"a": "x"}]),
    ([{"n": "a", "v": [1]}, {"n": "b", "v": {}}, {"n": "c", "v": 1}], [{"c": 1}]),
    (f'[{{"n":"a","v":{LONG}}},{{"n":"b","v":1}}]', [{"a": Text(LONG), "b": 1}]),
    ('[{"n":"a","v":1,"v":2}]', [{"a": 2}]),
    # the older form
    ({"e": [{"n": "a", "v": "1"}, {"n": "dev", "sv": "s7"}], "bt": MS}, [{"dev": "s7", "a": 1}]),
    ({"e": [{"n": "a", "v": 1}], "bn": "x", "bv": 5, "bt": S + 1},
     [{"@": NEXT, "dev": "x", "a": 6}]),
    ('{"\\u0065":[{"n":"a","v":1}]}', [{"a": 1}]),
    ('{"e":[{"n":"a","v":1}],"e":1}', BAD),
    ({"e": 1}, BAD), ({}, BAD), ({"bt": 5}, BAD), ([], []), ([{}], []),
    ([1], BAD), ([[]], BAD), ("1", BAD), ("", BAD), ("12,", BAD), ("x,[]", BAD), (b"\xff", BAD),
    ([{"n": 5, "v": 1}], BAD), ([{"bn": 5, "n": "a", "v": 1}], BAD),
    ('[{"n":"a","v":NaN}]', BAD), ('[{"n":"a","v":1}', BAD), ('[{"n":"a","v":1}] x', BAD),
    ('[{"n":"\\u0061","vs":"\\ud83d\\ude00\\ud800"}]', [{"a": "😀\ufffd"}]),
    ([{"n": "a", "v": 1, "t": n} for n in range(100_001)], BAD),
    ("[" * 5000, BAD),
)  # fmt: skip
TIMED_PACK = Stream("senml", ("a",), time="when")
SENML += cases(
    TIMED_PACK,
    ([{"n": "a", "v": 1}, {"n": "when", "v": S + 1}], [{"@": NEXT, "a": 1}]),
    ([{"n": "a", "v": 1}], BAD),
)

# ── json, ndjson ─────────────────────────────────────────────────────────────────────────────────

PLAIN = Stream("json", ("a", "b", "o.p", "o.q.r", "größe", ""), entity="id")
OBJECTS: list[tuple[Any, Any]] = [
    ({"id": "x", "a": 1.5, "b": "on"}, [{"id": "x", "a": 1.5, "b": "on"}]),
    ({"id": "x", "a": "1.5", "b": " 2e1 "}, [{"id": "x", "a": 1.5, "b": 20}]),
    ({"id": "x", "a": "NaN", "b": "Infinity"}, [{"id": "x", "a": "NaN", "b": "Infinity"}]),
    ({"id": "x", "a": "1e999", "b": "0x10"}, [{"id": "x", "a": "1e999", "b": "0x10"}]),
    ({"id": "x", "a": "1_000", "b": "1 2"}, [{"id": "x", "a": "1_000", "b": "1 2"}]),
    ({"id": "x", "a": "", "b": " "}, [{"id": "x", "a": "", "b": " "}]),
    ({"id": "x", "a": "٣", "b": "1\u00a0"}, [{"id": "x", "a": "٣", "b": "1\u00a0"}]),
    ({"id": "x", "a": ".5", "b": "5."}, [{"id": "x", "a": 0.5, "b": 5}]),
    ({"id": "x", "a": "+1", "b": "--1"}, [{"id": "x", "a": 1, "b": "--1"}]),
    ({"id": "x", "a": True, "b": False}, [{"id": "x", "a": True, "b": False}]),
    ({"id": "x", "a": "true", "b": "FALSE"}, [{"id": "x", "a": "true", "b": "FALSE"}]),
    ({"id": "x", "a": None, "b": 2}, [{"id": "x", "b": 2}]),
    ({"id": "x", "b": 2}, [{"id": "x", "b": 2}]),
    ({"id": "x", "a": [1], "b": {"x": 1}}, [{"id": "x"}]),
    ('{"id":"x","a":1e999,"b":1}', [{"id": "x", "a": Text("1e999"), "b": 1}]),
    (f'{{"id":"x","a":-{LONG},"b":"{LONG}"}}', [{"id": "x", "a": Text("-" + LONG), "b": LONG}]),
    ('{"id":"x","a":9007199254740993,"b":4.9e-324}', [{"id": "x", "a": 2**53, "b": 4.9e-324}]),
    ('{"id":"x","a":-0,"b":123456789012345678901}',
     [{"id": "x", "a": 0, "b": 1.2345678901234568e20}]),
    # names that are numbers stay as they are written
    ('{"id":1.50,"a":1}', [{"id": Text("1.50"), "a": 1}]),
    ('{"id":-0,"a":1}', [{"id": Text("-0"), "a": 1}]),
    ('{"id":1e3,"a":1}', [{"id": Text("1e3"), "a": 1}]),
    ('{"id":17,"a":1}', [{"id": Text("17"), "a": 1}]),
    ('{"id":true,"a":1}', [{"id": Text("true"), "a": 1}]),
    ('{"id":"007","a":1}', [{"id": Text("007"), "a": 1}]),
    ('{"id":{},"a":1}', [{"a": 1}]),
    # nested names, names with dots, names with escapes, the same name again
    ({"id": "x", "o": {"p": 1, "q": {"r": "s"}}}, [{"id": "x", "o.p": 1, "o.q.r": "s"}]),
    ({"id": "x", "o": {"p": 1}, "o.p": 2}, [{"id": "x", "o.p": 2}]),
    ({"id": "x", "o": {"p": 1}, "o.p": None}, [{"id": "x", "o.p": 1}]),
    ({"id": "x", "o": {"p": 1}, "o.p": [2]}, [{"id": "x"}]),
    ({"id": "x", "o": [{"p": 1}], "": 3}, [{"id": "x", "": 3}]),
    ('{"id":"x","a":1,"a":2}', [{"id": "x", "a": 2}]),
    ('{"id":"x","a":1,"a":null}', [{"id": "x"}]),
    ('{"id":"x","o":{"p":1},"o":{"q":{"r":2}}}', [{"id": "x", "o.q.r": 2}]),
    ('{"id":"x","o":{"p":1},"o":5}', [{"id": "x"}]),
    ('{"id":"x","\\u0061":1,"gr\\u00f6\\u00dfe":2}', [{"id": "x", "a": 1, "größe": 2}]),
    ({"id": "é😀\u2028\n\"\\", "a": "\x7f"}, [{"id": "é😀\u2028\n\"\\", "a": "\x7f"}]),
    ('{"id":"x","a":"\\ud800","b":"\\ud83d\\ude00\\udc00"}',
     [{"id": "x", "a": "\ufffd", "b": "😀\ufffd"}]),
    (' {"id" : "x" ,\t"a":1 }\r', [{"id": "x", "a": 1}]),
    ('{"id":"x","z":' + "[" * 127 + "]" * 127 + "}", [{"id": "x"}]),
    ("{}", [{}]),
    *((text, BAD) for text in (
        '{"a":1', '{"a":1}}', '{"a":1} x', '{"a" 1}', '{"a":1,}', "{a:1}", "{'a':1}", '{"a":01}',
        '{"a":1.}', '{"a":.5}', '{"a":+1}', '{"a":1e}', '{"a":NaN}', '{"a":-Infinity}', '{"a":tru}',
        '{"a":"x}', '{"a":"\\x"}', '{"a":"\\u12"}', '{"a":"\t"}', '{"a":"\0"}', "1", '"x"', "null",
        "\ufeff{}", "{", '{"z":' + "[" * 128 + "]" * 128 + "}", '{"a":' * 5000, f"{MS},{{}}",
    )),
    (b'{"a":"\xff"}', BAD), (b'{"z":"\xed\xa0\x80"}', BAD), (b"\xff", BAD),
]  # fmt: skip
JSON = cases(
    PLAIN, *OBJECTS,
    ([{"id": "x", "a": 1}, {"id": "y", "b": 2}], [{"id": "x", "a": 1}, {"id": "y", "b": 2}]),
    ("[]", []), ("", BAD), ("[1]", BAD), ('[{"a":1},]', BAD), ('{"a":1}\n{"a":2}', BAD),
    ('{"id":"x",\n"a":1}\n', [{"id": "x", "a": 1}]),
    ("[" + "{}," * 100_000 + "{}]", BAD),
)  # fmt: skip
NDJSON = cases(
    Stream("ndjson", PLAIN.fields, entity="id"), *OBJECTS,
    ('{"id":"x","a":1}\n\n \t\r\n{"id":"y","a":2}\r\n', [{"id": "x", "a": 1}, {"id": "y", "a": 2}]),
    ('{"id":"x","a":1}\nrubbish\n', BAD), ('{"id":"x",\n"a":1}', BAD), ("", []), (" \n\t", []),
    ('[{"a":1}]', BAD), ('{"id":"x","a":1}\n' * 100_001, BAD),
)  # fmt: skip

TIMED = Stream("json", ("a",), time="t")
TIMES: list[tuple[Any, int | None]] = [
    (S, ARRIVAL), (MS, ARRIVAL), (ARRIVAL, ARRIVAL), (S + 0.25, ARRIVAL + 250_000), (0, 0),
    (-1, -1_000_000), (str(S), ARRIVAL), (f" {MS} ", ARRIVAL), (f"+{S}", ARRIVAL),
    ("1.5e9", 15 * 10**14), (f"{S}.123456", ARRIVAL + 123_456), ("0" * 70 + str(S), ARRIVAL),
    (99_999_999_999, 99_999_999_999 * 10**6),
    ("2026-01-01", ARRIVAL), ("2026-01-01T00:00:01Z", NEXT), ("2026-01-01 00:00:01", NEXT),
    ("2026-01-01t00:00:01z", NEXT), ("2026-01-01T00:00:01", NEXT), ("2026-01-01T00:00Z", ARRIVAL),
    ("2026-01-01T01:00:01+01:00", NEXT), ("2025-12-31T23:00:01-01", NEXT),
    ("2026-01-01T05:30:01+0530", NEXT), ("2026-01-01T00:00:01,5 Z", NEXT + 500_000),
    ("2026-01-01T00:00:01.1234567Z", NEXT + 123_456), (" 2026-01-01 ", ARRIVAL),
    ("2026-01-01T18:00:01+18:00", NEXT), ("0001-01-01", -62_135_596_800_000_000),
    ("20260101", 20_260_101_000_000),
    *((text, None) for text in (
        "2026-02-29", "2026-13-01", "2026-01-01T24:00", "2026-01-01T00:00:60Z", "2026-01-01T05Z",
        "2026-01-01T00:00:00+19:00", "2026-01-01T00:00:00.Z", "20260101T000000Z", "9999-01-01",
        "2026-W01-1", "2026-01-01Z", "soon", "", " ", "0x10", "1_0", "NaN", "٢", "\u00a01",
        "9" * 19,
        True, None, [1], {}, 10**30, -62_135_596_801, 9e17, 1e300,
    )),
]  # fmt: skip
TIME_CASES = cases(
    TIMED,
    *(({"t": t, "a": 1}, BAD if time is None else [{"@": time, "a": 1}]) for t, time in TIMES),
    ({"a": 1}, BAD), ('{"t":1e999,"a":1}', BAD), ('{"t":-0.0000004,"a":1}', [{"@": 0, "a": 1}]),
    ([{"t": S, "a": 1}, {"a": 2}], BAD),
    ([{"t": S, "a": 1}, {"t": "soon", "a": 2}], BAD),
)  # fmt: skip
TIME_CASES += cases(
    Stream("json", ("a",), time="head.t"),
    ({"head": {"t": S + 1}, "a": 1}, [{"@": NEXT, "a": 1}]),
    ({"head.t": S + 1, "head": {"t": 5}, "a": 1}, [{"@": NEXT, "a": 1}]),
    ({"head": S, "a": 1}, BAD),
)
NAMED = cases(
    Stream("json", ("cpu", "mem"), metric="m", value="v"),
    ({"m": "cpu", "v": 1.5}, [{"cpu": 1.5}]), ({"v": "2", "m": "mem"}, [{"mem": 2}]),
    ({"m": "cpu", "v": 1, "cpu": 6}, [{"cpu": 6}]), ({"m": "cpu", "v": [1]}, [{}]),
    ({"m": "cpu"}, [{}]), ({"m": 5, "v": 1}, [{}]), ({"m": "cpu", "v": "on"}, [{"cpu": "on"}]),
)  # fmt: skip

# ── csv ──────────────────────────────────────────────────────────────────────────────────────────

LINE = Stream("csv", ("x", "y"), time="t", entity="id", header=("t", "id", "x", "y"))
CSV = cases(
    LINE,
    (f"{MS},a,1.5,on", [{"id": "a", "x": 1.5, "y": "on"}]),
    (f'{MS},"a, ""b""", 2 ,', [{"id": 'a, "b"', "x": 2}]),
    (f"{MS},007,1e3,-0", [{"id": Text("007"), "x": 1000, "y": 0}]),
    (f"{MS},a,1e999,NaN", [{"id": "a", "x": "1e999", "y": "NaN"}]),
    (f"{MS},a,1d,Infinity", [{"id": "a", "x": "1d", "y": "Infinity"}]),
    (f"{MS},é,+1,--1", [{"id": "é", "x": 1, "y": "--1"}]),
    (f"{MS},a,4.9e-324,9007199254740993", [{"id": "a", "x": 4.9e-324, "y": 2**53}]),
    (f"{MS},a,0x10,1_0", [{"id": "a", "x": "0x10", "y": "1_0"}]),
    (f"{MS},a,true,FALSE", [{"id": "a", "x": "true", "y": "FALSE"}]),
    (f'{MS},a,"","1.5"', [{"id": "a", "x": "", "y": 1.5}]),
    (f"{MS},,.5,5.", [{"x": 0.5, "y": 5}]),
    (f"{MS},a,1 2,\u00a01", [{"id": "a", "x": "1 2", "y": "\u00a01"}]),
    (f"{MS},a,1,2\r\n", [{"id": "a", "x": 1, "y": "2\r\n"}]),
    (f'{MS},a,"x\ny",٣', [{"id": "a", "x": "x\ny", "y": "٣"}]),
    (f'{MS},a"b,c"d",é😀', [{"id": 'a"b', "x": 'c"d"', "y": "é😀"}]),
    ("2026-01-01t00:00:01z,a,1,2", [{"@": NEXT, "id": "a", "x": 1, "y": 2}]),
    (f'"{S}.5",a,1,2', [{"@": ARRIVAL + 500_000, "id": "a", "x": 1, "y": 2}]),
    (f"{MS},a,{LONG},0.{LONG}", [{"id": "a", "x": LONG, "y": 1.0}]),
    (f"{MS},a,1,2\ufeff", [{"id": "a", "x": 1, "y": "2\ufeff"}]),
    *((text, BAD) for text in (
        "", "\n", f"{MS},a,1", f"{MS},a,1,2,3", f'{MS},"a,1,2', f'{MS},"a"b,1,2', f"{MS},a\0,1,2",
        f'{MS},a,1,"', "never,a,1,2", ",a,1,2", "true,a,1,2", "\ufeff1,a,1,2", "," * 1_000_000,
        '"' * 1_000_001, '"a",' * 300_000,
    )),
    (b"\xff,a,1,2", BAD),
)  # fmt: skip
CSV += cases(Stream("csv", ("x",), header=("x", "x")), ("1,2", [{"x": 2}]), ("1,", [{}]))

# ── xml ──────────────────────────────────────────────────────────────────────────────────────────

ELEMENT = Stream("xml", ("x", "y", "p.x", "p.q.x", "x.unit", "n.m"), time="t", entity="id")
XML = cases(
    ELEMENT,
    (f'<r t="{MS}" id="007"><x unit="C"> 21.5 </x><y>on</y></r>',
     [{"id": Text("007"), "x": 21.5, "y": "on", "x.unit": "C"}]),
    (f'<r t="{MS}" id="i" x=""><y/></r>', [{"id": "i"}]),
    (f'<r t="{MS}" id="i"><p x="1"><q><x>2</x></q></p></r>', [{"id": "i", "p.x": 1, "p.q.x": 2}]),
    (f'<r t="{MS}" id="i"><p><x>1</x></p><p.x>2</p.x></r>', [{"id": "i", "p.x": 2}]),
    (f'<r t="{MS}" id="i"><p.x/><p><x>1</x></p></r>', [{"id": "i", "p.x": 1}]),
    (f'<r t="{MS}" id="i"><n.m><x>1</x></n.m><n><m>2</m></n></r>', [{"id": "i"}]),
    (f'<r t="{MS}" id="i" x="1"><x>2</x><x>3</x></r>', [{"id": "i", "x": 3}]),
    (f'<r t="{MS}" id="i"><x>1<z/></x><y>a<!-- b -->c</y></r>', [{"id": "i", "y": "ac"}]),
    (f'<r t="{MS}" id="i" x="1"><x/></r>', [{"id": "i"}]),
    (f'<r id="i"><t>{MS}</t><x>1</x></r>', [{"id": "i", "x": 1}]),
    ('<r t="2026-01-01t00:00:01z" id="i"><x>true</x></r>', [{"@": NEXT, "id": "i", "x": "true"}]),
    (f'<n:r xmlns:n="u" xmlns="v" t="{MS}" n:x="1"><n:y>2</n:y></n:r>', [{"x": 1, "y": 2}]),
    (f'<r t="{MS}"><x>a&amp;b&#252;<![CDATA[<c>]]></x><y>&#x2003;1e999&#x2003;</y></r>',
     [{"x": "a&bü<c>", "y": "1e999"}]),
    (f'<?xml version="1.0"?>\n<r t="{MS}" x="ü\n1" y=" 1 "/>\n', [{"x": "ü 1", "y": 1}]),
    (f'\ufeff<?xml version="1.0" encoding="latin1"?><r t="{MS}" x="ü"/>', [{"x": "ü"}]),
    (f'  <!-- <!DOCTYPE r> --><?a b?><r t="{MS}" x="1"/>  ', [{"x": 1}]),
    (f'<r t="{MS}"><x>1</x><y><![CDATA[<!DOCTYPE r>]]></y></r>', [{"x": 1, "y": "<!DOCTYPE r>"}]),
    (f'<r t="{MS}" xml:x="1" xmlns:a="u" xmlns:b="v" a:y="1" b:y="2"/>', [{"x": 1, "y": 2}]),
    (f'<r t="{MS}"><x>\u00a01</x><y>a<?pi b?>c</y></r>', [{"x": "\u00a01", "y": "ac"}]),
    (f'<r t="{MS}" x="1">' + "<a>" * 127 + "</a>" * 127 + "</r>", [{"x": 1}]),
    (f'<r t="{MS}">' + "<x/>" * 99_998 + "<y>1</y></r>", [{"y": 1}]),
    *((text.replace("{t}", str(MS)), BAD) for text in (
        '<r t="{t}">' + "<x/>" * 100_000 + "</r>", '<r t="{t}">' + '<x y="1"/>' * 50_000 + "</r>",
        "", "r", "<r>", '<r t="{t}"/><r/>', '<r t="{t}">&e;</r>', '<r t="{t}" x="&e;"/>',
        '<r t="{t}" x="1" x="2"/>', '<n:r t="{t}"/>', '<r t="{t}" n:x="1"/>', '<r t="{t}">\0</r>',
        '<!DOCTYPE r><r t="{t}" x="1"/>', '<!DOCTYPE r [<!ENTITY e "1">]><r t="{t}"><x>&e;</x></r>',
        '<r t="{t}"><a xmlns:n="u"/><n:x>1</n:x></r>', '<:r t="{t}"/>', '<r t="{t}" :x="1"/>',
        '<r t="{t}" xmlns:a="u" xmlns:b="u" a:x="1" b:x="2"/>', '<r t="{t}" xmlns:a="" a:x="1"/>',
        '<r t="{t}" xmlns:xml="u"/>', '<r t="{t}" xmlns:xmlns="u"/>', '<r t="{t}" xmlns:="u"/>',
        '<?xml version="1.1"?><r t="{t}"/>', '<?xml version="2.0"?><r t="{t}"/>',
        ' <?xml version="1.0"?><r t="{t}"/>', '<!-- --> <!DOCTYPE r><r t="{t}"/>',
        '<r x="1"/>', '<r t="never"/>', '<r t=""/>',
        '<r t="{t}">' + "<a>" * 128 + "</a>" * 128 + "</r>", '<r><t><x>1</x></t></r>',
        "<a>" * 50_000,
    )),
    (b"<r>\xff</r>", BAD), (f'<r t="{MS}"/>'.encode("utf-16"), BAD),
)  # fmt: skip

# ── cbor ─────────────────────────────────────────────────────────────────────────────────────────

MAP = Stream("cbor", ("x", "y", "7", "-3", "o.p", "o.7"), time="t", entity="id")
CBOR = cases(
    MAP,
    ({"t": MS, "id": "i", "x": 1, "y": -2.5, 7: "seven", -3: "1.5"},
     [{"id": "i", "x": 1, "y": -2.5, "7": "seven", "-3": 1.5}]),
    ({"t": MS, "id": "i", "x": True, "y": False, "7": None}, [{"id": "i", "x": True, "y": False}]),
    ([{"t": MS, "x": 1}, {"t": MS + 1000, "y": "on"}], [{"x": 1}, {"@": NEXT, "y": "on"}]),
    ([], []),
    ({"t": MS, "x": b"1", "y": [1], 7: {"x": 1}}, [{}]),
    ({"t": MS, "o": {"p": 1, 7: {"z": 1}}}, [{"o.p": 1}]),
    ({"t": MS, "o": {"p": [1], 7: "s"}, "o.p": None}, [{"o.7": "s"}]),
    ({"t": MS, "o.p": 2, "o": {"p": 1}}, [{"o.p": 2}]),
    ({"t": MS, "x": 2**63 - 1, "y": -(2**63)}, [{"x": 2.0**63, "y": -(2.0**63)}]),
    ({"t": MS, "x": 2**64 - 1, "y": 2**70, 7: -(2**64)},
     [{"x": 2.0**64, "y": 2.0**70, "7": -(2.0**64)}]),
    ({"t": MS, "x": float("nan"), "y": float("inf"), 7: float("-inf")},
     [{"x": Text("NaN"), "y": Text("Infinity"), "7": Text("-Infinity")}]),
    ({"t": MS, "id": 1.5, "x": 1}, [{"id": Text("1.5"), "x": 1}]),
    ({"t": MS, "id": 1e7, "x": 1}, [{"id": Text("1.0E7"), "x": 1}]),
    ({"t": MS, "id": 7, "x": "NaN"}, [{"id": Text("7"), "x": "NaN"}]),
    ({"t": cbor2.CBORTag(1, S + 1), "x": cbor2.CBORTag(0, "a")}, [{"@": NEXT, "x": "a"}]),
    ({"t": "2026-01-01t00:00:01z", "x": cbor2.CBORTag(4, [1, 2])}, [{"@": NEXT}]),
    ({"t": MS, "x": cbor2.CBORSimpleValue(99), "y": cbor2.CBORTag(29, 3), 7: -(2**70)},
     [{"y": 3, "7": -(2.0**70)}]),
    ({"t": MS, 1.5: 1, None: 2, b"x": 3, 2**63: 4, True: 5, "x": cbor2.undefined}, [{}]),
    ({"t": MS, "x": cbor2.CBORTag(2, b"\xff" * 1025), "y": "ü😀"}, [{"y": "ü😀"}]),
    (hexed("bf 6174 {t} 6178 7f 6161 62c3a9 ff 6179 f93e00 ff"), [{"x": "aé", "y": 1.5}]),
    (hexed("9f bf 6174 {t} 6178 01 ff ff"), [{"x": 1}]),
    (hexed("a3 6174 {t} 6178 fa3fc00000 6179 f97bff"), [{"x": 1.5, "y": 65_504}]),
    (hexed("a2 6174 {t} 7f 6178 ff 05"), [{"x": 5}]),
    (hexed("a2 6174 {t} 6178 5f 4101 4102 ff"), [{}]),
    (hexed("a3 6174 {t} 22 05 37 06"), [{"-3": 5}]),
    (hexed("a3 6174 {t} 6178 01 6178 02"), [{"x": 2}]),
    (hexed("a3 6174 {t} 6178 01 6178 f6"), [{}]),
    (hexed("a3 6174 {t} 616f a1 6170 01 616f a1 07 02"), [{"o.7": 2}]),
    (hexed("a3 6174 {t} 616f a1 6170 01 616f 05"), [{}]),
    (hexed("a3 6174 {t} 07 01 6137 02"), [{"7": 2}]),
    (hexed("a2 6174 {t} 6178" + "81" * 126 + "00"), [{}]),
    (hexed("a2 6174 {t} 616f" + "a16170" * 126 + "00"), [{}]),
    (hexed("a2 6174 {t} 6178" + "c6" * 5000 + "05"), [{"x": 5}]),
    *((item, BAD) for item in (
        {"x": 1}, {"t": "never"}, {"t": True}, {"t": 10**30}, 1, None, [1], [[{}]], [{"t": MS}, {}],
    )),
    *((hexed(text), BAD) for text in (
        "", "a0 a0", "a1 6178", "a1 6178 61ff", "a1 6178 ff", "bf 6178 ff", "a1 6178 1c",
        "a1 6178 1f",
        "a1 6178 7f 01 ff", "a1 6178 7f 7f ff ff", "a1 6178 df 00", "bb ffffffffffffffff",
        "9b 7fffffffffffffff", "a1 6178 9a 7fffffff", "a1 6178 7b ffffffffffffffff", "c6",
        "bb 00000000000f4241" + "0000" * 1_000_001, "bf" + "0000" * 1_000_001 + "ff",
        "a2 6174 {t} 6178" + "81" * 128 + "00", "a2 6174 {t} 616f" + "a16170" * 128 + "00",
        "9a 000186a1" + "a0" * 100_001, "81" * 100_000,
    )),
)  # fmt: skip

TABLE = {
    "senml": SENML,
    "json": JSON + TIME_CASES + NAMED,
    "ndjson": NDJSON,
    "csv": CSV,
    "xml": XML,
    "cbor": CBOR,
}
