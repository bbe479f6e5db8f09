"""What `fogline query` and `fogline tokens` do: ask a site's store, show the answer."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from fogline.errors import DataError, UsageError
from fogline.fabric import times
from fogline.fabric.http import Door, Patience
from fogline.fabric.local import find_site
from fogline.fabric.tokens_file import add_token as make_token
from fogline.fabric.tokens_file import list_tokens as known_tokens
from fogline.fabric.tokens_file import remove_token as drop_token
from fogline.storage.errors import BadQuery

PAGE = 100_000
_SHOWN = {"answered": "", "copy": "from a copy", "away": "away", "refused": "refused"}
"""Other states are told as they are called."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom to ask, about what, and how to tell it."""

    metrics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    here: bool = False
    stale: float = 0.0
    site: str | None = None
    url: str | None = None
    token_file: Path | None = None
    as_json: bool = False

    def door(self) -> Door:
        patience = Patience(connect=3.0, answer=120.0)
        if self.url is not None:
            return Door(self.url, _token(self.token_file), patience)
        found = find_site(self.site)
        if not found.store:
            raise UsageError(
                f"the store of site {found.site} does not run", "fogline agent keeps it"
            )
        return Door(found.store, _token(self.token_file or found.token_file), patience)

    def parameters(self) -> list[tuple[str, str | int | float]]:
        return [
            *(("metric", metric) for metric in self.metrics),
            *(("entity", entity) for entity in self.entities),
            *(("node", node) for node in self.nodes),
            ("scope", "node" if self.here else "all"),
            *([("stale", self.stale)] if self.stale else []),
        ]


def latest(asked: Asked) -> None:
    told = asked.door().json("GET", "/v1/latest", asked.parameters())
    _tell_values(told["values"], asked)
    _tell_nodes(told)


def values(
    asked: Asked,
    between: tuple[str | None, str | None],
    limit: int,
    newest: bool,
    arrow: Path | None,
) -> None:
    """Page after page, until there are no more or enough."""
    door, wanted = asked.door(), [*asked.parameters(), *_between(between)]
    wanted.append(("order", "desc" if newest else "asc"))
    told: dict[str, Any] = {}
    cursor, left = None, limit
    tables = []
    while left > 0:
        page = [*wanted, ("limit", min(left, PAGE)), *([("cursor", cursor)] if cursor else [])]
        if arrow is not None:
            table, told = door.arrow("GET", "/v1/range", page)
            tables.append(table)
            left -= len(table)
        else:
            told = door.json("GET", "/v1/range", page)
            _tell_values(told["values"], asked)
            left -= len(told["values"])
        cursor = told.get("next")
        if cursor is None:
            break
    if arrow is not None:
        _write(arrow, tables)
    if cursor is not None:
        click.echo(f"there are more than {limit}: --limit", err=True)
    _tell_nodes(told)


def aggregate(
    asked: Asked, between: tuple[str | None, str | None], bucket: str, functions: Iterable[str]
) -> None:
    wanted = [*asked.parameters(), *_between(between), ("bucket", bucket)]
    wanted += [("function", function) for function in functions]
    told = asked.door().json("GET", "/v1/aggregate", wanted)
    _tell_rows(told["rows"], asked.as_json)
    _tell_nodes(told)


def metrics(asked: Asked, prefix: str) -> None:
    door, cursor = asked.door(), None
    wanted: list[tuple[str, str | int | float]] = [("prefix", prefix), ("limit", 1000)]
    told: dict[str, Any] = {}
    while True:
        page = [*wanted, *([("cursor", str(cursor))] if cursor else [])]
        told = door.json("GET", "/v1/metrics", page)
        _tell_rows([_flat(metric) for metric in told["metrics"]], asked.as_json)
        cursor = told.get("next")
        if cursor is None:
            break
    _tell_nodes(told)


def nodes(asked: Asked) -> None:
    told = asked.door().json("GET", "/v1/nodes")
    _tell_rows([_flat(node) for node in told["nodes"]], asked.as_json)


def sql(asked: Asked, statement: str, everywhere: bool) -> None:
    scope = "all" if everywhere else "node"
    told = asked.door().json("POST", "/v1/sql", [("scope", scope)], {"sql": statement})
    _tell_rows(told["rows"], asked.as_json)
    _tell_nodes(told)


def put(asked: Asked, metric: str, value: str, entity: str, time: str | None) -> None:
    one = {"metric": metric, "entity": entity or "site", "value": _number(value)}
    one |= {"time": time} if time else {}
    told = asked.door().json("POST", "/v1/values", (), {"values": [one]})
    click.echo(json.dumps(told) if asked.as_json else "stored")


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────


def add_token(name: str, rights: Iterable[str], site: str | None) -> None:
    click.echo(make_token(find_site(site).folder / "store", name, list(rights)))
    click.echo("keep it: it is not shown again", err=True)


def list_tokens(site: str | None, as_json: bool) -> None:
    found = known_tokens(find_site(site).folder / "store")
    rows = [{"name": name, "rights": " ".join(rights)} for name, rights in found.items()]
    _tell_rows(rows, as_json)


def remove_token(name: str, site: str | None) -> None:
    drop_token(find_site(site).folder / "store", name)
    click.echo(f"{name} is removed")


# ── telling ──────────────────────────────────────────────────────────────────────────────────────


def _tell_values(found: list[Mapping[str, Any]], asked: Asked) -> None:
    if asked.as_json:
        _tell_rows(found, True)
        return
    names = ("time", "node", "metric", "entity", "value", "labels")
    rows = [{name: value.get(name, "") for name in names} for value in found]
    _tell_rows([row | {"labels": _labels(row["labels"])} for row in rows], False)


def _tell_rows(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """A line each; a table has a column for every name that any row has."""
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    if not rows:
        return
    names = dict.fromkeys(name for row in rows for name in row)
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(str(name), overflow="fold")
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in names))
    wide = None if sys.stdout.isatty() else 250
    Console(highlight=False, markup=False, width=wide).print(table)


def _tell_nodes(told: Mapping[str, Any]) -> None:
    """Whoever did not answer for himself is named."""
    for node in told.get("nodes", ()):
        if node["state"] != "answered":
            what = _SHOWN.get(node["state"], node["state"])
            more = [f"at {node['at']}" if "at" in node else "", _until(node), node.get("why", "")]
            rest = " ".join(text for text in more if text)
            click.echo(f"{node['node']}: {what} {rest}".rstrip(), err=True)


def _until(node: Mapping[str, Any]) -> str:
    parts = [f"from {node['since']} on"] if "since" in node else []
    parts += [f"up to {node['until']}"] if "until" in node else []
    some = ["some metrics only"] if node.get("partial") and "since" not in node else []
    return ", ".join([" ".join(parts), *some]).removeprefix(", ")


def _labels(labels: Any) -> str:
    return " ".join(f"{key}={value}" for key, value in (labels or {}).items())


def _flat(told: Mapping[str, Any]) -> dict[str, Any]:
    return {key: json.dumps(v) if isinstance(v, dict | list) else v for key, v in told.items()}


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _write(path: Path, tables: list[pa.Table]) -> None:
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
    try:
        with pa.ipc.new_file(str(path), whole.schema) as writer:
            writer.write_table(whole)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    click.echo(f"{len(whole)} values in {path}", err=True)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def _between(between: tuple[str | None, str | None]) -> list[tuple[str, str | int | float]]:
    """As they are: times before now count from the clock of who is asked. Raises `UsageError`."""
    pairs = zip(("from", "to"), between, strict=True)
    given = [(name, time) for name, time in pairs if time is not None]
    for name, time in given:
        try:
            times.moment(time)
        except BadQuery as error:
            raise UsageError(f"--{name}: {error.message}", error.hint) from error
    return [*given]


def _number(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if abs(number) < float("inf") else text


def _token(file: Path | None) -> str:
    if file is None:
        token = os.environ.get("FOGLINE_TOKEN", "")
        if not token:
            raise UsageError("no token for that store", "give --token-file or set FOGLINE_TOKEN")
        return token
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the token in {file} cannot be read: {type(error).__name__}") from error
