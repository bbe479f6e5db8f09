"""Commands for damage in the logs of a site."""

from __future__ import annotations

import click

from fogline.cli.options import Examples, as_json

_of = click.option("--site", metavar="NAME", help="The site on this machine, if there are several.")


@click.group()
def log() -> None:
    """Show and acknowledge damage in the logs of a site on this machine.

    \b
    Example:
      fogline log damage
    """


@log.command("damage", cls=Examples, example="fogline log damage")
@_of
@as_json
def damage(site: str | None, as_json: bool) -> None:
    """Show damage that is not acknowledged yet: where it is, and how many records are lost."""
    from fogline.cli.site import log

    log.show(site, as_json)


@log.command("acknowledge", cls=Examples, example="fogline log acknowledge rooms/+")
@click.argument("name", required=False, metavar="[LOG]")
@_of
@as_json
def acknowledge(name: str | None, site: str | None, as_json: bool) -> None:
    """Acknowledge damage in one log or in all; the site then counts as healthy again."""
    from fogline.cli.site import log

    log.acknowledge(name, site, as_json)


COMMANDS = (log,)
