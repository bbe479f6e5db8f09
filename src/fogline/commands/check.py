"""`fogline check`: is this file a query that can run?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from fogline.plan.query_file import load_query
from fogline.settings import Settings


def check_file(path: Path, as_json: bool, settings: Settings) -> None:
    loaded = load_query(path, settings)
    counts = {
        "streams": len(loaded.query.streams),
        "insights": len(loaded.query.insights),
        "functions": len(loaded.query.functions),
    }
    if as_json:
        click.echo(json.dumps({"file": str(path), "ok": True} | counts))
        return
    told = ", ".join(f"{n} {name[:-1] if n == 1 else name}" for name, n in counts.items() if n)
    click.echo(f"{path}: fine ({told})")
