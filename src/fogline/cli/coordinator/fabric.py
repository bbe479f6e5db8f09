"""`fogline fabric`: asks the coordinator which sites have the fabric's secret."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import click
from rich.markup import escape

from fogline.cli.output.tables import coloured, console, table
from fogline.coordinator.client import find


def show(as_json: bool) -> None:
    """Shows all sites; as JSON one object."""
    told = find().fabric()
    if as_json:
        click.echo(json.dumps(told))
        return
    shown = table("site", "secret", "problem")
    for site in told["sites"]:
        shown.add_row(escape(site["node"]), coloured(site["state"]), escape(site["problem"]))
    console().print(shown)
    click.echo(_made(told))


def rotate_secret(accept_old: float, as_json: bool) -> None:
    told = find().rotate_secret(accept_old)
    if as_json:
        click.echo(json.dumps(told))
        return
    states = Counter(site["state"] for site in told["sites"])
    sites = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    click.echo(_made(told))
    click.echo(f"sites: {sites or 'none yet'}; fogline fabric shows the progress")


def _made(told: dict[str, Any]) -> str:
    until = told["old_accepted_until"]
    more = f"; previous ones are accepted until {_time(until)}" if until else ""
    return f"the secret was created at {_time(told['made'])}{more}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
