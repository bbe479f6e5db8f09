"""How the commands that ask a coordinator show lists: tables for people, lines for machines."""

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


def listed(
    found: list[dict[str, Any]], as_json: bool, show: Callable[[list[dict[str, Any]]], None]
) -> None:
    """For machines one JSON object a line."""
    if as_json:
        for item in found:
            click.echo(json.dumps(item))
    else:
        show(found)


def console() -> Console:
    """In a pipe lines are as long as they are."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def table(*columns: str) -> Table:
    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def coloured(state: str) -> str:
    colour = _COLOURS.get(state, "yellow")
    return f"[{colour}]{state}[/]"
