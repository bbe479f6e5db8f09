"""Commands for stored values: queries over all sites, and access tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fogline.cli.options import Examples, as_json

Command = TypeVar("Command", bound=Callable[..., Any])

_file = click.Path(dir_okay=False, path_type=Path)
_metrics = click.argument("metrics", nargs=-1, metavar="[METRIC…]")
_entity = click.option(
    "--entity", "entities", multiple=True, metavar="E", help="Only these entities; E% is a prefix."
)
_node = click.option(
    "--node", "nodes", multiple=True, metavar="N", help="Only values of these sites."
)
_here = click.option("--here", is_flag=True, help="Only values of the site that is asked.")
_stale = click.option(
    "--stale",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Allow a nearer copy that is at most this far behind.",
)
_from = click.option(
    "--from", "start", metavar="TIME", help="Start: ISO 8601, or relative to now: -15m."
)
_to = click.option("--to", "end", metavar="TIME", help="End, exclusive.")
_limit = click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True)
_newest = click.option("--newest", is_flag=True, help="Newest first.")
_arrow = click.option("--arrow", type=_file, metavar="FILE", help="Write an Arrow file instead.")


def _where(command: Command) -> Command:
    """Options for the site to ask."""
    for option in (
        click.option("--site", metavar="NAME", help="The site on this machine, if several run."),
        click.option("--url", metavar="URL", help="Store of any site: http://host:port."),
        click.option(
            "--token-file", type=_file, help="File with a token [default: FOGLINE_TOKEN]."
        ),
    ):
        command = option(command)
    return command


class _Questions(click.Group):
    """A name that is not a command is a metric to query."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.get_command(ctx, args[0]) is not None
        return super().resolve_command(ctx, args if known else ["range", *args])


@click.group(cls=_Questions)
def query() -> None:
    """Query the stored values of all sites: latest values, history, aggregates, spaces, SQL.

    A metric or insight in place of a command queries its range. Without --url the site on this
    machine answers for all sites, and lists those that cannot be reached. Names may be prefixes:
    cpu_%.

    \b
    Example:
      fogline query temperature --from -15m
      fogline query latest
      fogline query range temp% --from -15m --limit 50
      fogline query aggregate temperature --bucket 1m --function avg --from -1h
    """


@query.command(cls=Examples, example="fogline query latest temperature --entity room-7")
@_metrics
@_entity
@_node
@_here
@_stale
@_where
@as_json
def latest(**options: Any) -> None:
    """Show the latest value of each metric and entity."""
    from fogline.cli.site import query

    query.latest(query.QueryRequest(**options))


@query.command(
    "range", cls=Examples, example="fogline query range temperature --from -15m --limit 50"
)
@_metrics
@_entity
@_node
@_from
@_to
@_limit
@_newest
@_arrow
@_here
@_stale
@_where
@as_json
def range_(
    start: str | None,
    end: str | None,
    limit: int,
    newest: bool,
    arrow: Path | None,
    **options: Any,
) -> None:
    """Show all values of a time range, in order."""
    from fogline.cli.site import query

    query.values(query.QueryRequest(**options), (start, end), limit, newest, arrow)


@query.command(
    cls=Examples,
    example="fogline query aggregate temperature --bucket 5m --function avg --from -1h",
)
@_metrics
@_entity
@_node
@_from
@_to
@click.option("--bucket", required=True, metavar="TIME", help="Length of a bucket: 30s, 5m, 1h.")
@click.option(
    "--function",
    "functions",
    multiple=True,
    type=click.Choice(["count", "sum", "avg", "min", "max", "first", "last"]),
    help="May be repeated [default: all].",
)
@_here
@_stale
@_where
@as_json
def aggregate(
    start: str | None, end: str | None, bucket: str, functions: tuple[str, ...], **options: Any
) -> None:
    """Aggregate values over time buckets."""
    from fogline.cli.site import query

    query.aggregate(query.QueryRequest(**options), (start, end), bucket, functions)


@query.command(cls=Examples, example="fogline query metrics cpu_")
@click.argument("prefix", default="")
@_where
@as_json
def metrics(prefix: str, **options: Any) -> None:
    """List metrics with their entities, sites and metadata."""
    from fogline.cli.site import query

    query.metrics(query.QueryRequest(**options), prefix)


@query.command(cls=Examples, example="fogline query nodes")
@_where
@as_json
def nodes(**options: Any) -> None:
    """List all sites with a store, their latency, and the copies they hold."""
    from fogline.cli.site import query

    query.nodes(query.QueryRequest(**options))


@query.command(
    cls=Examples,
    example="fogline query sql 'SELECT metric, count(*) FROM history GROUP BY metric'",
)
@click.argument("statement")
@click.option(
    "--everywhere", "scope", flag_value="all", help="Run once over the values of all sites."
)
@click.option("--each", "scope", flag_value="each", help="Run at every site, over its own values.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="M",
    help="With --everywhere: fetch only these metrics; M% is a prefix.",
)
@_from
@_to
@_where
@as_json
def sql(
    statement: str, scope: str | None, start: str | None, end: str | None, **options: Any
) -> None:
    """Run one SELECT over history, latest and metadata of a site, or of all."""
    from fogline.cli.site import query

    query.sql(query.QueryRequest(**options), statement, scope or "node", (start, end))


@query.command(cls=Examples, example="fogline query spaces")
@_here
@_where
@as_json
def spaces(**options: Any) -> None:
    """List the spaces of applications, their columns, and their sites."""
    from fogline.cli.site import query

    query.spaces(query.QueryRequest(**options))


@query.command(cls=Examples, example="fogline query space orders --key a-17 --from -1h")
@click.argument("name")
@click.option(
    "--key",
    multiple=True,
    metavar="K",
    help="Only rows of this key; one option for each of its columns.",
)
@_from
@_to
@_limit
@_newest
@_arrow
@_here
@_where
@as_json
def space(
    name: str,
    key: tuple[str, ...],
    start: str | None,
    end: str | None,
    limit: int,
    newest: bool,
    arrow: Path | None,
    **options: Any,
) -> None:
    """Show the rows of a space from all sites that have it, ordered by time."""
    from fogline.cli.site import query

    query.space(query.QueryRequest(**options), name, key, (start, end), limit, newest, arrow)


@query.command(cls=Examples, example="fogline query put door 1 --entity room-7")
@click.argument("metric")
@click.argument("value")
@click.option("--entity", default="", metavar="E", help="Entity of the value [default: the site].")
@click.option("--time", metavar="TIME", help="ISO 8601 [default: now].")
@_where
@as_json
def put(metric: str, value: str, entity: str, time: str | None, **options: Any) -> None:
    """Store one value at the site that is asked."""
    from fogline.cli.site import query

    query.put(query.QueryRequest(**options), metric, value, entity, time)


@click.group()
def tokens() -> None:
    """Manage the tokens for the store of a site on this machine.

    \b
    Example:
      fogline tokens add dashboard --right read:values --right read:metadata
    """


_of = click.option("--site", metavar="NAME", help="The site on this machine, if several run.")


@tokens.command("add", cls=Examples, example="fogline tokens add plant --right write:space:orders")
@click.argument("name")
@click.option(
    "--right",
    "rights",
    multiple=True,
    required=True,
    metavar="read|write:WHAT|key:ID",
    help="WHAT is values, metadata, sql, space:NAME or *; ID is that of a SIGNATURE; may be"
    " repeated.",
)
@_of
def add_token(name: str, rights: tuple[str, ...], site: str | None) -> None:
    """Create a token; it is shown once and stored only as a hash."""
    from fogline.cli.site import query

    query.add_token(name, rights, site)


@tokens.command("list", cls=Examples, example="fogline tokens list")
@_of
@as_json
def list_tokens(site: str | None, as_json: bool) -> None:
    """Show names and rights."""
    from fogline.cli.site import query

    query.list_tokens(site, as_json)


@tokens.command("remove", cls=Examples, example="fogline tokens remove dashboard")
@click.argument("name")
@_of
def remove_token(name: str, site: str | None) -> None:
    """Revoke a token, effective at once."""
    from fogline.cli.site import query

    query.remove_token(name, site)


COMMANDS = (query, tokens)
