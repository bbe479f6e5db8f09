"""The part of docs/benchmarks.md, and the tables on the terminal, that tell of whole commands."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from report import failed_lines, markdown_table, ratio_text, show_table
from rich.console import Console

BEGIN = "<!-- whole commands, made by `bench/run.py --write-docs` -->"
END = "<!-- end of whole commands -->"
MEMORY_GOAL = 1.5e9
STARTUP_GOAL = 7.0
HEADERS = (
    "command",
    "thousand readings/s",
    "x Bytewax",
    "x PySpark",
    "x Flink",
    "start-up",
    "whole",
    "CPU per reading",
    "memory",
    "results",
)
_TEXT = """\
{begin}

## The whole command

What you wait for: a command from its start to its end, cold, with its results written as JSON
lines. `fogline run QUERY --input FILE --json > RESULTS` is compared with programs for other engines
that write the same lines. Goals for `fogline run`: at least as fast as Bytewax, at most
{memory_goal:.1f} GB, started up in {startup_goal:.0f} s.

{busy}{tables}
{missed}{startup}{failures}### How commands are measured

- **Rate**: {readings:,} json readings of about {size} bytes in one file, less the same command
  over {small:,} readings, which is its **start-up**. The file has been read before and comes
  from memory. Where a busy machine made the small run the longer one, there is no rate.
- **Order**: the commands take turns ({repeats} in this run), and the medians count; a command that
  takes more than a minute runs once.
- **Same results**: every command must write the same set of lines as the first: insight, window,
  keys and count equal, values within 1e-9. A difference makes the benchmark fail.
- **Ratios** are to the best variant of an engine, in the same run.
- **CPU per reading** is user and system time of all processes, also less that of the start-up. It
  says more than the rate where other work shares the machine.
- **Memory** is the peak of the resident memory of all processes, added up.
- **Bytewax** has its own file source and sink, orjson for JSON, one `fold_window` for all insights
  of a window. One process, and two that share the keys (threads would share Python's lock).
- **PySpark** runs a batch over the file, the fastest that Spark itself has for one: `read.json` of
  the fields it needs, one aggregation for all insights of a window, `applyInPandas` for the Kalman
  filter, `write.json`.
- **PyFlink** runs SQL, and a keyed process function in Python for the Kalman filter.
- Where a label names a number of readings, the engine reads only those, a tenth: all would take
  minutes. Its results are compared with Fogline's over the same readings.

Run it with `make bench ARGS="--only commands"`, or one with `--only command-filter`; fewer readings
with `--readings 200000`, one peer with `--engine bytewax`. `make bench-peers` installs Bytewax and
Flink first; `--write-docs` replaces this section.

Measured on: {machine}.

{end}
"""
_BUSY = """\
**Measured on a machine with other load** (load {load:.0f} on {cores} cores): times are much
longer than on an idle one, and rates are uncertain.

"""
_STARTUP = """\
### Where the start-up goes

Of `fogline run` with three insights over {readings:,} readings, {whole:.1f} s: from Spark's log and
Python's import times, which add a little themselves (`python bench/startup.py`).

{phases}
Part of several of these:

{inside}
"""


def section(results: dict[str, Any]) -> str | None:
    """None where no command was measured."""
    commands = results["commands"]
    if not commands:
        return None
    largest = max(commands, key=lambda c: c["readings"])
    return _TEXT.format(
        begin=BEGIN,
        end=END,
        busy=_busy(results),
        tables="\n".join(f"### {c['title']}\n\n{_table(c)}" for c in commands),
        missed=failed_lines("### Goals missed", missed_goals(results)),
        memory_goal=MEMORY_GOAL / 1e9,
        startup_goal=STARTUP_GOAL,
        startup=_startup(results["startup"]),
        failures=failed_lines("### Failed", failures(results)),
        readings=largest["readings"],
        size=round(largest["bytes"] / largest["readings"]),
        small=largest["small_readings"],
        repeats=results["repeats"],
        machine=", ".join(
            f"{name} {value}" if name[0].isupper() else value
            for name, value in (
                results["machine"] | {"cores": f"{results['machine']['cores']} cores"}
            ).items()
        )
        + f", load {results['load_at_start']} at the start",
    )


def show(results: dict[str, Any], console: Console) -> None:
    for workload in results["commands"]:
        show_table(f"Command: {workload['title']}", HEADERS, rows(workload), console)
    startup = results["startup"]
    if startup:
        whole = sum(startup["phases"].values())
        console.print(f"Start-up of a command, {whole:.1f} s:")
        for name, seconds in (startup["phases"] | startup["inside"]).items():
            console.print(f"  {seconds:6.2f} s  {name}", highlight=False)
    for goal in missed_goals(results):
        console.print(f"[yellow]goal missed[/yellow] {goal}", highlight=False)
    for failure in failures(results):
        console.print(f"[red]FAILED[/red] {failure}", highlight=False)


def kept_section(page: str) -> str | None:
    """The one of a page that was written before."""
    _, found, rest = page.partition(BEGIN)
    return f"{BEGIN}{rest.partition(END)[0]}{END}\n" if found else None


def rows(commands: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for command in commands["commands"]:
        rate = command["readings_per_second"]
        speed = "failed" if command["problem"] else "" if rate is None else f"{rate / 1000:,.0f}"
        large = command["large"]
        yield (
            _label(command, commands["readings"]),
            speed,
            *(ratio_text(command[f"to_{engine}"]) for engine in ("bytewax", "pyspark", "flink")),
            _median(command["small"], "seconds", "{:.1f} s"),
            _median(large, "seconds", "{:.1f} s"),
            _processor_time(command, commands["small_readings"]),
            _gigabytes(large),
            "" if command["count"] is None else f"{command['count']:,}",
        )


def failures(results: dict[str, Any]) -> list[str]:
    return [
        f"command {workload['name']}: {command['label']}: {command['problem']}"
        for workload in results["commands"]
        for command in workload["commands"]
        if command["problem"]
    ]


def missed_goals(results: dict[str, Any]) -> list[str]:
    """Of `fogline run`, which is the first command of every workload."""
    missed = []
    for workload in results["commands"]:
        fogline = workload["commands"][0]
        if fogline["problem"]:
            continue
        name, ratio = workload["name"], fogline["to_bytewax"]
        peak = max(c["peak_bytes"] for c in fogline["large"])
        seconds = median(c["seconds"] for c in fogline["small"])
        if ratio is not None and ratio < 1:
            missed.append(f"{name}: {ratio_text(ratio)} x Bytewax")
        if peak > MEMORY_GOAL:
            missed.append(f"{name}: {peak / 1e9:.2f} GB, goal {MEMORY_GOAL / 1e9:.1f} GB")
        if seconds > STARTUP_GOAL:
            missed.append(f"{name}: start-up {seconds:.1f} s, goal {STARTUP_GOAL:.0f} s")
    return missed


def _label(command: dict[str, Any], readings: int) -> str:
    own = command["readings"]
    return command["label"] if own == readings else f"{command['label']}, {own:,} readings"


def _table(commands: dict[str, Any]) -> str:
    return markdown_table(HEADERS, rows(commands))


def _busy(results: dict[str, Any]) -> str:
    load, cores = results["load_at_start"], results["machine"]["cores"]
    return _BUSY.format(load=load, cores=cores) if load > int(cores) else ""


def _startup(startup: dict[str, Any] | None) -> str:
    if not startup:
        return ""
    phases = startup["phases"]
    return _STARTUP.format(
        readings=startup["readings"],
        whole=sum(phases.values()),
        phases=_seconds_table("phase", phases),
        inside=_seconds_table("what", startup["inside"]),
    )


def _seconds_table(title: str, parts: dict[str, float]) -> str:
    return markdown_table((title, "seconds"), ((n, f"{s:.2f}") for n, s in parts.items()))


def _median(costs: list[dict[str, float]], name: str, form: str) -> str:
    return form.format(median(c[name] for c in costs)) if costs else ""


def _processor_time(command: dict[str, Any], small_readings: int) -> str:
    if not command["large"]:
        return ""
    small, large = (
        median(c["processor_seconds"] for c in command[part]) for part in ("small", "large")
    )
    return f"{(large - small) / (command['readings'] - small_readings) * 1e6:.1f} µs"


def _gigabytes(costs: list[dict[str, float]]) -> str:
    return f"{max(c['peak_bytes'] for c in costs) / 1e9:.2f} GB" if costs else ""
