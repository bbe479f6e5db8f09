"""Every format parses back to the events; files, disorder and rubbish are what was asked for."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fogline.common.errors import FoglineError, UsageError
from fogline.simulate import FORMATS, STREAMS, Event, Run, Wire, encode, events, write_file
from fogline.simulate.schema import FieldValue, FormatName


def read_json(line: str, name: str) -> tuple[int, dict[str, FieldValue]]:
    fields = json.loads(line)
    return fields.pop("time"), fields


def read_csv(line: str, name: str) -> tuple[int, dict[str, FieldValue]]:
    time, *cells = next(csv.reader(io.StringIO(line)))
    fields = STREAMS[name].fields
    kinds = [str if f.decimals is None else int if f.decimals == 0 else float for f in fields]
    values = [kind(c) if c else None for kind, c in zip(kinds, cells, strict=True)]
    return int(time), dict(zip([f.name for f in fields], values, strict=True))


def read_senml(line: str, name: str) -> tuple[int, dict[str, FieldValue]]:
    prefix, pack = line.split(",", 1)
    parsed = json.loads(pack)
    assert parsed["bt"] == int(prefix)
    found = {e["n"]: e.get("v", e.get("sv")) for e in parsed["e"]}
    fields: dict[str, FieldValue] = {}
    for field in STREAMS[name].fields:
        text = found.get(field.name)
        is_text = field.decimals is None or text is None
        fields[field.name] = text if is_text else float(text)
    return int(prefix), fields


READERS = {"json": read_json, "csv": read_csv, "senml": read_senml}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("format", FORMATS)
def test_files_parse_back_and_equal_the_events_one_by_one(
    name: str, format: FormatName, tmp_path: Path
) -> None:
    path = tmp_path / "stream"
    assert write_file(path, Run(name, 3000, 3, "burst", 4), Wire(format)) == 9000
    lines = path.read_text(encoding="ascii").splitlines()
    if format == "csv":
        assert lines.pop(0).split(",") == ["time", *(f.name for f in STREAMS[name].fields)]
    made: list[Event] = list(events(name, 3000, 3, "burst", 4))
    assert lines == [encode(event, format).decode() for event in made]
    read = [READERS[format](line, name) for line in lines]
    assert read == [(event.time_ms, event.fields) for event in made]


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_one_seed_are_identical(format: FormatName, tmp_path: Path) -> None:
    wire = Wire(format, shuffle=2, bad=0.1)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_file(tmp_path / name, Run("city", 2000, 10, seed=seed), wire)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def times(path: Path) -> list[int]:
    return [json.loads(line)["time"] for line in path.read_text(encoding="ascii").splitlines()]


def test_shuffle_displaces_within_its_bound_and_loses_nothing(tmp_path: Path) -> None:
    run = Run("grid", 1000, 30)
    write_file(tmp_path / "plain", run, Wire("json"))
    write_file(tmp_path / "mixed", run, Wire("json", shuffle=3))
    plain, mixed = ((tmp_path / n).read_text().splitlines() for n in ("plain", "mixed"))
    assert plain != mixed
    assert sorted(plain) == sorted(mixed)
    newest = latest = 0
    for time in times(tmp_path / "mixed"):
        newest = max(newest, time)
        latest = max(latest, newest - time)
    assert 2000 < latest <= 3000


@pytest.mark.parametrize("format", FORMATS)
def test_rubbish_is_added_and_nothing_else_changes(format: FormatName, tmp_path: Path) -> None:
    run = Run("city", 1000, 10, seed=6)
    write_file(tmp_path / "plain", run, Wire(format))
    written = write_file(tmp_path / "mixed", run, Wire(format, bad=0.2))
    plain, mixed = ((tmp_path / n).read_bytes().splitlines() for n in ("plain", "mixed"))
    good = set(plain)
    assert [line for line in mixed if line in good] == plain
    bad = [line for line in mixed if line not in good]
    assert 0.18 < len(bad) / written < 0.22
    for line in bad:
        with pytest.raises((ValueError, UnicodeDecodeError, KeyError)):
            READERS[format](line.decode("utf-8"), "city")


@pytest.mark.parametrize(
    "wire", [{"format": "yaml"}, {"format": "json", "shuffle": -1}, {"format": "csv", "bad": 1}]
)
def test_a_wrong_wire_is_refused(wire: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Wire(**wire)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FoglineError, match="cannot write"):
        write_file(tmp_path / "none" / "x", Run("city", 1, 1), Wire("json"))


@pytest.mark.site
def test_a_reader_that_leaves_early_is_no_error() -> None:
    code = "from fogline.simulate import *\nwrite_file('-', Run('city', 50000, 4), Wire('json'))"
    writer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert json.loads(writer.stdout.readline())["source"]
    writer.stdout.close()
    assert writer.stderr is not None
    assert writer.stderr.read() == b""
    assert writer.wait(timeout=30) == 0
