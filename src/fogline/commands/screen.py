"""What a person (or a program) sees of a run: a live table, plain lines, or JSON lines.

Results go to standard output; progress and the summary go to standard error.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from fogline.model.results import Account, Result, StreamCount, parse_results
from fogline.plan.program import Program

_SHOWN = 20


class Screen:
    """Plain lines. `results` may be called from another thread than the rest."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reader_gone = False

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def say(self, text: str) -> None:
        """What is being done now, while there is nothing else to see."""

    def lines(self, lines: bytes) -> None:
        """Results as lines of JSON."""
        self.results(parse_results(lines))

    def results(self, results: Sequence[Result]) -> None:
        self.counts.update(r.insight for r in results)
        self._write("".join(_line(r) + "\n" for r in results))

    def _write(self, text: str) -> None:
        """Nobody may be reading any more: the caller is told, not broken off."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            self.reader_gone = True

    def tick(self, account: Account) -> None:
        """Called about ten times a second while the run goes on."""

    def finish(
        self,
        account: Account | None,
        seconds: float,
        rejects: Path | None,
        rejected: dict[str, StreamCount] | None,
    ) -> None:
        """The summary."""
        for line in summary(account, self.counts, seconds, rejects, rejected):
            click.echo(line, err=True)


class JsonScreen(Screen):
    """One insight record a line, as the language reference gives it."""

    def lines(self, lines: bytes) -> None:
        """As they come: nothing is made of them here."""
        try:
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self.reader_gone = True

    def results(self, results: Sequence[Result]) -> None:
        self.counts.update(r.insight for r in results)
        self._write("".join(r.record + "\n" for r in results))


class LiveScreen(Screen):
    """A table of the newest results that redraws itself, with a progress bar below."""

    def __init__(self, insights: Sequence[str], total_bytes: int | None) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._insights = insights
        self._latest: dict[str, list[Result]] = {name: [] for name in insights}
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
        )
        self._task = self._bar.add_task("", total=total_bytes)
        self._live = Live(
            console=Console(),
            refresh_per_second=4,
            get_renderable=self._render,
            vertical_overflow="ellipsis",
        )

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def results(self, results: Sequence[Result]) -> None:
        self.counts.update(r.insight for r in results)
        room = max(2, _SHOWN // max(1, len(self._insights)))
        for result in results:
            kept = self._latest[result.insight]
            kept.insert(0, result)
            del kept[room:]

    def tick(self, account: Account) -> None:
        read = sum(s.bytes for s in account.streams.values())
        text = f"{account.records:,} records, {account.results:,} results"
        self._bar.update(self._task, completed=read, description=text)

    def finish(
        self,
        account: Account | None,
        seconds: float,
        rejects: Path | None,
        rejected: dict[str, StreamCount] | None,
    ) -> None:
        self._live.refresh()
        self._live.stop()
        super().finish(account, seconds, rejects, rejected)

    def _render(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(expand=True)
        for column in ("insight", "window end", "keys", "value"):
            table.add_column(column, overflow="ellipsis", no_wrap=True)
        for name in self._insights:
            for result in self._latest[name]:
                cells = (name, _clock(result), _keys(result), _value(result))
                table.add_row(*(Text(cell) for cell in cells))
        return Group(table, self._bar)


def make_screen(program: Program, as_json: bool, total_bytes: int | None) -> Screen:
    if as_json:
        return JsonScreen()
    if sys.stdout.isatty():
        shown = [output.name for output in program.outputs if not output.hidden]
        return LiveScreen(shown, total_bytes)
    return Screen()


def summary(
    account: Account | None,
    counts: Counter[str],
    seconds: float,
    rejects: Path | None,
    rejected: dict[str, StreamCount] | None,
) -> list[str]:
    """What happened, in a few lines."""
    total = sum(counts.values())
    lines = [f"{total:,} results in {seconds:.1f} s"]
    if account is not None:
        rate = account.records / seconds if seconds else 0
        lines[0] = f"{account.records:,} records ({rate:,.0f}/s), {lines[0]}"
    lines += [f"  {name}: {count:,}" for name, count in sorted(counts.items())]
    streams = rejected if account is None else account.streams
    for name, stream in sorted((streams or {}).items()):
        if stream.bad or stream.late:
            kept = f", kept in {rejects}" if rejects else ""
            lines.append(f"  stream {name}: {stream.bad:,} bad, {stream.late:,} late{kept}")
    return lines


def _clock(result: Result) -> str:
    return str(json.loads(result.record)["window"]["end"])[:-1].replace("T", " ")


def _keys(result: Result) -> str:
    return ", ".join(f"{k}={v}" for k, v in json.loads(result.key).items())


def _value(result: Result) -> str:
    try:
        return f"{float(result.value):.6g}"
    except ValueError:
        return result.value


def _line(result: Result) -> str:
    keys = _keys(result)
    return f"{_clock(result)}  {result.insight}  {keys + '  ' if keys else ''}{_value(result)}"
