"""Chooses the display of a run: JSON lines, a table on a terminal, or lines."""

from __future__ import annotations

import sys

from fogline.cli.run.live_table import LiveTable
from fogline.cli.run.paced import PacedLines
from fogline.cli.run.screen import JsonScreen, Screen
from fogline.plan.lowering.program import Program


def choose_screen(
    program: Program, as_json: bool, total_bytes: int | None, live: bool = False
) -> Screen:
    """A table on a terminal. Elsewhere one line per result; for a live run, which has no end,
    a few lines a second."""
    if as_json:
        return JsonScreen()
    if sys.stdout.isatty():
        shown = [output.name for output in program.outputs if not output.hidden]
        return LiveTable(shown, total_bytes)
    if live:
        return PacedLines()
    return Screen()
