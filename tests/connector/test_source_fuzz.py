"""Random and damaged messages: the decoders accept what Python's accept, and never fail a query."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbor2
import pytest

pytestmark = pytest.mark.spark

LETTERS = ["a", "b", "é", "\n", '"', "\\", "😀", "\u2028", "{", "0", "\x7f", " "]


def random_value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(8 if depth else 6)
    if kind == 0:
        return rng.choice([True, False, None])
    if kind == 1:
        return rng.randint(-(10 ** rng.randint(0, 20)), 10 ** rng.randint(0, 20))
    if kind == 2:
        return rng.uniform(-1, 1) * 10 ** rng.randint(-30, 30)
    if kind < 6:
        return "".join(rng.choices(LETTERS, k=rng.randint(0, 6)))
    if kind == 6:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return random_object(rng, depth - 1)


def random_object(rng: random.Random, depth: int) -> dict[str, Any]:
    names = rng.sample(["x", "y", "z", "a.b", "é", ""], rng.randint(0, 4))
    return {name: random_value(rng, depth) for name in names}


def damaged(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    how = rng.randrange(4)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + data[at + 1 :]
    if how == 2:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    return (
        data[:at]
        + rng.choice([b",", b'"', b"}", b"[", b"\\", b"0", b"\xc3", b"-", b"e"])
        + data[at:]
    )


def reference(line: bytes) -> tuple[bool, Any, Any]:
    """Whether the line is a JSON object, and its x as number and as text."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        record = json.loads(line.decode(), parse_constant=refuse, parse_float=Text, parse_int=Text)
    except ValueError:
        return False, None, None
    if not isinstance(record, dict):
        return False, None, None
    value = record.get("x")
    if isinstance(value, bool):
        return True, float(value), str(value).lower()
    if isinstance(value, Text):
        number = float(value.text)
        return True, number if math.isfinite(number) else None, value.text
    if isinstance(value, str):
        return True, None, "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
    return True, None, None


def check_like_python(lines: list[bytes], rows: list[dict[str, Any]]) -> None:
    for line, row in zip(lines, rows, strict=True):
        valid, number, text = reference(line)
        assert (row["_error"] is None) == valid, line
        assert row["s"] == text, line
        if number is not None or text is None:
            assert row["d"] == number, line


class Text:
    def __init__(self, text: str) -> None:
        self.text = text


@pytest.mark.parametrize("seed", range(3))
def test_json_like_python(batch: Callable, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    lines = []
    while len(lines) < 4000:
        record = random_object(rng, 3)
        text = json.dumps(
            record, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, None, 0])
        )
        line = text.replace("\n", " ").encode()
        for _ in range(rng.choice([0, 1, 1, 2])):
            line = damaged(rng, line)
        if line.strip(b" \t\r") and b"\n" not in line and b"\r" not in line:
            lines.append(line)
    path = tmp_path / "in"
    path.write_bytes(b"\n".join(lines))
    rows = batch(
        path, "ndjson", "d double<x, s string<x, _error", splitBytes=rng.choice([999, 1 << 20])
    )
    check_like_python(lines, rows)


def unusual(rng: random.Random) -> str:
    """The text of a value: mostly what devices send, sometimes what JSON allows or just not."""
    plain = ["1", "-2.5", "0", "12345678901234567890", "0.000001", '"room 1"', '""', "3.14159265"]
    odd = ["01", "-", "1.", ".5", "1e3", "-0", "1E+2", "+1", "true", "null", "nul", "[1]", "{}",
           '"\\u00e9"', '"é"', '"a\tb"', '"\\"', '"unended', "NaN", '"{\\"x"', " 7 "]  # fmt: skip
    return rng.choice(plain if rng.random() < 0.8 else odd)


@pytest.mark.parametrize("seed", range(3))
def test_messages_of_one_outline_like_python(batch: Callable, tmp_path: Path, seed: int) -> None:
    """Devices repeat the bytes between values, and the decoder makes use of it."""
    rng = random.Random(seed)
    outlines = ['{{"a":{},"x":{},"longer name":{}}}', '{{"x": {}, "y": {}, "x": {} }}', "{{{}}}"]
    lines = []
    for _ in range(300):
        outline = rng.choice(outlines[:2]) if rng.random() < 0.9 else outlines[2]
        for _ in range(rng.choice([1, 5, 40])):
            line = outline.format(*(unusual(rng) for _ in range(3))).encode()
            lines.append(damaged(rng, line) if rng.random() < 0.1 else line)
    lines = [x for x in lines if x.strip(b" \t\r") and not {10, 13} & set(x)]
    path = tmp_path / "in"
    path.write_bytes(b"\n".join(lines))
    rows = batch(path, "json", "d double<x, s string<x, _error")
    check_like_python(lines, rows)


@pytest.mark.parametrize("kind", ["json", "senml", "csv", "xml", "cbor"])
def test_noise_never_fails(batch: Callable, stream: Callable, tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    good = {
        "json": b'{"x": 1.5, "y": [1, {"z": "\\u00e9"}]}\n',
        "senml": b'1600000000,{"e":[{"n":"x","v":"1.5"},{"n":"y","sv":"\\n"}],"bt":1600000000}\n',
        "csv": b'1.5,"a ""b""",c\n',
        "xml": b'<r y="1"><x u="v">1.5</x><!-- --><z>&lt;</z></r>\n',
        "cbor": cbor2.dumps({"x": 1.5, "y": ["a", {"z": b"b"}], "n": 2**70, 5: None}),
    }[kind]
    parts = []
    for _ in range(300):
        part = good
        for _ in range(rng.randint(0, 4)):
            part = damaged(rng, part)
        parts.append(part)
    path = tmp_path / "in"
    path.write_bytes(b"".join(parts))
    options = {"header": ["x", "y", "z"]} if kind == "csv" else {}
    rows = batch(path, kind, "x double, y string, z string, _error", **options)
    assert rows
    assert not [row for row in rows if "decoder failed" in (row["_error"] or "")]
    again = stream(
        path,
        kind,
        "x double, y string, z string, _error",
        maxBytesPerTrigger=5000,
        splitBytes=700,
        **options,
    )
    assert [(row["x"], row["y"], row["_error"]) for row in again] == [
        (row["x"], row["y"], row["_error"]) for row in rows
    ]
