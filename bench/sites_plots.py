"""The plots of docs/benchmarks-sites.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

TEAL, ORANGE, RED, BLUE = "#0b7a75", "#d9822b", "#b3382c", "#3d6fb4"
Rows = Sequence[Mapping[str, Any]]


def chain(found: Mapping[str, Any], path: Path) -> None:
    """Deploy, modify of the longest chain, delete: seconds by jobs, with lowest and highest."""
    figure, panel = plt.subplots(figsize=(7, 3.6), layout="constrained")
    longest = found["deploy"][-1]["jobs"]
    _line(panel, found["deploy"], "jobs", "deploy", TEAL)
    for kind, colour in (("parameter", BLUE), ("sink", ORANGE)):
        rows = [row for row in found[kind] if row["jobs"] == longest]
        _line(panel, rows, "changed", f"another {kind}, of {longest}", colour)
    _line(panel, found["delete"], "jobs", "delete", RED)
    panel.plot([0, longest], [0, longest], ":", color="#888888", label="1 s a job")
    _finish(figure, panel, "jobs", path)


def gateways(found: Mapping[str, Any], path: Path) -> None:
    figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for what, colour in (("install", TEAL), ("update", BLUE), ("uninstall", RED)):
        _line(panel, found["here"][what], "gateways", f"{what}, here", colour)
        _line(panel, found["away"][what], "gateways", f"{what}, away", colour, "o:")
    _finish(figure, panel, "gateways", path)


def _line(panel: Any, rows: Rows, across: str, label: str, colour: str, style: str = "o-") -> None:
    xs = [row[across] for row in rows]
    panel.plot(xs, [row["median"] for row in rows], style, label=label, color=colour, markersize=4)
    low, high = [row["low"] for row in rows], [row["high"] for row in rows]
    panel.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)


def _finish(figure: Any, panel: Any, across: str, path: Path) -> None:
    panel.set_xlabel(across)
    panel.set_ylabel("seconds")
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)
    panel.legend()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
