"""DuckDB, embedded: connections with limits, and its errors as errors of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from fogline.storage.errors import BadQuery, QueryLimit, StoreError
from fogline.storage.limits import QueryLimits


def connect(threads: int, memory_bytes: int) -> duckdb.DuckDBPyConnection:
    """A database in memory that loads no extensions and writes no temporary files."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads,
        "memory_limit": f"{max(memory_bytes >> 20, 1)}MiB",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "temp_directory": "",
    }
    return duckdb.connect(":memory:", config=config)


@contextmanager
def limit_time(connection: duckdb.DuckDBPyConnection, limits: QueryLimits) -> Iterator[None]:
    """Interrupts what runs in the block when its time is over. Raises errors of the store."""
    over = threading.Event()

    def stop() -> None:
        over.set()
        connection.interrupt()

    timer = threading.Timer(limits.seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.Error as error:
        raise _translate_error(error, over.is_set(), limits) from error
    finally:
        timer.cancel()
        timer.join()


def _translate_error(error: duckdb.Error, over: bool, limits: QueryLimits) -> StoreError:
    first = str(error).splitlines()[0]
    if over or isinstance(error, duckdb.InterruptException):
        return QueryLimit(f"the query takes longer than {limits.seconds:g} s", "ask for less")
    if isinstance(error, duckdb.OutOfMemoryException):
        size = limits.memory_bytes >> 20
        return QueryLimit(f"the query takes more than {size} MiB of memory", "ask for less")
    return BadQuery(f"the query cannot be run: {first}")
