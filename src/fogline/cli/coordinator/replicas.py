"""`fogline replicas`: asks the coordinator about copies of stored values, shows them."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.markup import escape

from fogline.cli.output.tables import colour_state, console, table
from fogline.coordinator.client import find

_UNITS = ("B", "kB", "MB", "GB", "TB")


def show(as_json: bool) -> None:
    """Shows all sites with their scores, then all copies; as JSON one object with both."""
    response = find().replicas()
    if as_json:
        click.echo(json.dumps(response))
        return
    _show_nodes(response["nodes"])
    click.echo()
    _show_copies(response["copies"])
    for node in response["nodes"]:
        if node["uncopied"]:
            click.echo(f"{node['node']}: {node['uncopied']}", err=True)
    for job, streams in response.get("shares", {}).items():
        for stream, nodes in streams.items():
            for node, fraction in nodes.items():
                click.echo(f"{job}: {fraction:.0%} of {stream} is sent from {node}")
    if response["problem"]:
        click.echo(f"problem: {response['problem']}", err=True)


def add(origin: str, holder: str, metrics: tuple[str, ...], as_json: bool) -> None:
    response = find().put_replica(origin, holder, list(metrics) or None)
    text = f"{holder} will keep a copy of {origin}: {_metrics(response['metrics'])}"
    click.echo(json.dumps(response) if as_json else text)


def remove(origin: str, holder: str, as_json: bool) -> None:
    response = find().delete_replica(origin, holder)
    click.echo(json.dumps(response) if as_json else f"{holder} no longer keeps a copy of {origin}")


def _show_nodes(nodes: list[dict[str, Any]]) -> None:
    shown = table("site", "state", "values", "copies", "failures", "restarts", "U", "S", "problem")
    for node in nodes:
        shown.add_row(
            escape(node["node"]),
            colour_state("online" if node["online"] else "away"),
            _size(node["bytes"]),
            _size(node["held_bytes"]),
            f"{node['failures']:,}",
            f"{node['restarts']:,}",
            f"{node['instability']:.3g}",
            f"{node['stability']:.3g}",
            escape(node["problem"]),
        )
    console().print(shown)


def _show_copies(copies: list[dict[str, Any]]) -> None:
    shown = table("of", "at", "state", "metrics", "size", "behind", "why")
    for copy in copies:
        shown.add_row(
            escape(copy["origin"]),
            escape(copy["holder"]),
            colour_state(copy["state"]),
            escape(_metrics(copy["metrics"])),
            _size(copy["bytes"]),
            _seconds(copy["behind_seconds"]),
            escape(", ".join(_why(reason) for reason in copy["reasons"])),
        )
    console().print(shown)


def _metrics(names: list[str] | None) -> str:
    if names is None:
        return "all"
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _why(reason: dict[str, Any]) -> str:
    return f"{reason['reason']} {reason['job']}" if "job" in reason else str(reason["reason"])


def _size(size: int | None) -> str:
    if size is None:
        return ""
    amount, unit = float(size), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.3g} {_UNITS[unit]}" if amount < 1000 else f"{amount:,.0f} {_UNITS[unit]}"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:,.0f} min"
