"""Commands for many sites: the coordinator, gateways, pipelines and their jobs."""

from __future__ import annotations

from pathlib import Path

import click

from fogline.cli_options import Examples, as_json

_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_pipeline_file = click.argument("file", type=_file, metavar="FILE(.ins|.yaml|.json)")
_name = click.option("--name", help="Name of the pipeline [default: that of the file].")


@click.command(cls=Examples, example="fogline coordinator --config coordinator.yaml")
@click.option("--config", type=_file, metavar="FILE", help="YAML; without it all defaults.")
def coordinator(config: Path | None) -> None:
    """Run the coordinator: REST, the control broker, and the loop that makes wishes come true."""
    from fogline.coordinator.run import run_coordinator

    run_coordinator(config)


@click.command(cls=Examples, example="fogline gateway --config gateway.yaml")
@click.option("--config", required=True, type=_file, metavar="FILE", help="YAML: docs/gateway.md.")
def gateway(config: Path) -> None:
    """Run a gateway near devices: light operators, a buffer on disk, no Spark."""
    from fogline.gateway.run import run_gateway

    run_gateway(config)


@click.command(cls=Examples, example="fogline deploy examples/traffic/fog.yaml")
@_pipeline_file
@_name
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="Wait until all jobs run, at most so long [default: do not wait].",
)
@as_json
def deploy(file: Path, name: str | None, wait: float, as_json: bool) -> None:
    """Make a pipeline so: a query over sites, a composition, or a deployment plan.

    A pipeline that is there already is changed, and only what differs is touched. Code and queries
    that the file names are sent along.
    """
    from fogline.commands import pipelines

    pipelines.deploy(file, name, wait, as_json)


@click.command(cls=Examples, example="fogline diff examples/traffic/fog.yaml")
@_pipeline_file
@_name
@as_json
def diff(file: Path, name: str | None, as_json: bool) -> None:
    """Show what deploying a file would change; nothing is done."""
    from fogline.commands import pipelines

    pipelines.diff(file, name, as_json)


@click.command(cls=Examples, example="fogline status traffic")
@click.argument("name", required=False)
@as_json
def status(name: str | None, as_json: bool) -> None:
    """Show all pipelines, or one with its jobs."""
    from fogline.commands import pipelines

    pipelines.status(name, as_json)


@click.command(cls=Examples, example="fogline jobs --json")
@click.argument("name", required=False)
@as_json
def jobs(name: str | None, as_json: bool) -> None:
    """Show jobs as their sites tell them."""
    from fogline.commands import pipelines

    pipelines.jobs(name, as_json)


@click.command(cls=Examples, example="fogline sites")
@as_json
def sites(as_json: bool) -> None:
    """Show sites and gateways, how they are, and the links between them."""
    from fogline.commands import pipelines

    pipelines.sites(as_json)


@click.command(cls=Examples, example="fogline delete traffic")
@click.argument("name")
@as_json
def delete(name: str, as_json: bool) -> None:
    """Delete a pipeline or a job, with its state; what it has computed is still delivered."""
    from fogline.commands import pipelines

    pipelines.delete(name, as_json)


@click.command(cls=Examples, example="fogline update average publish.rate=10")
@click.argument("name")
@click.argument("parameters", nargs=-1, metavar="NAME=VALUE…")
@as_json
def update(name: str, parameters: tuple[str, ...], as_json: bool) -> None:
    """Change parameters of a job; its computation goes on."""
    from fogline.commands import pipelines

    pipelines.change(name, parameters, None, as_json)


@click.command(cls=Examples, example="fogline stop average")
@click.argument("name")
@as_json
def stop(name: str, as_json: bool) -> None:
    """Stop a job; it keeps its state and what comes for it."""
    from fogline.commands import pipelines

    pipelines.change(name, (), False, as_json)


@click.command(cls=Examples, example="fogline start average")
@click.argument("name")
@as_json
def start(name: str, as_json: bool) -> None:
    """Start a job that was stopped; it goes on where it was."""
    from fogline.commands import pipelines

    pipelines.change(name, (), True, as_json)


@click.command(cls=Examples, example="fogline logs average --lines 20")
@click.argument("name")
@click.option(
    "--lines", default=50, show_default=True, type=click.IntRange(1, 1000), help="How many."
)
@as_json
def logs(name: str, lines: int, as_json: bool) -> None:
    """Show what the site of a job said about it."""
    from fogline.commands import pipelines

    pipelines.logs(name, lines, as_json)


COMMANDS = (
    coordinator,
    gateway,
    deploy,
    diff,
    status,
    jobs,
    sites,
    delete,
    update,
    start,
    stop,
    logs,
)
