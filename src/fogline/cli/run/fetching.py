"""Values of the storage fabric, fetched page by page into files that a query reads."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import click
import pyarrow as pa

from fogline.common.errors import DataError, SetupError
from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.http.store_client import StoreClient
from fogline.fabric.query.parameters import parameters
from fogline.fabric.query.query_types import ANSWERED, COPY, UNREACHABLE
from fogline.fabric.query.records import Descriptions, descriptions_of, write_lines
from fogline.formats.times import time_of
from fogline.model.question import Question
from fogline.model.times import iso_micros

PAGE = 200_000
_METADATA = "SELECT metric, entity, entity_type, unit, description FROM metadata"
_RANKS = {ANSWERED: 0, COPY: 1}


@dataclass(frozen=True, slots=True)
class Fetched:
    path: Path
    values: int


class Fetcher:
    """Queries one node for all. A context manager: leaving it removes the fetched files."""

    def __init__(self, store: StoreClient, scratch: Path) -> None:
        self._store = store
        self._folder = Path(tempfile.mkdtemp(prefix="fogline-history-", dir=scratch))
        self._done: dict[tuple[Question, bool], Fetched] = {}
        self._nodes: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The state of each queried node, as the fabric reports it."""
        return [self._nodes[name] for name in sorted(self._nodes)]

    def missing(self, until: int) -> list[str]:
        """What may be missing, a line for each node that did not answer itself."""
        return [line for node in self.nodes if (line := _missing(node, until))]

    def fetch(self, question: Question, since: int, until: int, described: bool) -> Fetched:
        """The values of a time range as records, a line each; fetched once."""
        if (question, described) not in self._done:
            path = self._folder / f"{len(self._done)}.ndjson"
            known = self._descriptions() if described else {}
            count = 0
            try:
                with path.open("wb") as file:
                    for table in self._pages(question, since, until):
                        count += self._keep(table, file, known)
            except OSError as error:
                text = f"no space for the values of the fabric in {self._folder}: {error.strerror}"
                raise SetupError(text, "set FOGLINE_SCRATCH to a folder with more space") from error
            self._done[question, described] = Fetched(path, count)
        return self._done[question, described]

    def _descriptions(self) -> Descriptions:
        """Metadata is the same at every node, so one is asked."""
        table, _ = self._store.arrow("POST", "/v1/sql", [("scope", "node")], {"sql": _METADATA})
        return descriptions_of(table)

    def _keep(self, table: pa.Table, file: BinaryIO, known: Descriptions) -> int:
        write_lines(table, file, known)
        if sys.stderr.isatty():
            size = file.tell() >> 20
            click.echo(f"\r{size:,} MiB from the storage fabric", err=True, nl=False)
        return len(table)

    def _pages(self, question: Question, since: int, until: int) -> Iterator[pa.Table]:
        asked: list[tuple[str, str | int]] = [
            *parameters(question),
            ("from", iso_micros(since)),
            ("to", iso_micros(until)),
            ("scope", "all"),
            ("limit", PAGE),
        ]
        cursor: str | None = ""
        while cursor is not None:
            more = [("cursor", cursor)] if cursor else []
            table, response = self._store.arrow("GET", "/v1/range", [*asked, *more])
            self._note(response.get("nodes"))
            yield table
            cursor = _next(response, cursor)

    def _note(self, nodes: object) -> None:
        """Of the states of a node in several responses the worst counts."""
        for node in nodes if isinstance(nodes, list) else ():
            if not isinstance(node, dict) or not isinstance(node.get("node"), str):
                raise NodeUnreachable(f"{self._store.url} returned an invalid list of nodes")
            known = self._nodes.get(node["node"])
            if known is None or _rank(node) >= _rank(known):
                self._nodes[node["node"]] = node


def _next(response: dict[str, Any], before: str) -> str | None:
    found = response.get("next")
    if found is None:
        return None
    if not isinstance(found, str) or not found or found == before:
        raise DataError("the storage fabric did not return the cursor of the next page")
    return found


def _rank(node: dict[str, Any]) -> int:
    return _RANKS.get(str(node.get("state")), 2)


def _missing(node: dict[str, Any], until: int) -> str:
    state, name = str(node.get("state", UNREACHABLE)), node["node"]
    if state == ANSWERED:
        return ""
    if state != COPY:
        why = f": {node['why']}" if node.get("why") else ""
        return f"node {name} is {state}{why}; its values are missing"
    complete = time_of(node.get("until"))
    if not node.get("partial") and complete is not None and complete >= until:
        return ""
    behind = "" if complete is None else f", which knows it up to {iso_micros(complete)}"
    early = time_of(node.get("since"))
    some = ", some metrics only" if node.get("partial") else ""
    if early is not None:
        some = f", without some from before {iso_micros(early)}"
    return (
        f"node {name} is unreachable; its values come from a copy at {node.get('at')}{behind}{some}"
    )
