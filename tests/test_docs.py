"""What the documents say is so: commands, settings, functions, error codes, options, outputs."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from pyspark.sql import SparkSession

from fogline.cli.main import cli
from fogline.common.errors import QueryError
from fogline.common.settings import Settings
from fogline.language.functions import ALIASES, FUNCTIONS
from fogline.plan.analysis.build import plan_text

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fogline"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.ins"))
LANGUAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(text: str, kind: str = r"\w*") -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def commands(text: str, prefix: str = "") -> Iterator[str]:
    """Lines that call fogline, each part of a pipe by itself."""
    joined = re.sub(rf"\\\n{prefix}\s*", " ", text)
    for line in re.findall(rf"^{prefix}\s*(fogline .*)$", joined, re.MULTILINE):
        yield from (" ".join(part.split()) for part in line.partition("  #")[0].split(" | "))


def all_commands() -> list[tuple[str, str]]:
    found = [(name_of(p), c) for p in PAGES for b in blocks(p.read_text()) for c in commands(b)]
    return found + [(name_of(p), c) for p in EXAMPLES for c in commands(p.read_text(), "#")]


@pytest.mark.parametrize(("page", "command"), all_commands())
def test_commands_are_accepted(page: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda self, value, param, ctx: value)
    program, name, *rest = shlex.split(command)
    assert program == "fogline"
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    found.make_context(name, rest)
    for word in rest:
        if word.startswith("examples/"):
            assert (ROOT / word).exists()


def test_make_targets_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
        assert set(named) <= targets, page


def test_every_command_is_named() -> None:
    text = (
        README + (ROOT / "docs" / "quickstart.md").read_text() + (ROOT / "CHANGELOG.md").read_text()
    )
    assert [
        name for name in cli.list_commands(click.Context(cli)) if f"fogline {name}" not in text
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert target.startswith("http") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_queries_on_pages_are_fine(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if " STREAM FROM " in block and " COMPUTE " in block:
            assert plan_text(block).emits


# ── examples ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_are_fine_and_show_their_command(path: Path, fogline: Callable[..., Any]) -> None:
    assert fogline("check", path).code == 0
    shown = list(commands(path.read_text(encoding="utf-8"), "#"))
    assert any(command.startswith(f"fogline run {name_of(path)} --input ") for command in shown)


RUNNABLE = [p for p in EXAMPLES if "--input examples/" in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", RUNNABLE, ids=name_of)
def test_examples_with_data_give_results(
    path: Path,
    spark: SparkSession,
    fogline: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(ROOT)
    first = next(commands(path.read_text(encoding="utf-8"), "#"))
    told = fogline(*shlex.split(first)[1:], "--json", "--batch", "--rejects", tmp_path)
    assert told.code == 0
    insights = set(re.findall(r"^(\w+) = COMPUTE", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert {json.loads(line)["insight"] for line in told.out.splitlines()} == insights


def test_the_first_query_gives_what_the_readme_shows(
    spark: SparkSession,
    fogline: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    query = (ROOT / "examples" / "first.ins").read_text(encoding="utf-8")
    assert query.partition("\n\n")[2] in blocks(README)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    simulate, run = [c for c in commands(README) if "city.senml" in c]
    assert fogline(*shlex.split(simulate)[1:]).code == 0
    told = fogline(*shlex.split(run)[1:], "--rejects", tmp_path / "rejects")
    shown = [json.loads(line) for line in blocks(README, "json")[0].splitlines()]
    found = [json.loads(line) for line in told.out.splitlines()]
    values = [pytest.approx(row.pop("value")) for row in shown]
    assert [row.pop("value") for row in found] == values
    assert found == shown


def test_the_source_is_used_as_its_page_shows(
    spark: SparkSession,
    fogline: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fogline("simulate", "city", "--rate", "10", "--out", "city.senml").code == 0
    page = (ROOT / "docs" / "connector.md").read_text(encoding="utf-8")
    code = blocks(page, "python")[0].replace("city.senml", str(tmp_path / "city.senml"))
    exec(compile(code, "connector.md", "exec"), {})
    assert "avg(temperature)" in capsys.readouterr().out


# ── settings, options, language ──────────────────────────────────────────────────────────────────


def test_every_setting_is_listed() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `FOGLINE_(\w+)` \| (.*?) \|", text, re.MULTILINE))
    assert set(listed) == {name.upper() for name in Settings.__dataclass_fields__}
    defaults = Settings()
    assert listed["ENGINE"] == f"`{defaults.engine}`"
    assert listed["ENGINE_HOST"] == f"`{defaults.engine_host}`"
    assert listed["MEMORY"] == f"`{defaults.memory}`"
    assert listed["PARTITIONS"] == f"`{defaults.partitions}`"
    assert listed["RETENTION_HOURS"] == f"`{defaults.retention_hours:g}`"


def test_every_option_of_the_source_is_listed() -> None:
    source = ROOT / "connector" / "src" / "io" / "fogline" / "source" / "SourceOptions.java"
    named = re.findall(r'(?:options(?:\.\w+)?\(|\(options, )"(\w+)"', source.read_text())
    page = (ROOT / "docs" / "connector.md").read_text(encoding="utf-8")
    assert {"path", "fields", "format", "lateness"} <= set(named)
    assert [name for name in sorted(set(named)) if f"`{name}`" not in page] == []


def function_rows() -> list[tuple[str, str]]:
    """Names and example of every row of the function tables."""
    part = LANGUAGE.partition("## Functions")[2].partition("### Functions of functions")[0]
    rows = re.findall(r"^\| (`.*?) \| .* \| `(.*)` \|$", part, re.MULTILINE)
    return [(names, example) for names, example in rows if names.startswith("`")]


def test_every_function_and_alias_is_listed() -> None:
    listed = set(re.findall(r"`([A-Z_]+)\b", " ".join(names for names, _ in function_rows())))
    assert listed == set(FUNCTIONS) | set(ALIASES)


@pytest.mark.parametrize(("names", "example"), function_rows(), ids=lambda text: text[:20])
def test_examples_of_functions_are_fine(names: str, example: str) -> None:
    function = example.partition("(")[0].partition("[")[0]
    assert f"`{function}" in names or function == "celsius"
    if function != "celsius":
        options = " WITH K=5 AND R=0.5" if "OUTLIER" in function else ""
        period = "" if function in ("SQRT", "ABS", "SQR", "GEOHASH") else " EVERY 10 s"
        stream = 's = STREAM FROM memory(name="s");'
        assert plan_text(f"{stream} i = COMPUTE {example}{period}{options};").emits


def codes_in_source() -> set[str]:
    """First arguments of whatever records a problem."""
    found = set()
    for package in ("plan", "language"):
        for path in (ROOT / "src" / "fogline" / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and node.args and _tells(node.func):
                    first = node.args[0]
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        found.add(first.value)
    return {code for code in found if code.isupper()}


def _tells(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("add", "refuse", "Fault", "Problem")


def test_every_error_code_is_listed() -> None:
    part = LANGUAGE.partition("## Errors")[2]
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", part, re.MULTILINE))
    assert listed == codes_in_source()


def test_what_is_unsupported_is_refused() -> None:
    stream = 's = STREAM FROM memory(name="s"); z = STREAM FROM memory(name="z");'
    for insight in (
        "SUM(x FROM (s), SESSION 5 s) + SUM(x FROM (s), 5 s)",
        "SUM(x FROM (s), SESSION 5 s) EVERY 5 s",
        "MIN(SUM(x FROM (s), 1 s), 1 s)",
        "MIN(SUM(x FROM (s)), 1 s) EVERY 3 EVENTS",
        "FORECAST[2](x FROM (s), 9 s)",
        "CORRELATION(x FROM (s), x FROM (z), 9 s) EVERY 1 s",
        "MAX(x FROM (s)) EVERY 1 s WITH MAX_ERROR 0.1",
        "OUTLIER_DETECTION(x FROM (s)) EVERY 1 s WITH ALGORITHM other AND K=1 AND R=1",
    ):
        with pytest.raises(QueryError):
            plan_text(f"{stream} i = COMPUTE {insight};")


# ── the map of the code ──────────────────────────────────────────────────────────────────────────

MAP = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
PLACES = sorted(set(re.findall(r"`((?:[a-z_]+/)[\w/.]*\.(?:py|java|c))(?::([\w.]+))?`", MAP)))


def defined_names(path: Path) -> set[str]:
    """Functions, classes and their methods, as `Class.method`."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (item for item in node.body if isinstance(item, ast.FunctionDef))
            names.update(f"{node.name}.{item.name}" for item in inner)
    return names


@pytest.mark.parametrize(("file", "name"), PLACES)
def test_the_map_of_the_code_is_right(file: str, name: str) -> None:
    below = ROOT if file.startswith(("connector/", "native/", "tests/", "docs/")) else SOURCE
    assert (below / file).is_file()
    assert not name or name in defined_names(below / file)


def test_the_map_names_every_package() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages - set(re.findall(r"`(\w+)`", MAP)) == set()
