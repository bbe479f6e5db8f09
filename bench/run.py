"""Measures Fogline beside PySpark written by hand, and beside the peers that are installed.

`make bench` and `make bench-peers` call it; docs/benchmarks.md says what is timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))

import command_workloads
import commands_page
import data
import page
import report
from checking import measure_checking
from commands import SMALL, SUBJECTS, measure_commands
from machine import describe
from measure import measure
from processes import installed_peers
from startup import measure_startup
from workloads import BYTEWAX, FLINK, FOGLINE, SPARK, WORKLOADS, Subject, Workload

CHECKING, COMMANDS, STARTUP = "checking", "commands", "startup"
_COMMANDS = {f"command-{w.name}": w for w in command_workloads.WORKLOADS}
_OTHERS = (SPARK, BYTEWAX, FLINK)
_FOLDER = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
NAMES = (*(w.name for w in WORKLOADS), CHECKING, *_COMMANDS, STARTUP)


@click.command()
@click.option(
    "--events",
    default=2_000_000,
    show_default=True,
    help="Events of heavy workloads; light ones take five times as many.",
)
@click.option(
    "--readings", default=2_000_000, show_default=True, help="Readings that whole commands get."
)
@click.option("--repeats", default=3, show_default=True, help="Timed passes; the median counts.")
@click.option(
    "--only",
    type=click.Choice((*NAMES, COMMANDS)),
    multiple=True,
    help="Only this; may be repeated. commands: all of them, and startup.",
)
@click.option(
    "--engine",
    "engines",
    type=click.Choice(_OTHERS),
    multiple=True,
    help="Beside Fogline only this; may be repeated. Default: all that are installed.",
)
@click.option(
    "--out",
    type=_FOLDER,
    help="Folder for logs and for results.json, which is added to.",
)
@click.option("--cache", type=_FOLDER, help="Folder for the generated events.")
@click.option("--write-docs", is_flag=True, help="Write docs/benchmarks.md and its plot anew.")
@click.option("--docs-from", type=_FILE, help="Measure nothing: write the docs from results.json.")
def main(
    events: int,
    readings: int,
    repeats: int,
    only: tuple[str, ...],
    engines: tuple[str, ...],
    out: Path | None,
    cache: Path | None,
    write_docs: bool,
    docs_from: Path | None,
) -> None:
    console = Console(width=None if sys.stdout.isatty() else 140)
    if docs_from:
        page.write(json.loads(docs_from.read_text(encoding="utf-8")))
        return
    folder = out or data.default_cache() / "results"
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        console,
        cache or data.default_cache(),
        folder,
        events,
        readings,
        repeats,
        engines or _OTHERS,
    )
    names = (*only, *_COMMANDS, STARTUP) if COMMANDS in only else only or NAMES
    try:
        results = bench.run(names)
    except KeyboardInterrupt:
        console.print("stopped")
        raise SystemExit(130) from None
    report.show(results, console)
    commands_page.show(results, console)
    console.print(f"results: {bench.target}")
    if write_docs:
        page.write(json.loads(bench.target.read_text(encoding="utf-8")))
    if report.failures(results) or commands_page.failures(results):
        raise SystemExit(1)


class Bench:
    """One run: what is measured with which data, and where it goes."""

    def __init__(
        self,
        console: Console,
        cache: Path,
        out: Path,
        events: int,
        readings: int,
        repeats: int,
        others: tuple[str, ...],
    ) -> None:
        self._console = console
        self._cache = cache
        self._out = out
        self._events = events
        self._repeats = repeats
        self._readings = readings
        installed = {SPARK, *installed_peers()}
        self._missing = set(others) - installed
        self._engines = {FOGLINE, *others} - self._missing
        self._started = time.monotonic()
        self.target = out / "results.json"

    def run(self, names: tuple[str, ...]) -> dict[str, Any]:
        results: dict[str, Any] = {
            "machine": describe(peers=True),
            "load_at_start": round(os.getloadavg()[0], 2),
            "repeats": self._repeats,
            "workloads": [],
            "checking": None,
            "commands": [],
            "startup": None,
        }
        for peer in sorted(self._missing):
            self._tell(f"{peer} is not installed and left out: make bench-peers installs it")
        for workload in WORKLOADS:
            if workload.name in names:
                results["workloads"].append(self._workload(workload))
                self._keep(results)
        if CHECKING in names:
            results["checking"] = measure_checking(self._repeats, self._tell)
            self._keep(results)
        for name, commands in _COMMANDS.items():
            if name in names:
                results["commands"].append(self._commands(commands))
                self._keep(results)
        if STARTUP in names:
            results["startup"] = measure_startup(self._repeats, self._cache, self._tell)
            self._keep(results)
        return results

    def _keep(self, results: dict[str, Any]) -> None:
        """Beside what earlier runs with the same settings have measured of the rest."""
        merged = dict(results)
        if self.target.exists():
            earlier = json.loads(self.target.read_text(encoding="utf-8"))
            if all(earlier.get(key) == results[key] for key in ("machine", "repeats")):
                merged["workloads"] = _merged(earlier["workloads"], results["workloads"])
                alike = [w for w in earlier.get("commands", []) if w["readings"] == self._readings]
                merged["commands"] = _merged(alike, results["commands"])
                for part in ("checking", "startup"):
                    merged[part] = results[part] or earlier.get(part)
        self.target.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")

    def _workload(self, workload: Workload) -> dict[str, Any]:
        self._tell(f"{workload.name}: {workload.title}")
        events = data.make(workload.scale * self._events, workload.per_second, self._cache)
        small = data.make(max(self._events // 10, 1000), workload.per_second, self._cache)
        subjects = tuple(s for s in workload.subjects if self._runs(s))
        return measure(workload, subjects, events, small, self._repeats, self._out, self._tell)

    def _commands(self, workload: command_workloads.CommandWorkload) -> dict[str, Any]:
        self._tell(f"command {workload.name}: {workload.title}")
        subjects = [s for s in SUBJECTS if s.engine in self._engines]
        small = min(SMALL, self._readings // 100)
        return measure_commands(
            workload,
            subjects,
            self._readings,
            small,
            self._repeats,
            self._cache,
            self._out,
            self._tell,
        )

    def _runs(self, subject: Subject) -> bool:
        if subject.needs and not _is_installed(subject.needs):
            self._tell(f"{subject.label}: left out, because {subject.needs} is not installed")
            return False
        return subject.engine in self._engines

    def _tell(self, text: str) -> None:
        seconds = time.monotonic() - self._started
        self._console.print(f"[dim]{seconds:6.0f} s[/dim] {text}", highlight=False)


def _merged(earlier: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order in which they are measured."""
    order = [*(w.name for w in WORKLOADS), *(w.name for w in command_workloads.WORKLOADS)]
    found = {w["name"]: w for w in earlier} | {w["name"]: w for w in now}
    return [found[name] for name in dict.fromkeys(order) if name in found]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
