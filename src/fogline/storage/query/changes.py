"""Values in the order in which they came, for whoever follows a store.

Only values on disk are sent, so nobody who follows is ever ahead of the store after a crash. What
has waited for a second is written down first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from fogline.storage.catalog.metadata import Metadata
from fogline.storage.errors import BadQuery
from fogline.storage.files.history import HistoryFiles
from fogline.storage.files.manifest import DataFile
from fogline.storage.query.queries import Queries
from fogline.storage.query.selection import Selection
from fogline.storage.values import SCHEMA

WAIT_US = 1_000_000
MAX_SEQ = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Changes:
    """A page, ordered by `seq`; everything asked for up to and including `last` has been sent.

    `end` means that there was no more on disk.
    """

    table: pa.Table
    last: int
    end: bool
    signed: tuple[Metadata, ...] = ()
    """From another node: what it has signed. To be known before the values are sent on."""


class Following:
    """Answers for one history; for any thread. `clock` is that of arrivals."""

    def __init__(self, history: HistoryFiles, queries: Queries, clock: Callable[[], int]) -> None:
        self._history = history
        self._queries = queries
        self._clock = clock

    def page(self, after: int, selection: Selection, limit: int) -> Changes:
        """At most `limit` values behind a number. Raises `BadQuery`, `QueryLimit`, `StoreFull`."""
        if isinstance(after, bool) or not isinstance(after, int) or not -1 <= after <= MAX_SEQ:
            raise BadQuery("`after` must be -1 or more")
        self._write_down()
        with self._history.view() as view:
            known = view.manifest
            behind = [file for file in known.files if file.seq_last > after]
            files = sorted(behind, key=lambda file: file.seq_first)
            table = self._first(files, str(view.folder), after, selection, limit)
        if len(table) > limit:
            page = table.slice(0, limit)
            return Changes(page, page["seq"][limit - 1].as_py(), end=False)
        return Changes(table, max(after, known.next_seq - 1), end=True)

    def _first(
        self, files: list[DataFile], folder: str, after: int, selection: Selection, limit: int
    ) -> pa.Table:
        """One value more than a page, where there is one: from as few files as will do.

        Values below the lowest number of the first file left out are certain to be the next ones.
        """
        count = 1
        while files and not selection.is_empty:
            taken, rest = files[:count], files[count:]
            below = rest[0].seq_first if rest else MAX_SEQ
            paths = [f"{folder}/{file.name}" for file in taken]
            table = self._queries.changes(paths, (after, below), selection, limit + 1)
            if len(table) > limit or not rest:
                return table
            count *= 2
        return SCHEMA.empty_table()

    def _write_down(self) -> None:
        since = self._history.waiting_since
        if since is not None and abs(self._clock() - since) >= WAIT_US:
            self._history.flush()
