"""The command `fogline`: parses arguments, calls the code of the command, reports the outcome.

Exit codes: 0 success, 1 failure, 2 wrong usage. Errors go to standard error.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import click

from fogline import __version__
from fogline.cli.log import COMMANDS as LOG_COMMANDS
from fogline.cli.options import Examples, as_json
from fogline.cli.pipelines import COMMANDS
from fogline.cli.store import COMMANDS as STORE_COMMANDS
from fogline.common import settings
from fogline.common.errors import FoglineError, ProblemsError, UsageError


class Commands(click.Group):
    """A group that imports expensive commands only when they are used."""

    lazy: ClassVar[dict[str, str]] = {"simulate": "fogline.cli.simulate"}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.lazy])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(importlib.import_module(self.lazy[cmd_name]), cmd_name)
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fogline")
def cli() -> None:
    """Declare IoT stream analytics once, run it anywhere between edge and cloud.

    \b
    Example:
      fogline simulate city --rate 1000 --seconds 60 --out city.senml
      fogline run examples/city/city.ins --input city.senml
    """


query_file = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.ins"
)


@cli.command(cls=Examples, example="fogline check examples/city/city.ins")
@query_file
@as_json
def check(file: Path, as_json: bool) -> None:
    """Parse and type-check a query file without running it."""
    from fogline.cli.check import check_file

    check_file(file, as_json, settings.load())


@cli.command(cls=Examples, example="fogline explain examples/city/city.ins")
@query_file
@as_json
@click.option("--spark/--no-spark", default=True, help="Show Spark's physical plan too.")
def explain(file: Path, as_json: bool, spark: bool) -> None:
    """Show the plan before and after each rule, and Spark's physical plan."""
    from fogline.cli.explain import explain_file

    explain_file(file, as_json, spark, settings.load())


@cli.command(cls=Examples, example="fogline run examples/city/city.ins --input city.senml --json")
@query_file
@click.option(
    "--input",
    "source",
    metavar="FILE|-",
    help="Replay this file (or standard input) in place of every stream's source.",
)
@click.option(
    "--format",
    "form",
    metavar="F",
    help="Format of the input: senml, json, ndjson, csv, xml, cbor.",
)
@click.option(
    "--speed",
    default="max",
    show_default=True,
    metavar="X|max",
    help="Replay at X times real time, or as fast as possible.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="Stop after this many seconds."
)
@click.option(
    "--batch", is_flag=True, help="Process the whole input as one batch, not as a stream."
)
@click.option(
    "--rejects",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for bad and late records, with one folder per run "
    "[default: FILE.rejects beside the query].",
)
@click.option(
    "--mqtt-port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="P",
    help="Port of the embedded broker [default: a free port, which is printed].",
)
@click.option(
    "--from",
    "since",
    metavar="T",
    help="Run over stored data since this time, as a batch: 2026-01-02T03:04:05Z, or -1h.",
)
@click.option("--to", "until", metavar="T", help="End of the time range for --from [default: now].")
@click.option(
    "--site", metavar="NAME", help="--from: the site on this machine, if there are several."
)
@click.option("--url", help="--from: the store of a site elsewhere, http://host:port.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="--from: a file with the token for --url.",
)
@click.option(
    "--require-all", is_flag=True, help="--from: fail if a node of the fabric is unreachable."
)
@click.option("--max-bytes", type=click.IntRange(min=1), hidden=True)
@as_json
def run(file: Path, as_json: bool, **options: Any) -> None:
    """Run a query file on one embedded site and show its insights.

    Without --input it starts a broker, ingest and Spark, and prints the address for devices. With
    --input it replays a file in place of every stream; windows close at the end of the file. With
    --from it computes the insights of a time range in the past, from the storage fabric, the logs
    of the site on this machine, and files.
    """
    from fogline.cli.run.options import RunOptions
    from fogline.cli.run.replay import run_file

    run_file(file, RunOptions(as_json=as_json, **options), settings.load())


@cli.command(cls=Examples, example="fogline agent --config site.yaml")
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Configuration of the site, YAML: see docs/site.md.",
)
def agent(config: Path) -> None:
    """Run one site: broker, ingest, Spark jobs and publishing, until SIGTERM or Ctrl-C."""
    from fogline.cli.agent import run_agent

    run_agent(config)


@cli.command(cls=Examples, example="fogline fsck north")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@as_json
def fsck(folder: Path, as_json: bool) -> None:
    """Check the files of a stopped site, gateway or coordinator.

    FOLDER is its data folder; that of a site is beside its configuration and has its name. All
    checksums are compared, nothing is changed. For each problem it prints the file, what is wrong,
    what is lost and what to do. Exit code 0: no problem, 1: problems, 2: not such a folder.
    """
    from fogline.cli.fsck import check_files

    sys.exit(check_files(folder, as_json))


@cli.command(cls=Examples, example="fogline demo city --seconds 60")
@click.argument("name", default="city", type=click.Choice(["city", "taxi", "grid", "traffic"]))
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop after this many seconds [default: 90; on a terminal until Ctrl-C].",
)
@click.option(
    "--rate",
    default=1000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Simulated records per second, all devices together.",
)
@click.option("--cloud", is_flag=True, help="traffic: all jobs at the cloud site, not at the edge.")
@click.option("--compare", is_flag=True, help="traffic: the fog variant, then the cloud variant.")
@as_json
def demo(
    name: str, seconds: float | None, rate: int, cloud: bool, compare: bool, as_json: bool
) -> None:
    """Run a demo over simulated devices, and show its insights live.

    traffic runs four sites and a coordinator on this machine, and counts the records of each of its
    17 jobs; its last line is JSON.
    """
    from fogline.cli.demo import TRAFFIC, run_demo, run_traffic

    if name == TRAFFIC:
        run_traffic(seconds, rate, cloud, compare, as_json)
    elif cloud or compare:
        raise UsageError("--cloud and --compare are for fogline demo traffic")
    else:
        run_demo(name, seconds, rate, as_json, settings.load())


for command in (*COMMANDS, *LOG_COMMANDS, *STORE_COMMANDS):
    cli.add_command(command)


def main() -> None:
    """The entry point: every error becomes one line and an exit code."""
    logging.getLogger().addHandler(logging.NullHandler())  # what libraries log is raised as well
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except FoglineError as error:
        code = _print_error(error)
    sys.stdout.flush()
    sys.exit(code or 0)


def _print_error(error: FoglineError) -> int:
    if isinstance(error, ProblemsError):
        machine = "--json" in sys.argv
        text = json.dumps([p.as_json() for p in error.problems]) if machine else str(error)
        click.echo(text, err=True)
        return 1
    click.echo(f"fogline: {error}", err=True)
    return 2 if isinstance(error, UsageError) else 1
