"""Many sites measured: deploying chains of jobs, operators on gateways, the coordinator's store.

python bench/sites.py [chain] [gateways] [store]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import sites_chain  # noqa: E402
import sites_gateways  # noqa: E402
import sites_page  # noqa: E402
import sites_store  # noqa: E402

from fogline.common.errors import FoglineError  # noqa: E402

PARTS = ("chain", "gateways", "store")


def numbers(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    try:
        found = tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not like 1,10,100") from None
    if found[0] < 1:
        raise click.BadParameter("every number is at least 1")
    return found


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--jobs", callback=numbers, default="1,2,5,10,25,50,100", show_default=True)
@click.option("--changed", callback=numbers, default="1,10,50,100", show_default=True)
@click.option("--sites", default=4, show_default=True, help="Sites that a chain goes over.")
@click.option("--memory", default="1g", show_default=True, help="For Spark at each site.")
@click.option("--gateways", callback=numbers, default="50,100,150,200", show_default=True)
@click.option("--store-jobs", default=1000, show_default=True, help="Jobs of the store's pipeline.")
@click.option("--runs", default=3, show_default=True, help="How often all is done; medians count.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for sites.json.")
@click.option("--write-docs", is_flag=True, help="Write docs/benchmarks-sites.md anew.")
@click.option("--docs", type=click.Path(path_type=Path), default=sites_page.DOCS, hidden=True)
@click.option("--from", "given", type=click.Path(path_type=Path, exists=True), help="A sites.json.")
def main(parts: tuple[str, ...], out: Path | None, given: Path | None, **options: Any) -> None:
    """Measures what is named, or all; with --from, parts that are not named come from a file."""
    found = json.loads(given.read_text(encoding="utf-8")) if given else {}
    for part in parts or (() if given else PARTS):
        found[part] = _measured(part, options)
        shown = {key: value for key, value in found[part].items() if key != "rows"}
        print(part, json.dumps(shown), flush=True)
        if out:
            out.mkdir(parents=True, exist_ok=True)
            (out / "sites.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    if options["write_docs"]:
        sites_page.write(found, options["docs"])


def _measured(part: str, options: dict[str, Any]) -> dict[str, Any]:
    try:
        return _measures(options)[part]()
    except FoglineError as error:
        raise click.ClickException(f"{part}: {error}") from error


def _measures(options: dict[str, Any]) -> dict[str, Callable[[], dict[str, Any]]]:
    sites, runs = options["sites"], options["runs"]
    jobs, changed, memory = options["jobs"], options["changed"], options["memory"]
    chain = sites_chain.Settings(sites, jobs, changed, runs, memory)
    gateways = sites_gateways.Settings(options["gateways"], runs)
    store = sites_store.Settings(options["store_jobs"], sites)
    return {
        "chain": lambda: sites_chain.measure(chain),
        "gateways": lambda: sites_gateways.measure(gateways),
        "store": lambda: sites_store.measure(store),
    }


if __name__ == "__main__":
    main()
