"""The store of a site and the storage fabric measured: as a library, at a node, at three nodes.

python bench/store.py [library] [node] [fabric]
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))

import store_fabric
import store_library
import store_page
import store_rest
from machine import describe

from fogline.common.errors import FoglineError

PARTS = {
    "library": store_library.measure,
    "node": store_rest.measure,
    "fabric": store_fabric.measure,
}
_FEWEST = 10_000
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
console = Console(stderr=True, highlight=False)


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
@click.option(
    "--values",
    type=click.IntRange(min=_FEWEST),
    default=1_000_000,
    show_default=True,
    help="Values that are taken in, at every node.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for store.json.")
@click.option("--write-docs", is_flag=True, help="Write docs/benchmarks-store.md anew.")
@click.option("--docs-from", type=_FILE, help="Measure nothing: write the docs from a store.json.")
def main(
    parts: tuple[str, ...], values: int, out: Path | None, write_docs: bool, docs_from: Path | None
) -> None:
    """Measures what is named, or all, and prints it."""
    if docs_from:
        store_page.write(json.loads(docs_from.read_text(encoding="utf-8")))
        return
    found: dict[str, Any] = {
        "machine": describe(False),
        "load_at_start": round(os.getloadavg()[0], 2),
        "values": values,
    }
    for part in parts or PARTS:
        begun = time.monotonic()
        try:
            found[part] = PARTS[part](values)
        except FoglineError as error:
            raise click.ClickException(f"{part}: {error}") from error
        console.print(f"{part}: {time.monotonic() - begun:.0f} s")
    click.echo(store_page.text(found))
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "store.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if write_docs:
        store_page.write(found)


if __name__ == "__main__":
    main()
