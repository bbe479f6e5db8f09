"""`fogline fsck`: checks the files of a site and prints what is wrong and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fogline.fsck.check import check_folder, is_running, owner_of


def check_files(folder: Path, as_json: bool) -> int:
    """Prints every problem as it is found; returns the exit code."""
    owner = owner_of(folder)
    running = is_running(folder, owner)
    if running:
        note = "files that are being written may look damaged: stop it for a reliable result"
        click.echo(f"fogline: the {owner.name} in {folder} is running; {note}", err=True)
    found = 0
    for finding in check_folder(folder, owner):
        found += 1
        click.echo(json.dumps(finding.as_json()) if as_json else finding.text())
    summary = {"folder": str(folder), "kind": owner.name, "running": running, "problems": found}
    text = f"{folder}: {owner.name}, {found or 'no'} problem{'s' * (found != 1)} found"
    click.echo(json.dumps(summary) if as_json else text)
    return 1 if found else 0
