"""A small SQLite database for what is not a value: metadata and application data."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fogline.common.sealed_files import closed, open_seal, remedy, seal
from fogline.storage.errors import StoreDamaged, StoreError, StoreFull

DatabaseRow = tuple[Any, ...]


class Database:
    """On disk, or in memory where no path is given. For any thread, one statement at a time.

    Each call is one transaction: when it returns, what it wrote survives a power failure. Raises
    `StoreError`, and `StoreFull` where space is missing; a failed call changes nothing.
    """

    def __init__(self, path: Path | None) -> None:
        """Raises `StoreDamaged` for a file that is not what was written."""
        self._guard = threading.Lock()
        self._path = path
        if path is not None and (wrong := open_seal(path)):
            raise _damage_error(path, wrong)
        try:
            self._connection = sqlite3.connect(
                str(path) if path else ":memory:", check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            ((found,),) = self._connection.execute("PRAGMA quick_check(1)").fetchall()
        except sqlite3.OperationalError as error:
            raise _translate_error(error) from error
        except sqlite3.DatabaseError as error:
            raise _damage_error(path, str(error)) from error
        if found != "ok":
            raise _damage_error(path, str(found))

    def ask(self, query: str, values: Sequence[Any] = ()) -> list[DatabaseRow]:
        with self._guard:
            try:
                return self._connection.execute(query, values).fetchall()
            except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
                raise _translate_error(error) from error

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Returns how many rows it changed."""
        with self._guard:
            try:
                return self._connection.execute(statement, values).rowcount
            except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
                raise _translate_error(error) from error

    def run_all(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """All rows or none."""
        with self._guard:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(statement, rows)
                self._connection.execute("COMMIT")
            except BaseException as error:
                self._connection.rollback()
                if isinstance(error, sqlite3.Error | UnicodeEncodeError | OverflowError):
                    raise _translate_error(error) from error
                raise

    @property
    def bytes(self) -> int:
        """What is in use, free pages left out."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (self.ask(f"PRAGMA {name}")[0][0] for name in names)
        return int((pages - free) * size)

    def close(self) -> None:
        with self._guard:
            self._connection.close()
        if self._path is not None and closed(self._path):
            seal(self._path)


def _damage_error(path: Path | None, reason: str) -> StoreDamaged:
    path = path or Path(":memory:")
    return StoreDamaged(path, reason, remedy(path))


def _translate_error(error: Exception) -> StoreError:
    if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
        return StoreFull("no space left for the store's database")
    return StoreError(f"the store's database cannot do that: {error}")
