"""`fogline run`: an embedded site; this is its replay of files and standard input."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fogline.commands.live import run_live
from fogline.commands.screen import Screen, make_screen
from fogline.commands.spool import Spool
from fogline.commands.stopping import ctrl_c
from fogline.errors import DataError, UsageError
from fogline.model.streams import FORMATS, StreamSource
from fogline.plan.program import Program, lower
from fogline.plan.query_file import LoadedQuery, load_query
from fogline.plan.rules import optimise
from fogline.settings import Settings

if TYPE_CHECKING:
    from fogline.spark.engine import StreamRun
    from fogline.spark.scan import Input


@dataclass(frozen=True)
class Options:
    source: str | None = None
    form: str | None = None
    speed: str = "max"
    seconds: float | None = None
    batch: bool = False
    rejects: Path | None = None
    max_bytes: int | None = None
    mqtt_port: int = 0
    as_json: bool = False

    @property
    def pace(self) -> float | None:
        """Times real time, or None for as fast as possible."""
        if self.speed == "max":
            return None
        try:
            pace = float(self.speed.removesuffix("x"))
        except ValueError:
            pace = 0.0
        if not 0 < pace < 1e9:
            raise UsageError(f"--speed {self.speed} is neither a number above 0 nor max")
        return pace


def run_file(path: Path, options: Options, settings: Settings) -> None:
    check_options(options)
    loaded = load_query(path, settings)
    program = lower(optimise(loaded.plan)[0])
    if options.source is None and _is_live(program):
        check_live_options(options)
        screen = make_screen(program, options.as_json, None)
        run_live(loaded, screen, settings, options.mqtt_port, options.seconds)
        return
    rejects = (options.rejects or path.with_suffix(".rejects")) / time.strftime("%Y%m%d-%H%M%S")
    with contextlib.ExitStack() as stack:
        inputs = _inputs(program, replace(options, rejects=rejects), settings, stack)
        screen = make_screen(program, options.as_json, _total_bytes(inputs))
        run_program(loaded, program, inputs, options, screen, settings)


def check_options(options: Options) -> None:
    if options.form is not None and options.form not in FORMATS:
        raise UsageError(f"--format {options.form} is not one of {', '.join(FORMATS)}")
    if options.batch and (options.source == "-" or options.pace is not None):
        raise UsageError("--batch reads a whole file at once: it needs a file and no --speed")
    _ = options.pace


def check_live_options(options: Options) -> None:
    """What makes sense only for a replay."""
    given = {"--batch": options.batch, "--format": options.form, "--rejects": options.rejects}
    given["--speed"] = options.speed != "max"
    wrong = [name for name, value in given.items() if value]
    if wrong:
        hint = "add --input FILE, or leave it out"
        raise UsageError(f"{', '.join(wrong)} is for replaying a file", hint)


def _is_live(program: Program) -> bool:
    """Whether some stream comes over a broker."""
    scans = (*program.scans, *program.record_scans)
    return any(scan.stream.provider == "mqtt" for scan in scans)


def run_program(
    loaded: LoadedQuery,
    program: Program,
    inputs: dict[str, Input],
    options: Options,
    screen: Screen,
    settings: Settings,
) -> None:
    """Runs until the input ends, the time is up or Ctrl-C; always tells how it went."""
    from fogline.spark.engine import StreamRun, run_batch
    from fogline.spark.functions import spark_functions
    from fogline.spark.rejects import count_rejects
    from fogline.spark.session import open_session

    with screen:
        screen.say("starting Spark")
        spark = open_session(settings)
        functions = spark_functions(loaded.functions)
        started = time.monotonic()
        if options.batch:
            screen.say("computing")
            run_batch(spark, program, inputs, screen.results, functions)
            folder = next(iter(inputs.values())).rejects
            screen.finish(None, time.monotonic() - started, folder, count_rejects(folder))
            return
        steady = not any(i.tail for i in inputs.values()) and options.pace is None
        with StreamRun(
            spark, program, inputs, screen.results, settings.scratch, functions, steady
        ) as run:
            with ctrl_c() as asked, contextlib.suppress(KeyboardInterrupt):
                run.wait(options.seconds, lambda: _look(run, screen, asked))
            folder = next(iter(inputs.values())).rejects
            screen.finish(run.account(), time.monotonic() - started, folder, None)


def _look(run: StreamRun, screen: Screen, asked: threading.Event) -> None:
    """Between two looks at the run: is it to end, and what is there to show?"""
    if asked.is_set():
        raise KeyboardInterrupt
    if screen.reader_gone:
        raise BrokenPipeError
    screen.tick(run.account())


def _inputs(
    program: Program, options: Options, settings: Settings, stack: contextlib.ExitStack
) -> dict[str, Input]:
    """Where every stream is read from; everything that is missing is told before Spark starts."""
    from fogline.spark.scan import Input

    streams = {s.stream.name: s.stream for s in (*program.scans, *program.record_scans)}
    common = Input(
        Path(),
        format=options.form,
        rejects=options.rejects,
        max_bytes=options.max_bytes or Input.max_bytes,
        options={} if options.pace is None else {"speed": repr(options.pace)},
    )
    if options.source == "-":
        spool = stack.enter_context(Spool(settings.scratch))
        _feed_from_stdin(spool)
        return dict.fromkeys(streams, replace(common, path=spool.path, tail=True))
    if options.source is not None:
        path = _existing(Path(options.source), "--input")
        return dict.fromkeys(streams, replace(common, path=path))
    return {name: replace(common, path=_own_path(stream)) for name, stream in streams.items()}


def _feed_from_stdin(spool: Spool) -> None:
    """Unbuffered: a thread that waits for a buffer of Python's would hinder its end."""
    source = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115

    def feed() -> None:
        spool.copy(source)

    threading.Thread(target=feed, daemon=True, name="stdin").start()


def _own_path(stream: StreamSource) -> Path:
    if stream.provider != "file":
        raise UsageError(
            f"stream {stream.name} comes from {stream.provider}, which cannot be read live yet",
            "replay a file in its place: --input FILE",
        )
    return _existing(Path(str(stream.parameter("path"))), f"stream {stream.name}")


def _existing(path: Path, what: str) -> Path:
    if not path.exists():
        raise DataError(f"{what}: there is no {path}")
    return path.resolve()


def _total_bytes(inputs: dict[str, Input]) -> int | None:
    """How much there is to read, for the progress bar; None when it is not known."""
    if any(i.tail for i in inputs.values()):
        return None
    return sum(f.stat().st_size for i in inputs.values() for f in _files(i.path))


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    else:
        yield from (f for f in path.iterdir() if f.is_file() and f.name[0] not in "._")
