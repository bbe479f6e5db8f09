"""Commands for many sites: the coordinator, gateways, pipelines and their jobs."""

from __future__ import annotations

from pathlib import Path

import click

from fogline.cli.options import ExampleGroup, Examples, as_json
from fogline.common.fabric_secret import ACCEPT_SECONDS, LONGEST_ACCEPT_SECONDS

_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_pipeline_file = click.argument("file", type=_file, metavar="FILE(.ins|.yaml|.json)")
_name = click.option("--name", help="Name of the pipeline [default: the name of the file].")


@click.command(cls=Examples, example="fogline coordinator --config coordinator.yaml")
@click.option(
    "--config", type=_file, metavar="FILE", help="Configuration, YAML [default: all defaults]."
)
def coordinator(config: Path | None) -> None:
    """Run the coordinator: REST, the control broker, and the loop that reconciles the state."""
    from fogline.coordinator.run import run_coordinator

    run_coordinator(config)


@click.command(cls=Examples, example="fogline gateway --config gateway.yaml")
@click.option(
    "--config",
    required=True,
    type=_file,
    metavar="FILE",
    help="Configuration, YAML: see docs/gateway.md.",
)
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
    help="Wait at most this long until all jobs run [default: do not wait].",
)
@as_json
def deploy(file: Path, name: str | None, wait: float, as_json: bool) -> None:
    """Deploy a pipeline: a query over sites, a composition, or a deployment plan.

    If the pipeline exists, only what differs is changed. Code and query files that FILE names are
    uploaded too.
    """
    from fogline.cli.coordinator import pipelines

    pipelines.deploy(file, name, wait, as_json)


@click.command(cls=Examples, example="fogline diff examples/traffic/fog.yaml")
@_pipeline_file
@_name
@as_json
def diff(file: Path, name: str | None, as_json: bool) -> None:
    """Show what deploying a file would change, without changing anything."""
    from fogline.cli.coordinator import pipelines

    pipelines.diff(file, name, as_json)


@click.command(cls=Examples, example="fogline status traffic")
@click.argument("name", required=False)
@as_json
def status(name: str | None, as_json: bool) -> None:
    """Show all pipelines, or one with its jobs."""
    from fogline.cli.coordinator import pipelines

    pipelines.status(name, as_json)


@click.command(cls=Examples, example="fogline jobs --json")
@click.argument("name", required=False)
@as_json
def jobs(name: str | None, as_json: bool) -> None:
    """Show jobs with the status that their sites report."""
    from fogline.cli.coordinator import pipelines

    pipelines.jobs(name, as_json)


@click.command(cls=Examples, example="fogline sites")
@click.option("--forget", metavar="NAME", help="Forget a node that will not come back.")
@as_json
def sites(forget: str | None, as_json: bool) -> None:
    """Show sites and gateways, their health, and the links between them."""
    from fogline.cli.coordinator import pipelines

    if forget is not None:
        pipelines.forget(forget, as_json)
    else:
        pipelines.sites(as_json)


@click.group(cls=ExampleGroup, example="fogline replicas", invoke_without_command=True)
@as_json
@click.pass_context
def replicas(context: click.Context, as_json: bool) -> None:
    """Show which sites keep copies of other sites' values, why, and how far behind they are."""
    from fogline.cli.coordinator import replicas

    if context.invoked_subcommand is None:
        replicas.show(as_json)


@replicas.command(cls=Examples, example="fogline replicas add north cloud --metric cpu_%")
@click.argument("origin")
@click.argument("holder")
@click.option("--metric", multiple=True, help="Only this metric; a % at its end makes it a prefix.")
@as_json
def add(origin: str, holder: str, metric: tuple[str, ...], as_json: bool) -> None:
    """Let HOLDER keep a copy of the values of ORIGIN, old ones included."""
    from fogline.cli.coordinator import replicas

    replicas.add(origin, holder, metric, as_json)


@replicas.command(cls=Examples, example="fogline replicas remove north cloud")
@click.argument("origin")
@click.argument("holder")
@as_json
def remove(origin: str, holder: str, as_json: bool) -> None:
    """Remove a copy; it is not made again until you add it."""
    from fogline.cli.coordinator import replicas

    replicas.remove(origin, holder, as_json)


@click.group(cls=ExampleGroup, example="fogline fabric", invoke_without_command=True)
@as_json
@click.pass_context
def fabric(context: click.Context, as_json: bool) -> None:
    """Show which sites have the secret by which the sites of a coordinator trust each other."""
    from fogline.cli.coordinator import fabric

    if context.invoked_subcommand is None:
        fabric.show(as_json)


@fabric.command("rotate-secret", cls=Examples, example="fogline fabric rotate-secret")
@click.option(
    "--accept-old",
    type=click.FloatRange(0, LONGEST_ACCEPT_SECONDS),
    default=ACCEPT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long sites accept the previous secret; 0 if it has leaked.",
)
@as_json
def rotate_secret(accept_old: float, as_json: bool) -> None:
    """Create a new secret and send it to all sites; offline sites get it when they are back.

    There is no interruption: sites accept the previous secret for a while.
    """
    from fogline.cli.coordinator import fabric

    fabric.rotate_secret(accept_old, as_json)


@click.command(cls=Examples, example="fogline delete traffic")
@click.argument("name")
@as_json
def delete(name: str, as_json: bool) -> None:
    """Delete a pipeline or a job, with its state; results it has computed are still delivered."""
    from fogline.cli.coordinator import pipelines

    pipelines.delete(name, as_json)


@click.command(cls=Examples, example="fogline update 001@gate publish.rate=10")
@click.argument("name")
@click.argument("parameters", nargs=-1, metavar="NAME=VALUE…")
@as_json
def update(name: str, parameters: tuple[str, ...], as_json: bool) -> None:
    """Change parameters of a job; it keeps its state."""
    from fogline.cli.coordinator import pipelines

    pipelines.change(name, parameters, None, as_json)


@click.command(cls=Examples, example="fogline stop average")
@click.argument("name")
@as_json
def stop(name: str, as_json: bool) -> None:
    """Stop a job; it keeps its state, and records for it are kept."""
    from fogline.cli.coordinator import pipelines

    pipelines.change(name, (), False, as_json)


@click.command(cls=Examples, example="fogline start average")
@click.argument("name")
@as_json
def start(name: str, as_json: bool) -> None:
    """Start a stopped job; it resumes where it stopped."""
    from fogline.cli.coordinator import pipelines

    pipelines.change(name, (), True, as_json)


@click.command(cls=Examples, example="fogline logs average --lines 20")
@click.argument("name")
@click.option(
    "--lines", default=50, show_default=True, type=click.IntRange(1, 1000), help="Number of lines."
)
@as_json
def logs(name: str, lines: int, as_json: bool) -> None:
    """Show log lines about a job from its site."""
    from fogline.cli.coordinator import pipelines

    pipelines.logs(name, lines, as_json)


COMMANDS = (
    coordinator,
    gateway,
    deploy,
    diff,
    status,
    jobs,
    sites,
    replicas,
    fabric,
    delete,
    update,
    start,
    stop,
    logs,
)
