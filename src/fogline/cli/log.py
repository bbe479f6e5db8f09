"""Commands for the logs of a site: what is damaged in them."""

from __future__ import annotations

import click

from fogline.cli.options import Examples, as_json

_of = click.option("--site", metavar="NAME", help="A site of this machine, if several run.")


@click.group()
def log() -> None:
    """The logs of a site of this machine: what is damaged in them.

    \b
    Example:
      fogline log damage
    """


@log.command("damage", cls=Examples, example="fogline log damage")
@_of
@as_json
def damage(site: str | None, as_json: bool) -> None:
    """Show what is damaged and not acknowledged yet: where, and how many records it cost."""
    from fogline.cli.site import log

    log.show(site, as_json)


@log.command("acknowledge", cls=Examples, example="fogline log acknowledge rooms/+")
@click.argument("name", required=False, metavar="[LOG]")
@_of
@as_json
def acknowledge(name: str | None, site: str | None, as_json: bool) -> None:
    """Say that you know of the damage, in one log or in all: the site counts as healthy again."""
    from fogline.cli.site import log

    log.acknowledge(name, site, as_json)


COMMANDS = (log,)
