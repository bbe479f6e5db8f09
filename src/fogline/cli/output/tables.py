"""Lists of a coordinator as tables or as lines of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.table import Table

_WIDE = 250
_COLOURS = {
    "running": "green",
    "online": "green",
    "held": "green",
    "current": "green",
    "failed": "red",
    "gone": "red",
    "refused": "red",
}


def print_items(
    found: list[dict[str, Any]], as_json: bool, show: Callable[[list[dict[str, Any]]], None]
) -> None:
    """Shows a table, or one JSON object a line."""
    if as_json:
        for item in found:
            click.echo(json.dumps(item))
    else:
        show(found)


def console() -> Console:
    """In a pipe lines are not wrapped."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def table(*columns: str) -> Table:
    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def colour_state(state: str) -> str:
    colour = _COLOURS.get(state, "yellow")
    return f"[{colour}]{state}[/]"
