"""`fogline demo`: simulated devices feed the queries of a worked example, over MQTT."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from importlib import resources
from pathlib import Path

from fogline.broker.parent_death import die_with_parent
from fogline.commands.live import run_live
from fogline.commands.screen import make_screen
from fogline.plan.program import lower
from fogline.plan.query_file import load_query
from fogline.plan.rules import optimise
from fogline.settings import Settings

_UNATTENDED_SECONDS = 90.0
_FOREVER_SECONDS = 30 * 24 * 3600
_FORMATS = {"grid": "json"}


def run_demo(
    name: str, seconds: float | None, rate: int, as_json: bool, settings: Settings
) -> None:
    if seconds is None and not sys.stdout.isatty():
        seconds = _UNATTENDED_SECONDS
    with contextlib.ExitStack() as stack:
        file = resources.as_file(resources.files("fogline.demo") / f"{name}.ins")
        loaded = load_query(Path(stack.enter_context(file)), settings)
        screen = make_screen(lower(optimise(loaded.plan)[0]), as_json, None)

        def feed(broker: str) -> None:
            stack.callback(_end, _devices(name, rate, broker))

        run_live(loaded, screen, settings, seconds=seconds, on_ready=feed)


def _devices(name: str, rate: int, broker: str) -> subprocess.Popen[bytes]:
    """`fogline simulate` as a process of its own, publishing in real time."""
    command = [
        sys.executable, "-c", "from fogline.cli import main; main()", "simulate", name,
        "--rate", str(rate), "--seconds", str(_FOREVER_SECONDS), "--start", "now",
        "--format", _FORMATS.get(name, "senml"), "--mqtt", f"{broker}/{name}/devices",
    ]  # fmt: skip
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def _end(devices: subprocess.Popen[bytes]) -> None:
    devices.terminate()
    devices.wait()
