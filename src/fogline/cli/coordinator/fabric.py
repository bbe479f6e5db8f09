"""`fogline fabric`: asks the coordinator which sites have the fabric's secret."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import click
from rich.markup import escape

from fogline.cli.output.tables import colour_state, console, table
from fogline.coordinator.client import find


def show(as_json: bool) -> None:
    """Shows all sites; as JSON one object."""
    response = find().fabric()
    if as_json:
        click.echo(json.dumps(response))
        return
    shown = table("site", "secret", "problem")
    for site in response["sites"]:
        shown.add_row(escape(site["node"]), colour_state(site["state"]), escape(site["problem"]))
    console().print(shown)
    click.echo(_describe_secret(response))


def rotate_secret(accept_old: float, as_json: bool) -> None:
    response = find().rotate_secret(accept_old)
    if as_json:
        click.echo(json.dumps(response))
        return
    states = Counter(site["state"] for site in response["sites"])
    sites = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    click.echo(_describe_secret(response))
    click.echo(f"sites: {sites or 'none yet'}; fogline fabric shows the progress")


def _describe_secret(response: dict[str, Any]) -> str:
    until = response["old_accepted_until"]
    more = f"; previous ones are accepted until {_time(until)}" if until else ""
    return f"the secret was created at {_time(response['made'])}{more}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
