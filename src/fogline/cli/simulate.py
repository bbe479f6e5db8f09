"""`fogline simulate`: generates a stream and writes it to a file or publishes it over MQTT."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import cast

import click

from fogline.common.errors import UsageError
from fogline.simulate.encode import FORMATS
from fogline.simulate.messages import Wire
from fogline.simulate.patterns import PATTERNS
from fogline.simulate.schema import FormatName
from fogline.simulate.streams import DEFAULT_START_MS, STREAMS, Run

EPILOG = """\b
Examples:
  fogline simulate city --rate 1000 --seconds 60 --out city.senml
  fogline simulate taxi --rate 50 --seconds 600 --pattern bimodal \\
      --mqtt mqtt://127.0.0.1:1883/taxi --start now
  fogline simulate grid --format json --shuffle 5 --bad 0.01 --out - | head
"""


def start_ms(text: str) -> int:
    """`now`, or a time in ISO 8601 (UTC where it names no zone), in epoch milliseconds."""
    if text == "now":
        return time.time_ns() // 1_000_000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        hint = "give now, or for example 2026-01-01T00:00:00Z"
        raise UsageError(f"--start is not a time: {text!r}", hint) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


@contextmanager
def progress_bar(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function to call with the count so far; it draws a bar when stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    text = TextColumn("simulating")
    console = Console(stderr=True)
    with Progress(
        text, BarColumn(), MofNCompleteColumn(), Remaining(), console=console, transient=True
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.update(task, completed=count)


@click.command(epilog=EPILOG, short_help="Generate a test stream, to a file or over MQTT.")
@click.argument("stream", type=click.Choice(list(STREAMS)))
@click.option(
    "--rate", type=float, default=100.0, show_default=True, help="Mean events per second."
)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Length of the run.")
@click.option(
    "--pattern",
    type=click.Choice(list(PATTERNS)),
    default="uniform",
    show_default=True,
    help="How the rate changes over the run.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same stream.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Default: senml for city, taxi and fit; json for traffic and grid.",
)
@click.option("--start", help="First event time: now, or ISO 8601. Default: 2026-01-01T00:00:00Z.")
@click.option(
    "--shuffle",
    type=float,
    default=0.0,
    metavar="SECONDS",
    help="Send events out of order, each delayed by less than this.",
)
@click.option(
    "--bad",
    type=float,
    default=0.0,
    metavar="FRACTION",
    help="Add malformed messages, as this fraction of all messages.",
)
@click.option(
    "--mqtt", metavar="URL", help="Publish in real time: mqtt://user:pass@host:port/topic."
)
@click.option("--out", metavar="FILE", help="Write to a file, or - for standard output.")
@click.option("--quiet", is_flag=True, help="No progress bar and no summary; errors only.")
def simulate(
    stream: str,
    rate: float,
    seconds: float,
    pattern: str,
    seed: int,
    format_: str | None,
    start: str | None,
    shuffle: float,
    bad: float,
    mqtt: str | None,
    out: str | None,
    quiet: bool,
) -> None:
    """Generate a seeded stream of events, as fast as possible (--out) or in real time (--mqtt).

    STREAM is city, taxi, fit, traffic or grid.
    """
    if (mqtt is None) == (out is None):
        raise UsageError("no destination for the stream", "give either --out FILE or --mqtt URL")
    begin = DEFAULT_START_MS if start is None else start_ms(start)
    run = Run(stream, rate, seconds, pattern, seed, begin)
    wire = Wire(cast(FormatName, format_ or run.stream.default_format), shuffle, bad)
    if mqtt is not None:
        _publish(mqtt, run, wire, quiet)
    elif out is not None:
        _write(out, run, wire, quiet)


def _write(out: str, run: Run, wire: Wire, quiet: bool) -> None:
    from fogline.simulate.file import write_file

    started = time.monotonic()
    with progress_bar(run.count, quiet) as progress:
        written = write_file(out, run, wire, progress)
    if out != "-" and not quiet:
        took = max(time.monotonic() - started, 1e-9)
        message = (
            f"wrote {written} messages to {out} in {took:.1f} s ({written / took:,.0f} a second)"
        )
        click.echo(message, err=True)


def _publish(url: str, run: Run, wire: Wire, quiet: bool) -> None:
    from fogline.simulate.mqtt import publish

    with progress_bar(run.count, quiet) as progress:
        done = publish(url, run, wire, progress=progress)
    if quiet:
        return
    stopped = "stopped: " if done.interrupted else ""
    click.echo(
        f"{stopped}sent {done.sent} messages, {done.acknowledged} acknowledged, "
        f"in {done.seconds:.1f} s ({done.acknowledged / max(done.seconds, 1e-9):,.0f} a second)",
        err=True,
    )
