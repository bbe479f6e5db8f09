"""`fogline query` and `fogline tokens`: query a site's store, show the result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fogline.cli.output.values import flat, tell_nodes, tell_rows, tell_values, write_arrow
from fogline.common.errors import DataError, SetupError, UsageError
from fogline.common.http.client import Patience, part
from fogline.fabric.api.tokens_file import add_token as make_token
from fogline.fabric.api.tokens_file import list_tokens as known_tokens
from fogline.fabric.api.tokens_file import remove_token as drop_token
from fogline.fabric.http.store_client import StoreClient
from fogline.fabric.membership.local_sites import find_site
from fogline.fabric.query import times
from fogline.fabric.query.spaces import MOST_ROWS
from fogline.storage.errors import BadQuery

PAGE = 100_000


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """The site to ask, what to query, and how to show it."""

    metrics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    here: bool = False
    stale: float = 0.0
    site: str | None = None
    url: str | None = None
    token_file: Path | None = None
    as_json: bool = False

    def client(self) -> StoreClient:
        patience = Patience(connect=3.0, answer=120.0)
        if self.url is not None:
            return StoreClient(self.url, _token(self.token_file), patience)
        found = find_site(self.site, ", or give --url")
        if not found.store:
            hint = (
                "fogline agent --config site.yaml starts it, unless store: enabled: is false;"
                f" see {found.http}/status"
            )
            raise SetupError(f"the store of site {found.site} does not run", hint)
        return StoreClient(found.store, _token(self.token_file or found.token_file), patience)

    def parameters(self) -> list[tuple[str, str | int | float]]:
        return [
            *(("metric", metric) for metric in self.metrics),
            *(("entity", entity) for entity in self.entities),
            *(("node", node) for node in self.nodes),
            _scope(self),
            *([("stale", self.stale)] if self.stale else []),
        ]


def latest(asked: QueryRequest) -> None:
    told = asked.client().json("GET", "/v1/latest", asked.parameters())
    tell_values(told["values"], asked.as_json)
    tell_nodes(told)


def values(
    asked: QueryRequest,
    between: tuple[str | None, str | None],
    limit: int,
    newest: bool,
    arrow: Path | None,
) -> None:
    wanted = [*asked.parameters(), *_between(between), _order(newest)]
    _pages(asked, "/v1/range", wanted, limit, ("values", tell_values), arrow)


def spaces(asked: QueryRequest) -> None:
    told = asked.client().json("GET", "/v1/spaces", [_scope(asked)])
    found = told["spaces"]
    tell_rows(found if asked.as_json else [flat(one) for one in found], asked.as_json)
    tell_nodes(told)


def space(
    asked: QueryRequest,
    name: str,
    key: Sequence[str],
    between: tuple[str | None, str | None],
    limit: int,
    newest: bool,
    arrow: Path | None,
) -> None:
    """Shows the rows of a space."""
    wanted = [_scope(asked), *(("key", one) for one in key), *_between(between), _order(newest)]
    path = f"/v1/spaces/{part(name)}/rows"
    _pages(asked, path, wanted, limit, ("rows", tell_rows), arrow, MOST_ROWS)


def _pages(
    asked: QueryRequest,
    path: str,
    wanted: Sequence[tuple[str, str | int | float]],
    limit: int,
    shown: tuple[str, Callable[[Sequence[Mapping[str, Any]], bool], None]],
    arrow: Path | None,
    page_rows: int = PAGE,
) -> None:
    """Fetches page after page, until the last one or `limit`."""
    store, (name, tell) = asked.client(), shown
    told: dict[str, Any] = {}
    cursor, left = None, limit
    tables = []
    while left > 0:
        page = [*wanted, ("limit", min(left, page_rows)), *([("cursor", cursor)] if cursor else [])]
        if arrow is not None:
            table, told = store.arrow("GET", path, page)
            tables.append(table)
            left -= len(table)
        else:
            told = store.json("GET", path, page)
            tell(told[name], asked.as_json)
            left -= len(told[name])
        cursor = told.get("next")
        if cursor is None:
            break
    if arrow is not None:
        write_arrow(arrow, tables, name)
    if cursor is not None:
        click.echo(f"there are more than {limit}: give a larger --limit", err=True)
    tell_nodes(told)


def aggregate(
    asked: QueryRequest,
    between: tuple[str | None, str | None],
    bucket: str,
    functions: Iterable[str],
) -> None:
    wanted = [*asked.parameters(), *_between(between), ("bucket", bucket)]
    wanted += [("function", function) for function in functions]
    told = asked.client().json("GET", "/v1/aggregate", wanted)
    tell_rows(told["rows"], asked.as_json)
    tell_nodes(told)


def metrics(asked: QueryRequest, prefix: str) -> None:
    store, cursor = asked.client(), None
    wanted: list[tuple[str, str | int | float]] = [("prefix", prefix), ("limit", 1000)]
    told: dict[str, Any] = {}
    while True:
        page = [*wanted, *([("cursor", str(cursor))] if cursor else [])]
        told = store.json("GET", "/v1/metrics", page)
        tell_rows([flat(metric) for metric in told["metrics"]], asked.as_json)
        cursor = told.get("next")
        if cursor is None:
            break
    tell_nodes(told)


def nodes(asked: QueryRequest) -> None:
    told = asked.client().json("GET", "/v1/nodes")
    tell_rows([flat(node) for node in told["nodes"]], asked.as_json)


def sql(
    asked: QueryRequest,
    statement: str,
    scope: str,
    between: tuple[str | None, str | None] = (None, None),
) -> None:
    named = [*asked.parameters(), *_between(between)]
    wanted = [pair for pair in named if pair[0] != "scope"]
    if wanted and scope != "all":
        raise UsageError(
            "--metric, --from and --to need --everywhere", "use WHERE in the statement"
        )
    told = asked.client().json("POST", "/v1/sql", [*wanted, ("scope", scope)], {"sql": statement})
    tell_rows(told["rows"], asked.as_json)
    tell_nodes(told)


def put(asked: QueryRequest, metric: str, value: str, entity: str, time: str | None) -> None:
    one = {"metric": metric, "entity": entity or "site", "value": _number(value)}
    one |= {"time": time} if time else {}
    told = asked.client().json("POST", "/v1/values", (), {"values": [one]})
    click.echo(json.dumps(told) if asked.as_json else "stored")


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────


def add_token(name: str, rights: Iterable[str], site: str | None) -> None:
    click.echo(make_token(find_site(site).folder / "store", name, list(rights)))
    click.echo("store it safely: it is not shown again", err=True)


def list_tokens(site: str | None, as_json: bool) -> None:
    found = known_tokens(find_site(site).folder / "store")
    rows = [{"name": name, "rights": " ".join(rights)} for name, rights in found.items()]
    tell_rows(rows, as_json)


def remove_token(name: str, site: str | None) -> None:
    drop_token(find_site(site).folder / "store", name)
    click.echo(f"{name} is removed")


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def _scope(asked: QueryRequest) -> tuple[str, str | int | float]:
    return "scope", "node" if asked.here else "all"


def _order(newest: bool) -> tuple[str, str | int | float]:
    return "order", "desc" if newest else "asc"


def _between(between: tuple[str | None, str | None]) -> list[tuple[str, str | int | float]]:
    """Unchanged: relative times refer to the clock of the site asked. Raises `UsageError`."""
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
