"""One log that takes what comes to all nodes for one question, each value exactly once.

A page of a node's changes is one commit of the log. Its source is made of the id of the node's
store and its epoch is the number up to which the page goes, so the log itself knows where to go on.
Where each node began, the file `begins` beside the log's segments says: from a question's first
moment on nothing is left out, although no value may come before the next start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fogline.common.state_files import (
    StateDamaged,
    read_state,
    remove_state,
    set_aside,
    write_state,
)
from fogline.fabric.query.parameters import asks_node
from fogline.fabric.query.query_types import ChangeSource
from fogline.fabric.query.records import Descriptions, from_node, payloads
from fogline.log import LogWriter, SiteLog
from fogline.log.errors import write_failed
from fogline.model.question import Question
from fogline.storage.errors import BadValue
from fogline.storage.names import parse_all

PAGE = 20_000
_BEGINS = "begins"
_HIGHEST = 1 << 62
_NOTHING = Question(metrics=())

Describe = Callable[[], Descriptions]
"""What is known about metrics now; asked for only when there are values."""


def source_of_store(store_id: str) -> int:
    """The source under which logs keep what comes from a store: 62 bits, never 0."""
    digest = blake2b(store_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % (_HIGHEST - 1) + 1


class FeedLog:
    """For one thread, from its first step until `close` or `end`."""

    def __init__(self, logs: SiteLog, name: str, question: Question) -> None:
        self.name = name
        self.question = question
        self.shares: Mapping[str, float] = {}
        """Of nodes that send less than the question asks for. May change between two steps: values
        of a smaller fraction are among those of a larger one, so none comes twice."""
        self.values = 0
        self.places: dict[str, int] = {}
        """How far it is with each node."""
        self._logs = logs
        self._writer: LogWriter | None = None
        self._begins: dict[int, int] = {}
        self._positions: dict[int, int] = {}

    def step(self, node: str, source: ChangeSource, describe: Describe) -> bool:
        """Takes the next page of a node; whether there is more at once.

        Raises `StoreError` when the node gives none, `LogError` when the log cannot be written;
        nothing was taken then, and the next call asks for the same page.
        """
        if not asks_node(self.question, node):
            return False
        writer = self._open_writer()
        number = source_of_store(source.store_id)
        after = self._position(number, source, writer)
        page = source.changes(after, self._question_for(node), PAGE)
        if page.last < after:
            raise BadValue(f"the store of {node} sent changes up to {page.last} after {after}")
        rows = self._select_rows(page.table)
        if len(rows):
            found = payloads(from_node(rows, node), describe())
            writer.append(((self.name, payload) for payload in found), number, page.last)
            writer.commit()
            self.values += len(rows)
        self._positions[number] = self.places[node] = page.last
        return not page.end and page.last > after

    def _question_for(self, node: str) -> Question:
        share = min(self.question.share, self.shares.get(node, 1.0))
        return replace(self.question, share=share)

    def close(self) -> None:
        """It goes on from here the next time."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def end(self) -> None:
        """Nobody asks any more: should somebody ask again, it begins with what comes then."""
        self.close()
        forget(self._logs, self.name)

    def _open_writer(self) -> LogWriter:
        if self._writer is None:
            self._writer = self._logs.writer(self.name)
            self._begins = _load(self._logs.folder(self.name) / _BEGINS)
        return self._writer

    def _position(self, number: int, source: ChangeSource, writer: LogWriter) -> int:
        """Where to go on with a store; one that was not seen before begins now, for good."""
        if number not in self._positions:
            if number not in self._begins:
                begins = {**self._begins, number: source.changes(-1, _NOTHING, 1).last}
                _store(self._logs.folder(self.name), begins)
                self._begins = begins
            self._positions[number] = max(self._begins[number], writer.last_epoch(number))
        return self._positions[number]

    def _select_rows(self, table: pa.Table) -> pa.Table:
        patterns = parse_all(self.question.entities)
        if patterns is None or not len(table):
            return table
        column = table["entity"].cast(pa.string())
        there = [e for e in pc.unique(column).to_pylist() if patterns.matches(e)]
        return table.filter(pc.is_in(column, pa.array(there, pa.string())))


def forget(logs: SiteLog, name: str) -> None:
    """The log of this name has no beginning any more."""
    remove_state(logs.folder(name) / _BEGINS)


def _load(path: Path) -> dict[int, int]:
    """Nothing for a file that is missing, or damaged and set aside: it is made anew."""
    try:
        found = json.loads(read_state(path))
        return {int(source): int(place) for source, place in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError, StateDamaged):
        set_aside(path)
        return {}


def _store(folder: Path, begins: dict[int, int]) -> None:
    try:
        write_state(folder / _BEGINS, json.dumps(begins), copy=True)
    except OSError as error:
        raise write_failed(folder, error) from error
