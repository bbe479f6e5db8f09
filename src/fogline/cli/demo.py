"""`fogline demo`: simulated devices feed a demo over MQTT.

A demo is the queries of one site, or (traffic) a pipeline over several.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import click

from fogline.cli.run.choose_screen import choose_screen
from fogline.cli.run.live import run_live
from fogline.common.process.parent_death import die_with_parent
from fogline.common.settings import Settings
from fogline.plan.analysis.query_file import load_query
from fogline.plan.lowering.program import lower
from fogline.plan.rules import optimise

TRAFFIC = "traffic"
_UNATTENDED_SECONDS = 90.0
_FOREVER_SECONDS = 30 * 24 * 3600
_FORMATS = {"grid": "json"}


def run_demo(
    name: str, seconds: float | None, rate: int, as_json: bool, settings: Settings
) -> None:
    seconds = _lasting(seconds)
    with contextlib.ExitStack() as stack:
        file = resources.as_file(resources.files("fogline.demo") / f"{name}.ins")
        loaded = load_query(Path(stack.enter_context(file)), settings)
        screen = choose_screen(lower(optimise(loaded.plan)[0]), as_json, None, live=True)

        def feed(broker: str) -> None:
            stack.callback(_end, _devices(name, rate, broker))

        run_live(loaded, screen, settings, seconds=seconds, on_ready=feed)


def run_traffic(
    seconds: float | None, rate: int, cloud: bool, compare: bool, as_json: bool
) -> None:
    """Road traffic over four sites: the fog variant, the cloud variant, or one after the other."""
    from fogline.demo import traffic_result as result
    from fogline.demo.traffic import run_variant

    variants = (result.FOG, result.CLOUD) if compare else (result.CLOUD if cloud else result.FOG,)
    cache = result.cache_folder()
    for variant in variants:
        measured, early = run_variant(variant, _lasting(seconds), rate, as_json)
        if not measured.complete:
            click.echo("not all records that were sent have arrived", err=True)
        output = result.compare_runs(measured, cache)
        if not early:
            result.keep(measured, cache)
        click.echo(json.dumps(output))
        if early:
            break


def _lasting(seconds: float | None) -> float | None:
    """How long it runs: as requested; by default on a terminal until Ctrl-C."""
    return _UNATTENDED_SECONDS if seconds is None and not sys.stdout.isatty() else seconds


def _devices(name: str, rate: int, broker: str) -> subprocess.Popen[bytes]:
    """`fogline simulate` as a process of its own, publishing in real time."""
    command = [
        sys.executable, "-c", "from fogline.cli.main import main; main()", "simulate", name,
        "--rate", str(rate), "--seconds", str(_FOREVER_SECONDS), "--start", "now",
        "--format", _FORMATS.get(name, "senml"), "--mqtt", f"{broker}/{name}/devices",
        "--quiet",
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
