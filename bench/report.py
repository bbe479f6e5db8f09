"""The results as tables: on the terminal and, cell by cell, for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

HEADERS = ("engine", "thousand events/s", "x PySpark", "x Flink", "memory", "results")


def show(results: dict[str, Any], console: Console) -> None:
    for workload in results["workloads"]:
        title = f"{workload['title']} (goal: {workload['goal']})"
        show_table(title, headers(workload), rows(workload), console)
    if results["checking"]:
        console.print(checking_line(results["checking"]))
    for failure in failures(results):
        console.print(f"[red]FAILED[/red] {failure}", highlight=False)


def show_table(
    title: str, headers: tuple[str, ...], rows: Iterable[tuple[str, ...]], console: Console
) -> None:
    table = Table(title=title, title_justify="left")
    for number, header in enumerate(headers):
        table.add_column(header, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def headers(workload: dict[str, Any]) -> tuple[str, ...]:
    if workload["baseline"]:
        return ("insights", "thousand events/s", "time, x one insight", "memory", "results")
    return HEADERS


def rows(workload: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for engine in workload["engines"]:
        rate = engine["events_per_second"]
        speed = "failed" if rate is None else f"{rate / 1000:,.0f}"
        memory = f"{engine['peak_bytes'] / 2**30:.1f} GiB" if engine["peak_bytes"] else ""
        if workload["baseline"]:
            ratio = engine["to_baseline"]
            ratios = ("" if not ratio else f"{1 / ratio:.2f}",)
        else:
            ratios = tuple(ratio_text(engine[name]) for name in ("to_pyspark", "to_flink"))
        results = f"{engine['count']:,}" if engine["count"] else ""
        yield (engine["label"], speed, *ratios, memory, results)


def markdown_table(headers: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Names to the left, figures to the right; ends with a line feed."""
    rule = ("---",) + ("---:",) * (len(headers) - 1)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (headers, rule, *rows))


def failed_lines(heading: str, found: list[str]) -> str:
    if not found:
        return ""
    told = [f.split("; see ")[0] for f in found]  # where the log lies is of no use to a reader
    return f"{heading}\n\n" + "\n".join(f"- {f}" for f in told) + "\n\n"


def ratio_text(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def checking_line(checking: dict[str, Any]) -> str:
    return (
        f"Checking a file of {checking['insights']} insights: "
        f"{checking['inside_seconds']:.2f} s, as a command {checking['command_seconds']:.2f} s "
        "(goal: less than a second)"
    )


def failures(results: dict[str, Any]) -> list[str]:
    return [
        f"{workload['name']}: {engine['label']}: {engine['problem']}"
        for workload in results["workloads"]
        for engine in workload["engines"]
        if engine["problem"]
    ]
