"""Databases for questions: each question has one for itself, with all the memory it may take."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from fogline.storage.errors import QueryLimit
from fogline.storage.limits import StoreLimits
from fogline.storage.query import duckdb_engine


class ConnectionPool:
    """For any thread. `close` when nobody asks any more.

    So many questions as `limits.questions` run at the same time; what one takes is never missing to
    another. The others wait for their turn, but not longer than a question may take.
    """

    def __init__(self, limits: StoreLimits) -> None:
        self._limits = limits
        self._wait = limits.query.seconds
        self._free: queue.LifoQueue[duckdb.DuckDBPyConnection | None] = queue.LifoQueue()
        for _ in range(limits.questions):
            self._free.put(None)  # made when it is needed

    @contextmanager
    def one(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to a database that nobody else uses. Raises `QueryLimit`."""
        try:
            database = self._free.get(timeout=self._wait)
        except queue.Empty as error:
            problem = f"other queries are in the way for more than {self._wait:g} s"
            raise QueryLimit(problem, "ask again later") from error
        try:
            if database is None:
                database = self._make_connection()
            connection = database.cursor()
            try:
                yield connection
            finally:
                connection.close()
        finally:
            self._free.put(database)

    def close(self) -> None:
        while not self._free.empty():
            database = self._free.get()
            if database is not None:
                database.close()

    def _make_connection(self) -> duckdb.DuckDBPyConnection:
        made = duckdb_engine.connect(self._limits.threads, self._limits.query.memory_bytes)
        made.execute("SET parquet_metadata_cache = true")
        return made
