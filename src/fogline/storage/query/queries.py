"""Questions to the history: ranges with pages, and aggregates over buckets of time.

Each question sees one state of the history. Pages are ordered by time and arrival, so a value that
is there all the while comes exactly once, whatever is flushed, merged or added meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from fogline.storage.errors import BadQuery, QueryLimit
from fogline.storage.files.history import HistoryFiles, View
from fogline.storage.limits import StoreLimits
from fogline.storage.query import duckdb_engine
from fogline.storage.query.connection_pool import ConnectionPool
from fogline.storage.query.cursor import PageCursor, decode
from fogline.storage.query.selection import Selection
from fogline.storage.values import (
    BATCH,
    FIRST_TIME,
    SCHEMA,
    Value,
    micros,
    to_values,
)

DEFAULT_ROWS = 10_000

# What an aggregate is called, and how DuckDB computes it. NaN is greater than every number.
AGGREGATES = {
    "count": "count(value)",
    "sum": "sum(value)",
    "avg": "avg(value)",
    "min": "min(value)",
    "max": "max(value)",
    "first": "arg_min(value, {'time': time, 'seq': seq})",
    "last": "arg_max(value, {'time': time, 'seq': seq})",
}
_COLUMNS = ", ".join(SCHEMA.names)
_PLAIN = pa.schema(
    [pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in SCHEMA]
)


@dataclass(frozen=True, slots=True)
class Page:
    """Part of an answer; `cursor` asks for the next part, nothing means there is none."""

    table: pa.Table
    cursor: str | None

    def values(self) -> list[Value]:
        return to_values(self.table)


class Queries:
    """Answers for one history; for any thread, from construction until `close`."""

    def __init__(self, history: HistoryFiles, limits: StoreLimits) -> None:
        self._history = history
        self._limits = limits.query
        self._connections = ConnectionPool(limits)

    def close(self) -> None:
        self._connections.close()

    def range(
        self,
        selection: Selection,
        limit: int = DEFAULT_ROWS,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        """Values in the order of time. Raises `BadQuery` and `QueryLimit`."""
        self._check_rows(limit)
        after = decode(cursor, selection, descending) if cursor is not None else None
        table = self._rows(selection, limit + 1, after, descending)
        page = table.slice(0, limit)
        more = _last(page).encode(selection, descending) if len(table) > limit else None
        return Page(page.select(BATCH.names), more)

    def rows(
        self,
        selection: Selection,
        limit: int = DEFAULT_ROWS,
        after: tuple[int, int] | None = None,
        descending: bool = False,
    ) -> pa.Table:
        """The first values behind a time and `seq`, with their `seq`. Raises as `range` does."""
        self._check_rows(limit)
        place = None if after is None else PageCursor(*after)
        return self._rows(selection, limit, place, descending)

    def aggregate(
        self, selection: Selection, bucket: int, functions: Sequence[str], descending: bool = False
    ) -> pa.Table:
        """One row per metric, entity and bucket of `bucket` microseconds that holds numbers.

        Texts are left out. `time` is where the bucket begins, but not before the year 1; buckets
        are counted from 1970.
        """
        columns = _select_aggregates(bucket, functions)
        direction = "DESC" if descending else "ASC"
        behind = f"((epoch_us(time) % {bucket}) + {bucket}) % {bucket}"
        micro = f"greatest(epoch_us(time) - {behind}, {FIRST_TIME})"
        text = (
            f"SELECT metric, entity, make_timestamp({micro}) AS time, {columns} FROM values "
            "WHERE text IS NULL GROUP BY ALL "
            f"ORDER BY time {direction}, metric, entity LIMIT {self._limits.rows + 1}"
        )
        table = self._ask(selection, text, [])
        if len(table) > self._limits.rows:
            raise QueryLimit(f"the answer has more than {self._limits.rows} rows", "ask for less")
        return table

    def changes(
        self, files: Sequence[str], numbers: tuple[int, int], selection: Selection, limit: int
    ) -> pa.Table:
        """The first `limit` values of these files whose `seq` is in between, by `seq`."""
        self._check_rows(limit - 1)
        where, values = selection.where()
        text = (
            f"SELECT {_COLUMNS} FROM read_parquet(?) "
            f"WHERE seq > ? AND seq < ? AND {where} ORDER BY seq LIMIT {limit}"
        )
        return self.run(text, [list(files), *numbers, *values])

    def run(self, text: str, values: list[object]) -> pa.Table:
        """The answer to a statement of ours. Raises `QueryLimit`."""
        with (
            self._connections.one() as connection,
            duckdb_engine.limit_time(connection, self._limits),
        ):
            return connection.execute(text, values).to_arrow_table()

    def _check_rows(self, limit: int) -> None:
        if not 0 < limit <= self._limits.rows:
            raise BadQuery(f"a page has 1 to {self._limits.rows} values, not {limit}")

    def _rows(
        self, selection: Selection, limit: int, after: PageCursor | None, descending: bool
    ) -> pa.Table:
        direction = "DESC" if descending else "ASC"
        tail = f"ORDER BY time {direction}, seq {direction} LIMIT {limit}"
        extra, values = _behind(after, descending)
        return self._ask(selection, f"SELECT {_COLUMNS} FROM values {extra} {tail}", values)

    def _ask(self, selection: Selection, text: str, values: list[object]) -> pa.Table:
        with (
            self._connections.one() as connection,
            self._history.view() as view,
            duckdb_engine.limit_time(connection, self._limits),
        ):
            source, parameters = _source(connection, view, selection)
            query = f"WITH values AS ({source}) {text}"
            return connection.execute(query, [*parameters, *values]).to_arrow_table()


def _source(
    connection: duckdb.DuckDBPyConnection, view: View, selection: Selection
) -> tuple[str, list[object]]:
    """Everything selected, from files and from memory."""
    where, values = selection.where()
    parts, parameters = [], []
    paths = [] if selection.is_empty else view.paths(selection.start, selection.end)
    if paths:
        parts.append(f"SELECT {_COLUMNS} FROM read_parquet(?) WHERE {where}")
        parameters += [paths, *values]
    if not selection.is_empty and len(view.recent):
        connection.register("recent", view.recent)
        parts.append(f"SELECT {_COLUMNS} FROM recent WHERE {where}")
        parameters += values
    if not parts:
        connection.register("nothing", _PLAIN.empty_table())
        parts.append(f"SELECT {_COLUMNS} FROM nothing")
    return " UNION ALL ".join(parts), parameters


def _behind(after: PageCursor | None, descending: bool) -> tuple[str, list[object]]:
    if after is None:
        return "", []
    sign = "<" if descending else ">"
    text = (
        f"WHERE time {sign}= make_timestamp(?) AND (time {sign} make_timestamp(?) OR seq {sign} ?)"
    )
    return text, [after.time, after.time, after.seq]


def _last(page: pa.Table) -> PageCursor:
    row = page.slice(len(page) - 1)
    return PageCursor(int(micros(row["time"])[0]), row["seq"][0].as_py())


def _select_aggregates(bucket: int, functions: Sequence[str]) -> str:
    if isinstance(bucket, bool) or not isinstance(bucket, int) or not 0 < bucket < 1 << 60:
        raise BadQuery(f"a bucket has a positive number of microseconds, not {bucket!r}"[:200])
    unknown = sorted(set(functions) - set(AGGREGATES))
    if unknown or not functions:
        hint = f"there are {', '.join(AGGREGATES)}"
        raise BadQuery(f"unknown aggregate: {', '.join(unknown)[:100] or 'none given'}", hint)
    names = dict.fromkeys(functions)
    return ", ".join(f'{AGGREGATES[name]} AS "{name}"' for name in names)
