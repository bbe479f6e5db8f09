"""`fogline run`: an embedded site; this is its replay of files and standard input."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from fogline.cli.run.choose_screen import choose_screen
from fogline.cli.run.history import History, Stretch, parse_stretch
from fogline.cli.run.live import run_live
from fogline.cli.run.options import RunOptions, check_live_options, check_options
from fogline.cli.run.screen import Screen
from fogline.cli.site.query import QueryRequest
from fogline.common.errors import DataError, UsageError
from fogline.common.process.interrupts import ctrl_c
from fogline.common.settings import Settings
from fogline.model.results import ResultRange
from fogline.model.streams import StreamSource
from fogline.plan.analysis.query_file import LoadedQuery, load_query
from fogline.plan.lowering.program import Program, lower
from fogline.plan.rules import optimise

if TYPE_CHECKING:
    from fogline.spark.compile.scan import Input
    from fogline.spark.run.engine import StreamRun


def run_file(path: Path, options: RunOptions, settings: Settings) -> None:
    check_options(options)
    loaded = load_query(path, settings)
    program = lower(optimise(loaded.plan)[0])
    if options.since is not None:
        _run_history(
            loaded, program, parse_stretch(options.since, options.until), options, settings
        )
        return
    if options.source is None and _is_live(program):
        check_live_options(options)
        screen = choose_screen(program, options.as_json, None, live=True)
        run_live(loaded, screen, settings, options.mqtt_port, options.seconds)
        return
    with contextlib.ExitStack() as stack:
        inputs = _inputs(
            program, replace(options, rejects=_rejects(loaded, options)), settings, stack
        )
        screen = choose_screen(program, options.as_json, _total_bytes(inputs))
        run_program(loaded, program, inputs, options, screen, settings)


def _run_history(
    loaded: LoadedQuery, program: Program, stretch: Stretch, options: RunOptions, settings: Settings
) -> None:
    """A batch over stored data; nodes that did not answer are reported."""
    from fogline.spark.compile.scan import Input

    asked = QueryRequest(site=options.site, url=options.url, token_file=options.token_file)
    history = History(program, stretch, asked, settings)
    with contextlib.ExitStack() as stack:
        inputs = history.inputs(Input(Path(), rejects=_rejects(loaded, options)), stack)
        missing = history.missing()
        if missing and options.require_all:
            raise DataError(
                "; ".join(missing), "without --require-all it runs over the available values"
            )
        for line in missing:
            click.echo(line, err=True)
        screen = choose_screen(program, options.as_json, None)
        batch = replace(options, batch=True)
        run_program(loaded, program, inputs, batch, screen, settings, stretch.results(program))
        if options.as_json and history.nodes is not None:
            click.echo(json.dumps({"nodes": history.nodes}))


def _rejects(loaded: LoadedQuery, options: RunOptions) -> Path:
    folder = options.rejects or loaded.path.with_suffix(".rejects")
    return folder / time.strftime("%Y%m%d-%H%M%S")


def _is_live(program: Program) -> bool:
    """Whether some stream arrives at a live site."""
    return any(scan.stream.in_log for scan in (*program.scans, *program.record_scans))


def run_program(
    loaded: LoadedQuery,
    program: Program,
    inputs: dict[str, Input],
    options: RunOptions,
    screen: Screen,
    settings: Settings,
    within: ResultRange | None = None,
) -> None:
    """Runs until the input ends, the time is up or Ctrl-C; always prints a summary.

    Of a batch only results that belong to it are shown.
    """
    from fogline.spark.compile.functions import spark_functions
    from fogline.spark.run.engine import StreamRun, count_rejects, run_batch
    from fogline.spark.session.session import open_session

    with screen:
        screen.say("starting Spark")
        spark = open_session(settings)
        functions = spark_functions(loaded.functions)
        started = time.monotonic()
        if options.batch:
            screen.say("computing")
            screen.counts = run_batch(spark, program, inputs, screen.lines, functions, within)
            folder = next((i.rejects for i in inputs.values() if i.rejects), None)
            screen.finish(None, time.monotonic() - started, folder, count_rejects(folder))
            return
        steady = not any(i.tail for i in inputs.values()) and options.pace is None
        with (
            StreamRun(
                spark, program, inputs, screen.lines, settings.scratch, functions, steady
            ) as run,
            ctrl_c() as asked,
            contextlib.suppress(KeyboardInterrupt),
        ):
            run.wait(options.seconds, lambda: _look(run, screen, asked))
        account, folder = run.account(), next(iter(inputs.values())).rejects
        screen.counts = Counter(account.insights)
        screen.finish(account, time.monotonic() - started, folder, None)


def _look(run: StreamRun, screen: Screen, asked: threading.Event) -> None:
    """Between two checks of the run: whether to stop, and what to show."""
    if asked.is_set():
        raise KeyboardInterrupt
    if screen.reader_ended:
        raise BrokenPipeError
    screen.tick(run.account())


def _inputs(
    program: Program, options: RunOptions, settings: Settings, stack: contextlib.ExitStack
) -> dict[str, Input]:
    """The input of every stream; everything that is missing is reported before Spark starts."""
    from fogline.spark.compile.scan import Input

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


class Spool:
    """A growing file that a stream reads while another thread appends whole messages. `end` says
    that nothing follows. Removed on exit."""

    def __init__(self, scratch: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fogline-spool-", dir=scratch))
        self.path = self._folder / "records"
        self._file = self.path.open("ab", buffering=0)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def end(self) -> None:
        self.path.with_name(self.path.name + ".end").touch()

    def copy(self, source: BinaryIO) -> None:
        """Copies everything from a pipe, as it arrives, then marks the end."""
        try:
            while chunk := getattr(source, "read1", source.read)(1 << 16):
                self.write(chunk)
            self.end()
        except ValueError:
            return  # the spool was closed while data was still coming
