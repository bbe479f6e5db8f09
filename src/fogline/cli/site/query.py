"""`fogline query` and `fogline tokens`: query a site's store, show the result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fogline.cli.output.values import flat, print_nodes, print_rows, print_values, write_arrow
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
    response = asked.client().json("GET", "/v1/latest", asked.parameters())
    print_values(response["values"], asked.as_json)
    print_nodes(response)


def values(
    asked: QueryRequest,
    between: tuple[str | None, str | None],
    limit: int,
    newest: bool,
    arrow: Path | None,
) -> None:
    parameters = [*asked.parameters(), *_between(between), _order(newest)]
    _pages(asked, "/v1/range", parameters, limit, ("values", print_values), arrow)


def spaces(asked: QueryRequest) -> None:
    response = asked.client().json("GET", "/v1/spaces", [_scope(asked)])
    found = response["spaces"]
    print_rows(found if asked.as_json else [flat(one) for one in found], asked.as_json)
    print_nodes(response)


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
    parameters = [_scope(asked), *(("key", one) for one in key), *_between(between), _order(newest)]
    path = f"/v1/spaces/{part(name)}/rows"
    _pages(asked, path, parameters, limit, ("rows", print_rows), arrow, MOST_ROWS)


def _pages(
    asked: QueryRequest,
    path: str,
    parameters: Sequence[tuple[str, str | int | float]],
    limit: int,
    shown: tuple[str, Callable[[Sequence[Mapping[str, Any]], bool], None]],
    arrow: Path | None,
    page_rows: int = PAGE,
) -> None:
    """Fetches page after page, until the last one or `limit`."""
    store, (name, print_page) = asked.client(), shown
    response: dict[str, Any] = {}
    cursor, left = None, limit
    tables = []
    while left > 0:
        page = [
            *parameters,
            ("limit", min(left, page_rows)),
            *([("cursor", cursor)] if cursor else []),
        ]
        if arrow is not None:
            table, response = store.arrow("GET", path, page)
            tables.append(table)
            left -= len(table)
        else:
            response = store.json("GET", path, page)
            print_page(response[name], asked.as_json)
            left -= len(response[name])
        cursor = response.get("next")
        if cursor is None:
            break
    if arrow is not None:
        write_arrow(arrow, tables, name)
    if cursor is not None:
        click.echo(f"there are more than {limit}: give a larger --limit", err=True)
    print_nodes(response)


def aggregate(
    asked: QueryRequest,
    between: tuple[str | None, str | None],
    bucket: str,
    functions: Iterable[str],
) -> None:
    parameters = [*asked.parameters(), *_between(between), ("bucket", bucket)]
    parameters += [("function", function) for function in functions]
    response = asked.client().json("GET", "/v1/aggregate", parameters)
    print_rows(response["rows"], asked.as_json)
    print_nodes(response)


def metrics(asked: QueryRequest, prefix: str) -> None:
    store, cursor = asked.client(), None
    parameters: list[tuple[str, str | int | float]] = [("prefix", prefix), ("limit", 1000)]
    response: dict[str, Any] = {}
    while True:
        page = [*parameters, *([("cursor", str(cursor))] if cursor else [])]
        response = store.json("GET", "/v1/metrics", page)
        print_rows([flat(metric) for metric in response["metrics"]], asked.as_json)
        cursor = response.get("next")
        if cursor is None:
            break
    print_nodes(response)


def nodes(asked: QueryRequest) -> None:
    response = asked.client().json("GET", "/v1/nodes")
    print_rows([flat(node) for node in response["nodes"]], asked.as_json)


def sql(
    asked: QueryRequest,
    statement: str,
    scope: str,
    between: tuple[str | None, str | None] = (None, None),
) -> None:
    named = [*asked.parameters(), *_between(between)]
    parameters = [pair for pair in named if pair[0] != "scope"]
    if parameters and scope != "all":
        raise UsageError(
            "--metric, --from and --to need --everywhere", "use WHERE in the statement"
        )
    response = asked.client().json(
        "POST", "/v1/sql", [*parameters, ("scope", scope)], {"sql": statement}
    )
    print_rows(response["rows"], asked.as_json)
    print_nodes(response)


def put(asked: QueryRequest, metric: str, value: str, entity: str, time: str | None) -> None:
    one = {"metric": metric, "entity": entity or "site", "value": _number(value)}
    one |= {"time": time} if time else {}
    response = asked.client().json("POST", "/v1/values", (), {"values": [one]})
    click.echo(json.dumps(response) if asked.as_json else "stored")


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────


def add_token(name: str, rights: Iterable[str], site: str | None) -> None:
    click.echo(make_token(find_site(site).folder / "store", name, list(rights)))
    click.echo("store it safely: it is not shown again", err=True)


def list_tokens(site: str | None, as_json: bool) -> None:
    found = known_tokens(find_site(site).folder / "store")
    rows = [{"name": name, "rights": " ".join(rights)} for name, rights in found.items()]
    print_rows(rows, as_json)


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
