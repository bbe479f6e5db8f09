"""docs/benchmarks.md and its plot, made from the results of a run and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import commands_page
import matplotlib.pyplot as plt
import report
from workloads import RECORDS

DOCS = Path(__file__).parents[1] / "docs"
_COLOURS = {"fogline": "#0b7a75", "pyspark": "#d9822b", "flink": "#8a6fb0"}
_TEXT = """\
# Benchmarks

<!-- Made by `bench/run.py --write-docs`; manual edits are overwritten. -->

Fogline compared with the same work written by hand in PySpark{beside}.
Numbers of one machine say little about another; the ratios are more stable, and the goals refer to
them.

![Events per second by workload and engine](benchmarks.png)

{tables}
{checking}
{failures}
{commands}
## How it is measured

- **Data**: {fewest:,} json events of about {size} bytes ({events:,} for light work, so that a pass
  takes seconds) from 788 sensors, in order of event time, 10,000 a second (1,000 for the 10-minute
  window), the same bytes for every engine, generated once with a fixed seed. They are in
  part files of about 60 MB, as Spark's own file source cannot split a file.
- **What is timed**: one pass over all events, from making the query to its last result, into a
  sink that keeps nothing. Starting the session is not timed. For Flink it is Flink's own measure of
  the job, which excludes its planning and the start of its cluster.
- **Order**: every engine runs in a process of its own and is warm: five passes over a small part
  of the events, then 25 s of passes over all of them (at least one), because Java keeps compiling
  what it runs. Then all take turns, so that noise hits all alike, and each begins when the others
  have cleaned up after their passes; the median of {repeats} passes counts. Where a pass takes more
  than half a minute, one counts. What a table compares was measured together; one table and another
  may come from two runs.
- **Same results**: number and sum of the results (within 1e-6) must be the same for all engines, or
  the measurement counts as failed.
- **Fogline** runs as `fogline run` does, in micro-batches with its default trigger; the row "with
  JSON records" also makes the text of every result.
- **PySpark** parses only the fields it needs, with as many shuffle partitions as cores, RocksDB
  state with changelog checkpoints, and checkpoints in memory as Fogline has them. Where there are
  two ways to write it, both are measured and the better counts. Its batches are limited as
  Fogline's are, to 2 GiB.
{flink}- **Memory** is the peak resident memory of the process and its children, for information.

## Machine

| | |
|---|---|
{machine}

## Run it

```
make bench                                  # Fogline, PySpark and the peers that are installed
make bench-peers                            # installs Bytewax and Flink first: a large download
make bench ARGS="--events 200000 --only sliding"
make bench ARGS="--only commands"           # the whole commands
make bench ARGS="--only commands --readings 20000 --repeats 1"
make bench-peers ARGS="--write-docs"        # writes this page again
```
"""
_WARM = "## How it is measured\n"
_FLINK = """\
- **Flink** runs SQL with one task per core (windows) and a keyed process function in Python
  (Kalman, over a tenth of the events: all of them would take it many minutes), without checkpoints,
  which is its default. Its watermark waits an hour of event time, because its tasks read several
  files at once.
"""


def write(results: dict[str, Any], folder: Path = DOCS) -> None:
    """What was not measured stays as the page has it: warm engines, or whole commands."""
    path = folder / "benchmarks.md"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    commands = commands_page.section(results) or commands_page.kept_section(before)
    if results["workloads"] or not before:
        path.write_text(_page(results, commands or ""), encoding="utf-8")
        _plot(results, folder / "benchmarks.png")
    elif commands:
        path.write_text(_with_commands(before, commands), encoding="utf-8")


def _with_commands(page: str, commands: str) -> str:
    kept = commands_page.kept_section(page)
    if kept:
        return page.replace(kept, commands)
    return page.replace(_WARM, f"{commands}\n{_WARM}")


def _page(results: dict[str, Any], commands: str) -> str:
    workloads = results["workloads"]
    flink = "Flink" in results["machine"]
    checking = results["checking"]
    return _TEXT.format(
        beside=", and with Flink" if flink else "",
        tables="\n".join(_section(w) for w in workloads),
        commands=commands,
        checking=f"## Checking\n\n{report.checking_line(checking)}.\n" if checking else "",
        failures=report.failed_lines("## Failed", report.failures(results)),
        events=max((w["events"] for w in workloads), default=0),
        fewest=min((w["events"] for w in workloads), default=0),
        size=round(max((w["bytes"] / w["events"] for w in workloads), default=0)),
        repeats=results["repeats"],
        flink=_FLINK if flink else "",
        machine="\n".join(f"| {k} | {v} |" for k, v in results["machine"].items()),
    )


def _section(workload: dict[str, Any]) -> str:
    title = workload["title"]
    table = report.markdown_table(report.headers(workload), report.rows(workload))
    return f"## {title[0].upper()}{title[1:]}\n\nGoal: {workload['goal']}.\n\n{table}"


# ── the plot ─────────────────────────────────────────────────────────────────────────────────────


def _plot(results: dict[str, Any], path: Path) -> None:
    shown = [w for w in results["workloads"] if not w["baseline"]]
    if not shown:
        return
    figure, panels = plt.subplots(
        len(shown), 1, figsize=(8, 1.5 * len(shown) + 0.4), layout="constrained", squeeze=False
    )
    for panel, workload in zip(panels[:, 0], shown, strict=True):
        _bars(panel, workload)
    panels[-1, 0].set_xlabel("thousand events/s")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _bars(panel: Any, workload: dict[str, Any]) -> None:
    best = list(_best(workload["engines"]))[::-1]
    rates = [e["events_per_second"] / 1000 for e in best]
    names = ["Fogline" if e["engine"] == "fogline" else e["label"] for e in best]
    bars = panel.barh(names, rates, color=[_COLOURS[e["engine"]] for e in best], height=0.65)
    panel.bar_label(bars, labels=[f"{r:,.0f}" for r in rates], padding=3, fontsize=8)
    panel.set_title(workload["title"], loc="left", fontsize=9)
    panel.set_xlim(0, max(rates, default=1) * 1.12)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _best(engines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The best variant of every engine, Fogline's with typed results."""
    for name in _COLOURS:
        own = [
            e
            for e in engines
            if e["engine"] == name and e["variant"] != RECORDS and e["events_per_second"]
        ]
        if own:
            yield max(own, key=lambda e: e["events_per_second"])
