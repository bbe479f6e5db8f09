"""`fogline query` against a node: what it prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fogline.fabric.api.tokens_file import own_token
from fogline.storage.values import Value, from_values
from tests.fabric.kit_node import START, Alone, Served, served

Ask = Callable[..., Any]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "store") as found:
        values = [Value("speed", f"car{i % 2}", START + i * 1_000_000, float(i)) for i in range(5)]
        found.store.ingest(from_values([*values, Value("latest", "e", START, 7.0)]))
        yield found


@pytest.fixture
def ask(node: Served, fogline: Ask, tmp_path: Path) -> Ask:
    token = tmp_path / "token"
    token.write_text(own_token(node.folder))

    def call(*arguments: str) -> Any:
        return fogline("query", *arguments, "--url", node.address, "--token-file", token)

    return call


def test_tables_have_all_columns_of_all_rows(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"node": "north", "state": "answered", "rows": 7},
        {"state": "away", "why": "gone", "node": "south"},
    ]
    monkeypatch.setattr(Alone, "nodes", lambda self: rows)
    told = ask("nodes")
    lines = [line.split() for line in told.out.splitlines()]
    assert lines[0] == ["node", "state", "rows", "why"]
    assert lines[1:] == [["north", "answered", "7"], ["south", "away", "gone"]]


@pytest.mark.parametrize("option", ["--from", "--to"])
@pytest.mark.parametrize("command", [["range", "speed"], ["aggregate", "speed", "--bucket", "1m"]])
def test_a_time_that_is_none(ask: Ask, command: list[str], option: str) -> None:
    told = ask(*command, option, "tomorrow")
    assert (told.code, told.out) == (2, "")
    assert "invalid time 'tomorrow'" in told.err
    assert option in told.err


def test_a_metric_without_a_command_is_a_range(ask: Ask) -> None:
    between = ("--from", "2026-01-01T00:00:01Z", "--to", "2026-01-01T00:00:03Z")
    told = ask("speed", *between, "--json")
    assert told.code == 0, told.err
    assert [json.loads(line)["value"] for line in told.out.splitlines()] == [1.0, 2.0]
    assert ask("range", "speed", *between, "--json").out == told.out
    assert len(ask("spe%", "--entity", "car0", "--json").out.splitlines()) == 3
    assert len(ask("latest", "--json").out.splitlines()) == 3, "the command, not the metric"


def test_options_that_belong_to_no_command(fogline: Ask) -> None:
    told = fogline("query", "--nonsense")
    assert told.code == 2


@pytest.mark.site
def test_sql_here_everywhere_and_at_each(ask: Ask) -> None:
    text = "SELECT count(*) AS n FROM history WHERE metric = 'speed'"
    assert json.loads(ask("sql", text, "--json").out) == {"n": 5}
    told = ask("sql", text, "--everywhere", "--metric", "speed", "--from", "2026-01-01", "--json")
    assert (told.code, json.loads(told.out)) == (0, {"n": 5})
    assert "south: away" in told.err
    assert json.loads(ask("sql", text, "--each", "--json").out) == {"node": "north", "n": 5}
    told = ask("sql", text, "--from", "-1h")
    assert (told.code, told.out) == (2, "")
    assert "--everywhere" in told.err
