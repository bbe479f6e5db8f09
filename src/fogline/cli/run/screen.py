"""The display of a run: plain lines or JSON lines.

On a terminal it is a table (`live_table`).

Results go to standard output; progress and the summary go to standard error.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click

from fogline.cli.run.newest import end_of, key_text, plain, value_text
from fogline.model.results import Account, Result, StreamCount, parse_results


class Screen:
    """Plain lines. `results` may be called from another thread than the rest."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reader_ended = False

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
        self.count(results)
        self._write("".join(result_line(r) + "\n" for r in results))

    def count(self, results: Sequence[Result]) -> None:
        self.counts.update(r.insight for r in results)

    def _write(self, text: str) -> None:
        """If the reader has closed the pipe, the caller is informed, not interrupted."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            self.reader_ended = True

    def tick(self, account: Account) -> None:
        """Called about ten times a second during the run."""

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
            self.reader_ended = True


def summary(
    account: Account | None,
    counts: Counter[str],
    seconds: float,
    rejects: Path | None,
    rejected: dict[str, StreamCount] | None,
) -> list[str]:
    """The summary, in a few lines."""
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


def result_line(result: Result) -> str:
    parts = (
        end_of(result, "milliseconds"),
        plain(result.insight),
        key_text(result),
        value_text(result),
    )
    return "  ".join(part for part in parts if part)
