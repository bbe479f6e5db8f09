"""`fogline check`: is this file a query that can run?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from fogline.common.settings import Settings
from fogline.language.ast import QueryFile
from fogline.placement import SCHEDULERS
from fogline.plan.analysis.analyse import SCHEDULERS as SCHEDULER_NAMES
from fogline.plan.analysis.query_file import load_query


def check_file(path: Path, as_json: bool, settings: Settings) -> None:
    loaded = load_query(path, settings)
    counts = {
        "streams": len(loaded.query.streams),
        "insights": len(loaded.query.insights),
        "functions": len(loaded.query.functions),
    }
    notes = _notes(loaded.query)
    if as_json:
        shown_notes = {"notes": notes} if notes else {}
        click.echo(json.dumps({"file": str(path), "ok": True} | counts | shown_notes))
        return
    summary = ", ".join(f"{n} {name[:-1] if n == 1 else name}" for name, n in counts.items() if n)
    click.echo(f"{path}: fine ({summary})")
    for note in notes:
        click.echo(f"note: {note}")


def _notes(query: QueryFile) -> list[str]:
    """What is valid and has no effect yet."""
    schedulers = {insight.name: insight.options.scheduler for insight in query.insights}
    names = {insight: SCHEDULER_NAMES[name.lower()] for insight, name in schedulers.items() if name}
    return [
        f"{insight}: there is no scheduler {name} yet, baseline chooses where it runs"
        for insight, name in names.items()
        if name not in SCHEDULERS
    ]
