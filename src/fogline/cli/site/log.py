"""`fogline log`: shows and acknowledges damage in the logs of a site."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click
from rich.markup import escape

from fogline.cli.output.tables import console, table
from fogline.common.errors import START_SITE
from fogline.common.http.client import HttpClient, Parameters, Patience, RemoteService
from fogline.fabric.membership.local_sites import find_site

_PATIENCE = Patience(connect=5.0, answer=30.0)


def show(site: str | None, as_json: bool) -> None:
    """Shows damage that is not acknowledged; as JSON one object a finding."""
    found = _ask(site, "GET", "/status")["damage"]["unacknowledged"]
    if as_json:
        for item in found:
            click.echo(json.dumps(item))
        return
    if not found:
        click.echo("no unacknowledged damage")
        return
    shown = table("log", "file", "position", "records", "state", "found", "reason")
    for item in found:
        records = "unknown" if item["records"] is None else str(item["records"])
        at = datetime.fromtimestamp(item["found"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        cells = (item["log"], item["file"], str(item["position"]), records, item["state"], at)
        shown.add_row(*(escape(cell) for cell in (*cells, item["reason"])))
    console().print(shown)


def acknowledge(log: str | None, site: str | None, as_json: bool) -> None:
    answer = _ask(site, "POST", "/damage/acknowledge", [("log", log)] if log else [])
    click.echo(json.dumps(answer) if as_json else f"acknowledged: {answer['acknowledged']}")


def _ask(site: str | None, method: str, path: str, parameters: Parameters = ()) -> dict[str, Any]:
    found = find_site(site)
    service = RemoteService(f"the site {found.site}", START_SITE)
    return HttpClient(found.http, service, patience=_PATIENCE).json(method, path, parameters)
