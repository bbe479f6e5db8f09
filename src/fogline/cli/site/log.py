"""What `fogline log` does: show what is damaged in the logs of a site, and acknowledge it."""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import click
from rich.markup import escape

from fogline.cli.output.tables import console, table
from fogline.common.errors import SetupError
from fogline.fabric.membership.local_sites import find_site

_SECONDS = 30.0


def show(site: str | None, as_json: bool) -> None:
    """What nobody has acknowledged yet; for machines one object a finding."""
    found = _ask(site, "GET", "/status")["damage"]["unacknowledged"]
    if as_json:
        for item in found:
            click.echo(json.dumps(item))
        return
    if not found:
        click.echo("no damage that is not acknowledged")
        return
    shown = table("log", "file", "position", "records", "state", "found", "reason")
    for item in found:
        records = "unknown" if item["records"] is None else str(item["records"])
        at = datetime.fromtimestamp(item["found"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        cells = (item["log"], item["file"], str(item["position"]), records, item["state"], at)
        shown.add_row(*(escape(cell) for cell in (*cells, item["reason"])))
    console().print(shown)


def acknowledge(log: str | None, site: str | None, as_json: bool) -> None:
    query = f"?{urlencode({'log': log})}" if log else ""
    answer = _ask(site, "POST", f"/damage/acknowledge{query}")
    click.echo(json.dumps(answer) if as_json else f"acknowledged: {answer['acknowledged']}")


def _ask(site: str | None, method: str, path: str) -> dict[str, Any]:
    found = find_site(site)
    request = urllib.request.Request(found.http + path, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_SECONDS) as answer:
            told: dict[str, Any] = json.load(answer)
            return told
    except (OSError, ValueError) as error:
        raise SetupError(f"the site {found.site} does not answer: {error}") from error
