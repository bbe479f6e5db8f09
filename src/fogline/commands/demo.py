"""`fogline demo`: simulated devices feed the queries of a worked example."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from importlib import resources
from pathlib import Path

from fogline.commands.queries import load_query
from fogline.commands.run import Options, run_program
from fogline.commands.screen import make_screen
from fogline.commands.spool import Spool
from fogline.plan.program import lower
from fogline.plan.rules import optimise
from fogline.settings import Settings
from fogline.simulate.messages import Wire, messages
from fogline.simulate.streams import Run

_UNATTENDED_SECONDS = 90.0
_FOREVER_SECONDS = 30 * 24 * 3600


def run_demo(
    name: str, seconds: float | None, rate: int, as_json: bool, settings: Settings
) -> None:
    from fogline.spark.scan import Input

    if seconds is None and not sys.stdout.isatty():
        seconds = _UNATTENDED_SECONDS
    with resources.as_file(resources.files("fogline.demo") / f"{name}.ins") as path:
        loaded = load_query(Path(path), settings)
    program = lower(optimise(loaded.plan)[0])
    with contextlib.ExitStack() as stack:
        spool = stack.enter_context(Spool(settings.scratch))
        stop = threading.Event()
        stack.callback(stop.set)
        feeder = threading.Thread(
            target=_feed, args=(spool, name, rate, stop), daemon=True, name="devices"
        )
        feeder.start()
        scans = (*program.scans, *program.record_scans)
        given = Input(spool.path, tail=True)
        inputs = {scan.stream.name: given for scan in scans}
        screen = make_screen(program, as_json, None)
        options = Options(seconds=seconds, as_json=as_json)
        run_program(loaded, program, inputs, options, screen, settings)


def _feed(spool: Spool, name: str, rate: int, stop: threading.Event) -> None:
    """Devices in real time: what is due is written ten times a second."""
    start = time.time_ns() // 1_000_000
    run = Run(name, rate=rate, seconds=_FOREVER_SECONDS, start_ms=start)
    wire = Wire("json" if name == "grid" else "senml")
    due: list[str] = []
    for chunk in messages(run, wire):
        for message in chunk:
            ahead = message.due_ms - time.time_ns() // 1_000_000
            if ahead > 0:
                _write(spool, due)
                if stop.wait(max(ahead / 1000, 0.1)):
                    return
            due.append(message.text)


def _write(spool: Spool, due: list[str]) -> None:
    if due:
        spool.write("".join(f"{text}\n" for text in due).encode("latin-1"))
        due.clear()
