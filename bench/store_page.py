"""docs/benchmarks-store.md and its plot, from what bench/store.py measured and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import store_goals
from store_goals import MEGABYTE

mpl.use("Agg")

import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[1] / "docs"
_COLOURS = {"Fogline": "#0b7a75", "SQLite": "#d9822b", "PostgreSQL": "#8a6fb0"}
_PANELS = (
    ("intake_per_second", "intake, values/s", "{:,.0f}"),
    ("latest_ms", "latest values, ms", "{:,.1f}"),
    ("range_ms", "range, ms", "{:,.1f}"),
    ("aggregate_ms", "aggregate, ms", "{:,.1f}"),
)


def write(found: dict[str, Any], folder: Path = DOCS) -> None:
    (folder / "benchmarks-store.md").write_text(text(found), encoding="utf-8")
    if "library" in found:
        _plot(found["library"]["engines"], folder / "store.png")


def text(found: dict[str, Any]) -> str:
    """The page."""
    parts = [_head(found), *(_PARTS[name](found[name]) for name in _PARTS if name in found)]
    return "\n".join([*parts, _machine(found)])


def _head(found: dict[str, Any]) -> str:
    goals = "\n".join(
        f"| {goal} | {measured} | {'met' if met else '**missed**'} |"
        for goal, measured, met in store_goals.rows(found)
    )
    table = f"\n| goal | measured | |\n|---|---:|---|\n{goals}\n" if goals else ""
    return f"""\
# Benchmarks of the store and the storage fabric

<!-- Made by `bench/store.py --write-docs`; manual edits are overwritten. -->

What `make bench-store` measures with {found["values"]:,} values, all on one machine: the store as a
library beside databases, one node over HTTP, and three nodes that know each other.
{table}"""


def _library(found: dict[str, Any]) -> str:
    engines, ranged = found["engines"], found["range"]
    ours = engines["Fogline"]
    rows = "\n".join(_engine(name, row) for name, row in engines.items())
    return f"""\
## The store beside databases

The same {ours["values"]:,} values of 1,000 metrics of ten entities in batches of 20,000, then the
same queries. *Intake* goes into latest values and history together, up to the disk: ours with its
flushes, the databases with a transaction for each batch, two indexes (names and time) and their
defaults. *Latest* is the latest value of 1,000 metrics ({ours["latest_rows"]:,} values),
*range* the first {ours["range_rows"]:,} values of 100 metrics by time, *aggregate* count, average
and maximum of one metric by second ({ours["aggregate_rows"]:,} rows); medians of five,
up to the client's result: Arrow tables from ours, rows in Python from the databases.

| | values/s | latest, ms | range, ms | aggregate, ms | bytes a value on disk |
|---|---:|---:|---:|---:|---:|
{rows}

![Intake, latest values, ranges and aggregates by engine](store.png)

- The same range read from the same Parquet files with DuckDB by hand, one thread each, in turns:
  {ranged["by_hand_ms"]:.1f} ms by hand, {ranged["store_ms"]:.1f} ms through the store,
  {ranged["ratio"]:.2f} times. The store also orders values of one time by arrival, and sees what is
  not on disk yet.
- json readings from a log, two values each: {found["feeder"]["values_per_second"]:,.0f} values/s up
  to the disk.
- Latest value of 1,000 metrics among 100,000 with one value each:
  {found["latest_of_1000_ms"]:.1f} ms.
- 100,000 metrics with one value each take {found["memory_of_100000_metrics"] / MEGABYTE:.1f} MB.
"""


def _engine(name: str, row: dict[str, Any]) -> str:
    return (
        f"| {name} | {row['intake_per_second']:,.0f} | {row['latest_ms']:.1f} "
        f"| {row['range_ms']:.1f} | {row['aggregate_ms']:.1f} "
        f"| {row['disk_bytes_per_value']:.1f} |"
    )


def _node(found: dict[str, Any]) -> str:
    rows = [_times(f"latest of 1,000 metrics, {how}", t) for how, t in found["latest"].items()]
    rows += [_times(f"range, {how}", times) for how, times in found["range"].items()]
    rows += [_times(f"aggregate, {how}", times) for how, times in found["aggregate"].items()]
    sizes = [
        f"{found[key] / MEGABYTE:.0f} MB" for key in ("memory_idle", "memory_most", "memory_after")
    ]
    return f"""\
## One node

The store process of a site, started as the agent starts it and asked over loopback HTTP with one
persistent connection: from the request to the last byte of the response. The queries are those
from above, except that the latest values are of 1,000 metrics among 100,000 with one value each.

| | rows | requests | median, ms | p95, ms |
|---|---:|---:|---:|---:|
{chr(10).join(rows)}

- From the site's log, json readings of two values each: {found["log_per_second"]:,} values/s, from
  adding the log until responses have all {found["log_values"]:,}.
- Written over REST as Arrow, 100,000 a request, on disk with each response:
  {found["put_per_second"]:,} values/s.
- Memory of the process: {sizes[0]} idle, at most {sizes[1]} while it takes the
  {found["log_values"]:,} values of the log, {sizes[2]} once they are on disk.
"""


def _times(name: str, found: dict[str, Any]) -> str:
    return (
        f"| {name} | {found['rows']:,} | {found['n']} "
        f"| {found['p50_ms']:.1f} | {found['p95_ms']:.1f} |"
    )


def _fabric(found: dict[str, Any]) -> str:
    rows = "\n".join(_beside(name, row) for name, row in found["all"].items())
    copy, death = found["copy"], found["death"]
    without = death["answers_without"]
    return f"""\
## Three nodes

Three such processes that know each other, each with {found["values"]:,} values of the same names.
One is queried, for its own values (`scope=node`) and for those of all (`scope=all`), as Arrow;
medians in milliseconds. All three share one machine's cores here. A range for all has as many rows
as one of a node, but each node has to send as many before they are sorted.

| | one node: rows | ms | all: rows | ms | ratio |
|---|---:|---:|---:|---:|---:|
{rows}

- A copy of {copy["values"]:,} values from one node to another, from the request until the copy
  is complete: {copy["seconds"]:.1f} s, {copy["per_second"]:,} values/s.
- A node is killed (`kill -9`, {death["deaths"]} times) and the third one, which has no copy, is
  queried at once and repeatedly for the latest value of 1,000 metrics of all nodes. The dead
  node's values came from the copy {death["median_ms"]:.0f} ms after the kill (median; at most
  {death["most_ms"]:.0f} ms). {_without(without)} From then on responses
  took {death["afterwards"]["p50_ms"]:.1f} ms (median; p95 {death["afterwards"]["p95_ms"]:.1f} ms).
"""


def _without(answers: int) -> str:
    if not answers:
        return "No response was without them."
    return f"{answers:,} response{' was' if answers == 1 else 's were'} without them, and said so."


def _beside(name: str, found: dict[str, Any]) -> str:
    alone, everywhere = found["alone"], found["all"]
    return (
        f"| {name} | {alone['rows']:,} | {alone['p50_ms']:.1f} "
        f"| {everywhere['rows']:,} | {everywhere['p50_ms']:.1f} | {found['ratio']:.2f} |"
    )


_PARTS = {"library": _library, "node": _node, "fabric": _fabric}


def _machine(found: dict[str, Any]) -> str:
    told = found["machine"] | found.get("library", {}).get("versions", {})
    rows = "\n".join(f"| {key} | {value} |" for key, value in told.items())
    return f"## Machine\n\n| | |\n|---|---|\n{rows}\n"


# ── the plot ─────────────────────────────────────────────────────────────────────────────────────


def _plot(engines: dict[str, dict[str, float]], path: Path) -> None:
    figure, panels = plt.subplots(1, len(_PANELS), figsize=(11, 3), layout="constrained")
    for panel, (key, title, form) in zip(panels, _PANELS, strict=True):
        heights = [row[key] for row in engines.values()]
        bars = panel.bar(list(engines), heights, color=[_COLOURS[name] for name in engines])
        labels = [form.format(height) for height in heights]
        panel.bar_label(bars, labels=labels, padding=2, fontsize=8)
        panel.set_title(title, fontsize=9)
        panel.margins(y=0.12)
        panel.tick_params(labelsize=8)
        panel.set_yticks([])
        panel.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
