"""What a person sees of the traffic demo while it runs, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import click

_LINE_SECONDS = 5.0

JobCounts = Mapping[str, Mapping[str, Any]]


class Progress:
    """Plain lines, some seconds apart."""

    def __init__(self) -> None:
        self._due = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def show(self, what: str, sent: int, jobs: JobCounts) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _LINE_SECONDS
            click.echo(f"{what}: {sent:,} sent; {summary(jobs)}", err=True)


class JobTable(Progress):
    """A table of all jobs that redraws itself."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, what: str, sent: int, jobs: JobCounts) -> None:
        from rich.table import Table as Drawn

        table = Drawn(box=None, header_style="bold", title=f"{what}: {sent:,} sent")
        table.add_column("job")
        table.add_column("site")
        for column in ("in", "out", "bad", "late"):
            table.add_column(column, justify="right")
        for name, job in jobs.items():
            counts = (f"{job[key]:,}" for key in ("in", "out", "bad", "late"))
            table.add_row(name, job["site"], *counts)
        self._live.update(table)


def make_progress(as_json: bool) -> Progress:
    return JobTable() if sys.stderr.isatty() and not as_json else Progress()


def summary(jobs: JobCounts) -> str:
    """What each kind of job has let through or taken in, all sites together."""
    clean = sum(job["out"] for name, job in jobs.items() if name.startswith("clean-"))
    totals = {"clean": clean}
    for kind in ("forward", "local", "global"):
        own = [job for name, job in jobs.items() if name.startswith(kind) and name != "local-cloud"]
        totals[kind] = sum(job["in"] for job in own)
    return ", ".join(f"{kind} {count:,}" for kind, count in totals.items())
