"""Measures Fogline beside PySpark written by hand, and with --peers beside Flink.

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

import data
import page
import report
from checking import measure_checking
from machine import describe
from measure import measure
from processes import PEERS
from workloads import FLINK, WORKLOADS, Subject, Workload

CHECKING = "checking"
_FOLDER = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
NAMES = (*(w.name for w in WORKLOADS), CHECKING)


@click.command()
@click.option("--peers", is_flag=True, help="Run Flink too (scripts/setup-peers.sh installs it).")
@click.option(
    "--events",
    default=2_000_000,
    show_default=True,
    help="Events of heavy workloads; light ones take five times as many.",
)
@click.option("--repeats", default=3, show_default=True, help="Timed passes; the median counts.")
@click.option("--only", type=click.Choice(NAMES), multiple=True, help="Only this; may be repeated.")
@click.option(
    "--out",
    type=_FOLDER,
    help="Folder for logs and for results.json, which is added to.",
)
@click.option("--cache", type=_FOLDER, help="Folder for the generated events.")
@click.option("--write-docs", is_flag=True, help="Write docs/benchmarks.md and its plot anew.")
@click.option("--docs-from", type=_FILE, help="Measure nothing: write the docs from results.json.")
def main(
    peers: bool,
    events: int,
    repeats: int,
    only: tuple[str, ...],
    out: Path | None,
    cache: Path | None,
    write_docs: bool,
    docs_from: Path | None,
) -> None:
    console = Console()
    if docs_from:
        page.write(json.loads(docs_from.read_text(encoding="utf-8")))
        return
    if peers and not PEERS.exists():
        raise click.ClickException("Flink is not installed: run scripts/setup-peers.sh")
    folder = out or data.default_cache() / "results"
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(console, cache or data.default_cache(), folder, events, repeats, peers)
    try:
        results = bench.run(only or NAMES)
    except KeyboardInterrupt:
        console.print("stopped")
        raise SystemExit(130) from None
    report.show(results, console)
    console.print(f"results: {bench.target}")
    if write_docs:
        page.write(json.loads(bench.target.read_text(encoding="utf-8")))
    if report.failures(results):
        raise SystemExit(1)


class Bench:
    """One run: what is measured with which data, and where it goes."""

    def __init__(
        self, console: Console, cache: Path, out: Path, events: int, repeats: int, peers: bool
    ) -> None:
        self._console = console
        self._cache = cache
        self._out = out
        self._events = events
        self._repeats = repeats
        self._peers = peers
        self._started = time.monotonic()
        self.target = out / "results.json"

    def run(self, names: tuple[str, ...]) -> dict[str, Any]:
        results: dict[str, Any] = {
            "machine": describe(self._peers),
            "load_at_start": round(os.getloadavg()[0], 2),
            "repeats": self._repeats,
            "workloads": [],
            "checking": None,
        }
        for workload in WORKLOADS:
            if workload.name in names:
                results["workloads"].append(self._workload(workload))
                self._keep(results)
        if CHECKING in names:
            results["checking"] = measure_checking(self._repeats, self._tell)
            self._keep(results)
        return results

    def _keep(self, results: dict[str, Any]) -> None:
        """Beside what earlier runs with the same settings have measured of the rest."""
        found = {w["name"]: w for w in results["workloads"]}
        merged = results
        if self.target.exists():
            earlier = json.loads(self.target.read_text(encoding="utf-8"))
            if all(earlier[key] == results[key] for key in ("machine", "repeats")):
                found = {w["name"]: w for w in earlier["workloads"]} | found
                merged = results | {"checking": results["checking"] or earlier["checking"]}
        workloads = [found[w.name] for w in WORKLOADS if w.name in found]
        text = json.dumps(merged | {"workloads": workloads}, indent=2)
        self.target.write_text(text + "\n", encoding="utf-8")

    def _workload(self, workload: Workload) -> dict[str, Any]:
        self._tell(f"{workload.name}: {workload.title}")
        events = data.make(workload.scale * self._events, workload.per_second, self._cache)
        small = data.make(max(self._events // 10, 1000), workload.per_second, self._cache)
        subjects = tuple(s for s in workload.subjects if self._runs(s))
        return measure(workload, subjects, events, small, self._repeats, self._out, self._tell)

    def _runs(self, subject: Subject) -> bool:
        if subject.needs and not _is_installed(subject.needs):
            self._tell(f"{subject.label}: left out, because {subject.needs} is not installed")
            return False
        return self._peers or subject.engine != FLINK

    def _tell(self, text: str) -> None:
        seconds = time.monotonic() - self._started
        self._console.print(f"[dim]{seconds:6.0f} s[/dim] {text}", highlight=False)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
