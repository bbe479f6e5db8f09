"""`fogline check`: what is wrong, where, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

S = 's = STREAM FROM memory(name="s", time="t");'
TYPED = 's = STREAM FROM memory(name="s", schema="x double, city string");'
TWO = 'a = STREAM FROM file(path="a"); b = STREAM FROM file(path="b");'
OF = "i = COMPUTE"
AVG = "i = COMPUTE AVG(x, 1 s)"
E = "EVERY 1 s"

# first line, second line, then the problem: code, line, column, message, hint
BROKEN = [
    (S, f"{OF} AVG(x FROM (z), 1 s) {E}", "UNKNOWN_STREAM", 2, 17, "there is no stream z", "known"),
    ("", f"{AVG} {E}", "UNKNOWN_STREAM", 2, 17, "x comes from no stream", "declare one"),
    (TYPED, f"{OF} AVG(xx, 1 s) {E}", "UNKNOWN_METRIC", 2, 17, "xx is not in the schema",
     "did you mean x?"),
    (S, f"{OF} AVG(s, 1 s) {E}", "UNKNOWN_METRIC", 2, 17, "whole records", "field FROM (s)"),
    (f"{S} j = COMPUTE AVG(x) BY k {E};", f"{OF} MAX(kk FROM (j)) {E}", "UNKNOWN_METRIC", 2, 17,
     "j has no kk", "did you mean k?"),
    (f"{S} load = COMPUTE AVG(x) {E};", f"{OF} MAX(INSIGHT laod) {E}", "UNKNOWN_INSIGHT", 2, 17,
     "there is no insight laod", "did you mean load?"),
    (TYPED, f"{OF} AVG(city, 1 s) {E}", "TYPE", 2, 17, "city is a string in s", ""),
    (TYPED, f"{OF} AVG(x WHEN city > 3, 1 s) {E}", "TYPE", 2, 24, "city is a string in s", ""),
    (S, f"{OF} TOP_K[3](x, 1 s) WHEN > 3 {E}", "TYPE", 2, 35, "a list cannot be compared",
     "drop WHEN"),
    (S, f"{OF} TOP_K[3](x, 1 s) + 1 {E}", "TYPE", 2, 13, "numbers, not a list", ""),
    (f"{S} top = COMPUTE TOP_K[3](x) {E};", f"{OF} AVG(top, 5 s) {E}", "TYPE", 2, 17, "list", ""),
    (S, f"{OF} COUNT(TOP_K[3](x) BY k) {E}", "TYPE", 2, 13, "list", ""),
    (S, f"{OF} x WHEN x IN (1, a)", "TYPE", 2, 20, "mixes numbers and strings", ""),
    (S, f"{OF} GEOHASH[3](lat, lon) + 1", "TYPE", 2, 13, "arithmetic needs numbers", ""),
    (S, f"{AVG} BY k WHEN k > 3 {E}", "TYPE", 2, 35, "a string cannot be compared", ""),
    (S, f'{OF} x WHEN city > "a"', "TYPE", 2, 20, "> needs numbers", "== and !="),
    (S, f'{AVG} BY k WHEN k > "a" {E}', "TYPE", 2, 35, "> needs numbers", "== and !="),
    (S, f"{OF} x WHEN x + 1 == foo", "TYPE", 2, 20, "a number cannot be compared with a string",
     "foo FROM (stream)"),
    (S, f"{AVG} WHEN == foo {E}", "TYPE", 2, 30, "a number cannot be compared", "foo FROM"),
    (S, f"{OF} x WHEN GEOHASH[3](a, b) IN (1, 2)", "TYPE", 2, 20, "a string cannot be compared",
     ""),
    (S, f"{OF} -GEOHASH[3](a, b)", "TYPE", 2, 14, "arithmetic needs numbers", ""),
    (f"{TYPED} j = COMPUTE city;", f"{OF} j {E}", "TYPE", 2, 13, "j is a string", "BY j"),
    (TYPED.replace("city string", "ok boolean"), f"{OF} x WHEN ok == true", "TYPE", 2, 20,
     "ok is a number in s", "1 and 0"),
    (S, f"{OF} GEOHASH[3](AVG(a), AVG(b)) {E}", "UNSUPPORTED", 2, 13, "works on records", "BY GEO"),
    (S, f"{OF} MAX(AVG(x) BY a + AVG(y) BY b) {E}", "KEYS", 2, 13, "different keys", "own"),
    (S, f"{AVG} EVERY 400 h", "RETENTION", 2, 31, "records are kept (168 h)", ""),
    (S, f"{OF} AVG(x, SESSION 400 h)", "RETENTION", 2, 13, "records are kept (168 h)", ""),
    (S, f"{AVG} {E} WITH ALLOW WHEN AVG(x) > 3", "CONDITION", 2, 51, "a fact about a node",
     "ALLOW WHEN node_id"),
    (S, f"{OF} AVRG(x, 1 s) {E}", "UNKNOWN_FUNCTION", 2, 13, "there is no function AVRG",
     "did you mean AVG?"),
    (S, f"{OF} AVG(x, y, 1 s) {E}", "ARGUMENTS", 2, 13, "AVG takes 1 metric(s), 2 given", ""),
    (S, f"{OF} RUNNING_MEAN(x, 1 s) {E}", "ARGUMENTS", 2, 13, "takes no window", ""),
    (S, f"{OF} SQRT(x, 1 s)", "ARGUMENTS", 2, 13, "SQRT works on one record", ""),
    (S, f"{OF} PERCENTILE[101](x) {E}", "PARAMETERS", 2, 13, "101 is out of range", "0 to 100"),
    (S, f"{OF} PERCENTILE(x) {E}", "PARAMETERS", 2, 13, "0 number(s) in brackets",
     "expected PERCENTILE[p]"),
    (S, f"{OF} TOP_K[2.5](x) {E}", "PARAMETERS", 2, 13, "2.5 is out of range", "whole number"),
    (f"{S} j = COMPUTE AVG(i) {E};", f"{OF} AVG(j) {E}", "CYCLE", 2, 17, "j → i → j", "FROM"),
    (S, f"{OF} AVG(i) {E}", "CYCLE", 2, 17, "i → i", "name FROM (stream)"),
    (S, f"{AVG} BY k, k {E}", "KEYS", 2, 31, "BY names k twice", ""),
    (S, f"{OF} (AVG(x) BY a) + (AVG(x) BY b) {E}", "KEYS", 2, 1, "the same keys", "BY once"),
    (f"{S} a = COMPUTE AVG(x) BY k {E}; b = COMPUTE AVG(x) {E};", f"{OF} a + b", "KEYS", 2, 1,
     "different keys", "say BY"),
    (S, f"{OF} AVG(x)", "WINDOW", 2, 13, "needs a window", "AVG(metric, 10 SECONDS)"),
    (S, f"{OF} FORECAST[2](x, 3 EVENTS) {E}", "WINDOW", 2, 13, "a window of time", ""),
    (S, f"{OF} AVG(x, 30 DAYS) EVERY 1 h", "RETENTION", 2, 13, "records are kept (168 h)", ""),
    (S, f"{OF} AVG(x, 100 h, 69 h) EVERY 1 h", "RETENTION", 2, 13, "reaches back further", ""),
    (S, f"{AVG} {E} WITH SCHEDULER = enrgy", "OPTION", 2, 35, "no scheduler enrgy",
     "did you mean energy?"),
    (S, f"{OF} OUTLIER_DETECTION(x) {E}", "OPTION", 2, 13, "needs K and R", "K=50 AND R=0.5"),
    (S, f"{AVG} {E} WITH CONFIDENCE 0.9", "OPTION", 2, 35, "need MAX_ERROR", ""),
    (S, f"{AVG} {E} WITH K=3 AND R=1", "OPTION", 2, 35, "belong to OUTLIER_DETECTION", "drop"),
    (S, f"{OF} OUTLIER_DETECTION(x) {E} WITH ALGORITHM mcod AND K=3 AND R=1", "OPTION", 2, 44,
     "no outlier algorithm mcod", "known: pmcod"),
    (S, f"{OF} MIN(SUM(x, 1 s) BY k, 1 s)", "UNSUPPORTED", 2, 13, "needs EVERY", "add EVERY"),
    (S, f"{AVG} {E} WITH SAMPLE 0.5 AND MAX_ERROR 0.1", "UNSUPPORTED", 2, 35, "exclude each other",
     "drop one"),
    (S, f"{OF} MAX(x) {E} WITH MAX_ERROR 0.1", "UNSUPPORTED", 2, 1, "AVG, SUM or COUNT", ""),
    (S, f"{OF} SUM(x, SESSION 5 s) {E}", "UNSUPPORTED", 2, 1, "evaluated when it ends", "drop"),
    (S, f"{OF} SUM(x, SESSION 5 s) + SUM(x, 5 s)", "UNSUPPORTED", 2, 1, "cannot be mixed",
     "split"),
    (TWO, f"{OF} AVG(x FROM (a) + y FROM (b), 1 s) {E}", "UNSUPPORTED", 2, 30,
     "cannot read both a and b", "an insight of its own"),
    (TWO, f"{OF} CORRELATION(x FROM (a), y FROM (b), 1 s) {E}", "UNSUPPORTED", 2, 13,
     "cannot read both a and b", "an insight of its own"),
    (S, f"{OF} FORECAST[2](x, 9 s)", "UNSUPPORTED", 2, 13, "steps at the period of EVERY", "EVERY"),
    (f"{S} i = COMPUTE x;", f"{OF} y", "DUPLICATE_NAME", 2, 1, "declared twice", ""),
    ("", 's = STREAM FROM mqqt(topic="a"); i = COMPUTE x', "PROVIDER", 2, 17, "no provider mqqt",
     "did you mean mqtt?"),
    ("", 's = STREAM FROM kafka(topic="a"); i = COMPUTE x', "PROVIDER", 2, 17, "not there yet", ""),
    (S, 'i = COMPUTE x TO file(path="a")', "PROVIDER", 2, 18, "cannot go TO file", "mqtt"),
    ("", 's = STREAM FROM file(path="a", pth="b"); i = COMPUTE x', "PARAMETER", 2, 32,
     "file has no parameter pth", "did you mean path?"),
    ("", "s = STREAM FROM file(); i = COMPUTE x", "PARAMETER", 2, 17, "file needs path", ""),
    ("", 's = STREAM FROM file(path="a", format=jsno); i = COMPUTE x', "PARAMETER", 2, 32,
     "there is no format jsno", "did you mean json?"),
    ("", 's = STREAM FROM file(path="a", lateness="soon"); i = COMPUTE x', "PARAMETER", 2, 32,
     'lateness "soon" is not a duration', 'lateness="2 s"'),
    ("", 's = STREAM FROM mqtt(topic="a", ahead="1"); i = COMPUTE x', "PARAMETER", 2, 33,
     'ahead "1" is not a duration', 'ahead="2 s"'),
    ("", 's = STREAM FROM mqtt(topic="a", idle="soon"); i = COMPUTE x', "PARAMETER", 2, 33,
     'idle "soon" is not a duration', 'idle="2 s"'),
    ("", 's = STREAM FROM mqtt(topic="a", idle="10 ms"); i = COMPUTE x', "PARAMETER", 2, 33,
     'idle "10 ms" is too short', 'idle="never"'),
    ("", 's = STREAM FROM file(path="a", schema="x dubble"); i = COMPUTE x', "PARAMETER", 2, 32,
     "is not a name and a type", "double"),
    (S, 'i = COMPUTE x TO mqtt(host="a")', "PARAMETER", 2, 18, 'TO mqtt needs topic="…"', ""),
    (S, 'i = COMPUTE x TO mqtt(topic="cmd/#")', "PARAMETER", 2, 23, "cannot go to 'cmd/#'",
     "wildcards"),
    (S, 'i = COMPUTE x TO mqtt(topic="fogline/nodes/n/do")', "PARAMETER", 2, 23,
     "cannot go to 'fogline/nodes/n/do'", "belong to Fogline itself"),
    (S, 'i = COMPUTE x TO mqtt(topic="$SYS/cmd")', "PARAMETER", 2, 23, "cannot go to '$SYS/cmd'",
     "belong to the broker"),
    (S, 'i = COMPUTE x BY room TO mqtt(topic="cmd/{rom}")', "PARAMETER", 2, 31,
     "{rom} is not a key of the insight", "did you mean room?"),
    (S, 'i = COMPUTE x TO mqtt(topic="c", broker="ftp://h")', "PARAMETER", 2, 34, "mqtt://host",
     "mqtt://127.0.0.1:1883"),
    ("", 's = STREAM FROM mqtt(topic="a", broker="ftp://h"); i = COMPUTE x', "PARAMETER", 2, 33,
     "the broker's address must be mqtt://host", "mqtt://127.0.0.1:1883"),
    ("", 's = STREAM FROM mqtt(topic="e/#/x"); i = COMPUTE x', "PARAMETER", 2, 22,
     "bad filter 'e/#/x'", "# stands alone and last"),
    ("", 's = STREAM FROM mqtt(topic="a", format=csv); i = COMPUTE x', "PARAMETER", 2, 33,
     "do not say what their columns are", 'header="time,device,x"'),
    (TWO, f"{AVG} {E}", "AMBIGUOUS_METRIC", 2, 17, "x could come from a, b", "x FROM (a)"),
    (S, f"{OF} CORRELATION(x, y WHEN > 3, 1 s) {E}", "CONDITION", 2, 35,
     "does not say which metric is meant", "WHEN metric > 1"),
    (TYPED, f"{OF} AVG(x WHEN > 1 AND NOT == open, 1 s) {E}", "TYPE", 2, 36,
     "x is a number in s, a string is needed", "1 and 0"),
    (S, f"{OF} AVG(x + y WHEN == open, 1 s) {E}", "TYPE", 2, 28, "a number cannot be compared",
     "open FROM"),
    (TYPED, f"{OF} COUNT(city WHEN > 3, 1 s) {E}", "TYPE", 2, 29, "city is a string in s", ""),
    (S, f"{OF} COUNT(s WHEN > 3, 1 s) {E}", "UNKNOWN_METRIC", 2, 26, "whole records",
     "field FROM (s)"),
    (S, f"{OF} COUNT(SUM(x) BY k WHEN == foo) {E}", "TYPE", 2, 36, "a number cannot be compared",
     "foo FROM"),
    (S, f'{AVG} WHEN city == "athens" {E}', "CONDITION", 2, 30, "city is not a key", "BY city"),
    (S, f"{OF} 1 + 2", "CONSTANT", 2, 13, "i reads no stream", ""),
    (S, f"{OF} AVG(3, 1 s) {E}", "CONSTANT", 2, 13, "AVG reads no metric", ""),
    (S, 'FUNCTION f(a) = "os:system"; i = COMPUTE f(x)', "FUNCTION", 2, 1, "there is no os.py", ""),
    (S, 'FUNCTION f(a) = "../x:y"; i = COMPUTE f(x)', "FUNCTION", 2, 1, "module:callable", ""),
    (S, "", "EMPTY", 1, 1, "computes no insight", "name = COMPUTE"),
    (S, f"{OF} AVG(x, 1 s", "SYNTAX", 2, 23, "expected ')'", "bracket opened at line 2, column 16"),
    (S, f"{AVG} {E} WITH SAMPLE 2", "BAD_VALUE", 2, 40, "SAMPLE must be above 0", ""),
    (S, f"{OF} AVG(x, 0 s) {E}", "BAD_WINDOW", 2, 20, "longer than nothing", ""),
    (S, f"{AVG} {E} EVERY 2 s", "CLAUSE_TWICE", 2, 35, "EVERY stands twice", "keep one"),
    (S, f"{AVG} {E} WITH SALIENCE 1 AND SALIENCE 2", "OPTION_TWICE", 2, 55, "given twice", "keep"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "code", "line", "column", "message", "hint"),
    BROKEN,
    ids=[f"{n}-{row[2]}" for n, row in enumerate(BROKEN)],
)
def test_a_broken_query_is_explained(
    fogline: Callable[..., Any],
    query: Callable[[str], Path],
    first: str,
    second: str,
    code: str,
    line: int,
    column: int,
    message: str,
    hint: str,
) -> None:
    path = query(f"{first}\n{second};\n")
    told = fogline("check", path, "--json")
    assert (told.code, told.out) == (1, "")
    problem = json.loads(told.err)[0]
    assert (problem["code"], problem["line"], problem["column"]) == (code, line, column)
    assert message in problem["message"]
    assert hint in problem["hint"]
    told = fogline("check", path)
    head, source, caret = told.err.splitlines()[:3]
    assert head.startswith(f"{line}:{column}: {code}: ")
    assert source == "    " + (second + ";" if line == 2 else first)
    assert caret == " " * (4 + column - 1) + "^"


def test_a_field_is_not_taken_for_a_text(
    fogline: Callable[..., Any], query: Callable[[str], Path]
) -> None:
    text = f"{S} j = COMPUTE AVG(y) {E}; {OF} x WHEN GEOHASH[3](a, b) == y;"
    (problem,) = json.loads(fogline("check", query(text), "--json").err)
    assert problem["message"] == "a string cannot be compared with a number"
    assert problem["hint"] == ""


def test_every_problem_is_told_at_once(
    fogline: Callable[..., Any], query: Callable[[str], Path]
) -> None:
    path = query(f"{S}\na = COMPUTE AVRG(x) {E};\nb = COMPUTE AVG(x);\nc = COMPUTE MAX(x) {E};\n")
    told = fogline("check", path)
    assert told.code == 1
    assert [line[:4] for line in told.err.splitlines() if line[0].isdigit()] == ["2:13", "3:13"]


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_nothing_starts_when_a_statement_is_wrong(
    fogline: Callable[..., Any], query: Callable[[str], Path], command: str
) -> None:
    path = query(f"{S}\ngood = COMPUTE AVG(x) {E};\nbad = COMPUTE AVG(x);\n")
    told = fogline(command, path)
    assert told.code == 1
    assert told.out == ""
    assert told.err.startswith("3:15: WINDOW")


def test_a_good_file(fogline: Callable[..., Any], query: Callable[[str], Path]) -> None:
    path = query(f"{S}\n{AVG} {E}; j = COMPUTE x")
    assert fogline("check", path).out == f"{path}: fine (1 stream, 2 insights)\n"
    told = json.loads(fogline("check", path, "--json").out)
    assert told == {"file": str(path), "ok": True, "streams": 1, "insights": 2, "functions": 0}


def test_a_scheduler_that_is_not_there_is_told(
    fogline: Callable[..., Any], query: Callable[[str], Path]
) -> None:
    path = query(f"{S}\n{AVG} {E} WITH SCHEDULER = RAINBOW_EnergyAware;")
    note = "i: there is no scheduler energy yet, baseline chooses where it runs"
    assert fogline("check", path).out.splitlines()[1:] == [f"note: {note}"]
    assert json.loads(fogline("check", path, "--json").out)["notes"] == [note]
    path = query(f"{S}\n{AVG} {E} WITH SCHEDULER = RAINBOW_Default;")
    assert fogline("check", path).out == f"{path}: fine (1 stream, 1 insight)\n"


def test_files_that_cannot_be_read(fogline: Callable[..., Any], tmp_path: Path) -> None:
    assert fogline("check", tmp_path / "none.ins").code == 2
    assert fogline("check", tmp_path).code == 2
    (tmp_path / "binary.ins").write_bytes(bytes(range(256)))
    told = fogline("check", tmp_path / "binary.ins")
    assert told.code == 1
    assert "is not UTF-8 text (byte 128)" in told.err


def test_wrong_settings_are_usage_errors(
    fogline: Callable[..., Any], query: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOGLINE_PARTITIONS", "many")
    told = fogline("check", query(f"{S}{AVG} {E}"))
    assert told.code == 2
    assert told.err == "fogline: FOGLINE_PARTITIONS='many' is not a whole number\n"


def test_retention_is_a_setting(
    fogline: Callable[..., Any], query: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = query(f"{S}{OF} AVG(x, 2 h) EVERY 1 h")
    assert fogline("check", path).code == 0
    monkeypatch.setenv("FOGLINE_RETENTION_HOURS", "1.5")
    assert "(1.5 h)" in fogline("check", path).err


def test_functions_come_from_the_operators_folder(
    fogline: Callable[..., Any], query: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "weather.py").write_text("def celsius(f): return (f - 32) / 1.8\nzero = 0\n")
    (folder / "broken.py").write_text("raise OSError('not today')\n")

    def check(target: str, arguments: str = "f") -> Any:
        used = ", ".join("x" for _ in arguments.split(","))
        text = f'FUNCTION c({arguments}) = "{target}"; {S} i = COMPUTE c({used});'
        return fogline("check", query(text))

    assert check("weather:celsius").code == 0
    assert "does not take 2 argument(s)" in check("weather:celsius", "a, b").err
    assert "has no function zero" in check("weather:zero").err
    assert "raises at import: not today" in check("broken:f").err
