"""Responses of a store as tables, lines of JSON or Arrow files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from fogline.common.errors import DataError

_SHOWN = {"answered": "", "copy": "from a copy", "away": "away", "refused": "refused"}
"""Other states are shown by their names."""


def print_values(found: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_rows(found, True)
        return
    names = ("time", "node", "metric", "entity", "value", "labels")
    rows = [{name: value.get(name, "") for name in names} for value in found]
    print_rows([row | {"labels": _labels(row["labels"])} for row in rows], False)


def print_rows(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """One line per row; a table has a column for every name that any row has."""
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


def print_nodes(response: Mapping[str, Any]) -> None:
    """Lists nodes that did not answer themselves."""
    for node in response.get("nodes", ()):
        if node["state"] != "answered":
            what = _SHOWN.get(node["state"], node["state"])
            more = [f"at {node['at']}" if "at" in node else "", _until(node), node.get("why", "")]
            rest = " ".join(text for text in more if text)
            click.echo(f"{node['node']}: {what} {rest}".rstrip(), err=True)
        elif node.get("partial"):
            click.echo(f"{node['node']}: {node.get('why', '')}", err=True)


def _until(node: Mapping[str, Any]) -> str:
    parts = [f"from {node['since']} on"] if "since" in node else []
    parts += [f"up to {node['until']}"] if "until" in node else []
    some = ["some metrics only"] if node.get("partial") and "since" not in node else []
    return ", ".join([" ".join(parts), *some]).removeprefix(", ")


def _labels(labels: Any) -> str:
    return " ".join(f"{key}={value}" for key, value in (labels or {}).items())


def flat(response: Mapping[str, Any]) -> dict[str, Any]:
    return {key: json.dumps(v) if isinstance(v, dict | list) else v for key, v in response.items()}


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def write_arrow(path: Path, tables: list[pa.Table], what: str) -> None:
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
    try:
        with pa.ipc.new_file(str(path), whole.schema) as writer:
            writer.write_table(whole)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    click.echo(f"{len(whole)} {what} in {path}", err=True)
