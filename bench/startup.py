"""Where the time of a short `fogline run` goes, from its first instruction to its end.

The command is the one that people use: Spark's own log says when each phase ended, Python how long
imports took. Both cost a little, so the sum is somewhat more than the command takes alone.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import click
import data
from command_process import CommandError, run_cold
from command_workloads import PER_SECOND, WORKLOADS
from commands import SMALL, SUBJECTS, CommandRun, CommandSubject
from measure import Tell

_LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{UNIX_MILLIS}} %r %c{{1}} %m%n
"""
_LINE = re.compile(r"(\d{13}) (\d+) (\S+) (.*)")
_LAUNCH, _FURTHER, _END = "imports, check of the query, launch of the JVM", "further batches", "end"
_PROGRESS = "ProgressReporter Streaming query made progress"
_MARKS = (
    ("JVM", "SparkContext Running Spark version"),
    ("Spark context", "BlockManager Initialized BlockManager"),
    ("session", "SharedState Warehouse path"),
    ("planning", "ResolveWriteToStream Checkpoint root"),
    ("query start", "MicroBatchExecution Stream started from"),
    (
        "planning and code generation of the first batch",
        "WriteToDataSourceV2Exec Start processing data source write",
    ),
    ("first batch", _PROGRESS),
)
"""Phases in their order, each with the line of the log that ends it."""
PHASES = (_LAUNCH, *(name for name, _ in _MARKS), _FURTHER, _END)
_GENERATED = re.compile(r"CodeGenerator Code generated in ([\d.]+) ms")
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)")


def measure_startup(repeats: int, cache: Path, tell: Tell) -> dict[str, Any]:
    """Medians of the phases in seconds, for the windows of the second workload."""
    runs = []
    for number in range(repeats):
        runs.append(_run(SUBJECTS[0], cache))
        tell(f"startup: {number + 1} of {repeats}: {sum(runs[-1]['phases'].values()):.1f} s")
    return {
        "readings": SMALL,
        "phases": _medians([r["phases"] for r in runs]),
        "inside": _medians([r["inside"] for r in runs]),
    }


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(r.get(name, 0.0) for r in runs) for name in runs[0]}


def _run(subject: CommandSubject, cache: Path) -> dict[str, dict[str, float]]:
    readings = data.whole_file(data.make(SMALL, PER_SECOND, cache).events)
    workload = WORKLOADS[1]
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as name:
        folder = Path(name)
        query, log, errors = folder / "query.ins", folder / "spark.log", folder / "errors"
        query.write_text(workload.query, encoding="utf-8")
        logging = folder / "logging.properties"
        logging.write_text(_LOGGING.format(log=log), encoding="utf-8")
        java = f"{os.environ.get('FOGLINE_JAVA', '')} -Dlog4j2.configurationFile=file:{logging}"
        environment = {"FOGLINE_JAVA": java.strip(), "PYTHONPROFILEIMPORTTIME": "1"}
        command = subject.command(CommandRun(workload, query, readings, folder / "results"))
        started = time.time()
        cost = run_cold(command, folder / "printed", errors, environment)
        lines = _LINE.findall(log.read_text(encoding="utf-8"))
        told = errors.read_text(encoding="utf-8", errors="replace")
    return {
        "phases": _phases(started, started + cost.seconds, lines),
        "inside": _inside(lines, told),
    }


def _phases(
    started: float, ended: float, lines: list[tuple[str, str, str, str]]
) -> dict[str, float]:
    """Seconds by phase; raises CommandError where Spark no longer logs what ends one."""
    texts = _texts(lines)
    last = (int(lines[0][0]) - int(lines[0][1])) / 1000  # when the JVM began
    phases = {_LAUNCH: last - started}
    for name, mark in _MARKS:
        at = next((t for t, text in texts if text.startswith(mark) and t >= last), None)
        if at is None:
            raise CommandError(f"the log of Spark has no line that starts with {mark!r}")
        phases[name], last = at - last, at
    final = max(t for t, text in texts if text.startswith(_PROGRESS))
    return phases | {_FURTHER: final - last, _END: ended - final}


def _inside(lines: list[tuple[str, str, str, str]], told: str) -> dict[str, float]:
    """What belongs to several phases."""
    generated = [_GENERATED.match(text) for _, text in _texts(lines)]
    inside = {"code generation, all threads": sum(float(m[1]) for m in generated if m) / 1000}
    by_package: dict[str, float] = defaultdict(float)
    for micros, module in _IMPORT.findall(told):
        by_package[module.partition(".")[0]] += int(micros) / 1e6
    inside["imports in Python"] = sum(by_package.values())
    for package in ("fogline", "pyspark", "pandas", "numpy", "pyarrow", "duckdb"):
        inside[f"imports in Python: {package}"] = by_package[package]
    return inside


def _texts(lines: list[tuple[str, str, str, str]]) -> list[tuple[float, str]]:
    return [(int(millis) / 1000, f"{source} {text}") for millis, _, source, text in lines]


@click.command()
@click.option("--repeats", default=3, show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), default=data.default_cache())
def main(repeats: int, cache: Path) -> None:
    found = measure_startup(repeats, cache, click.echo)
    for part in ("phases", "inside"):
        click.echo(part)
        for name, seconds in found[part].items():
            click.echo(f"  {seconds:6.2f} s  {name}")
    click.echo(f"whole {sum(found['phases'].values()):.2f} s")


if __name__ == "__main__":
    main()
