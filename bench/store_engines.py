"""The engines that the store is measured beside: what each is asked, and the store and SQLite.

All get the same batches. Each is durable in its own way: ours with a flush, the others with every
batch. PostgreSQL is in store_postgres.py.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from store_data import FUNCTIONS, NAMES, PREFIX

from fogline.storage.store import SiteStore
from fogline.storage.values import batch

UNDER = "metric >= 'metric_00' AND metric < 'metric_01'"
"""The same metrics as those of the prefix."""


class Engine(Protocol):
    """Something that takes values and answers; `close` comes last."""

    def ingest(self, table: pa.Table) -> None: ...
    def settle(self) -> None: ...
    def latest(self, names: list[str]) -> int: ...
    def range(self, start: int, rows: int) -> int: ...
    def aggregate(self, name: str, bucket: int) -> int: ...
    def disk_bytes(self) -> int: ...
    def close(self) -> None: ...


class OurStore:
    def __init__(self, folder: Path) -> None:
        self._store = SiteStore(folder)
        self._store.start()

    def ingest(self, table: pa.Table) -> None:
        self._store.ingest(batch(*(table[name] for name in NAMES)))

    def settle(self) -> None:
        self._store.flush()

    def latest(self, names: list[str]) -> int:
        return len(self._store.latest(names))

    def range(self, start: int, rows: int) -> int:
        return len(self._store.range(PREFIX, start=start, limit=rows).table)

    def aggregate(self, name: str, bucket: int) -> int:
        return len(self._store.aggregate(bucket, name, functions=list(FUNCTIONS)))

    def disk_bytes(self) -> int:
        return self._store.state().disk_bytes

    def close(self) -> None:
        self._store.close()


HISTORY = "CREATE TABLE history (metric TEXT, entity TEXT, time BIGINT, value DOUBLE PRECISION)"
LATEST = (
    "CREATE TABLE latest (metric TEXT, entity TEXT, time BIGINT, value DOUBLE PRECISION, "
    "PRIMARY KEY (metric, entity))"
)
INDEX = "CREATE INDEX by_name ON history (metric, entity, time)"
BY_TIME = "CREATE INDEX by_time ON history (time)"
RENEW = (
    "ON CONFLICT (metric, entity) DO UPDATE SET time = excluded.time, value = excluded.value "
    "WHERE excluded.time >= latest.time"
)
BUCKETS = "count(*), avg(value), max(value) FROM history WHERE metric = "


class Sqlite:
    """Durable with every batch, as ours is with every flush."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._base = sqlite3.connect(path)
        for text in ("PRAGMA journal_mode = WAL", HISTORY, LATEST, INDEX, BY_TIME):
            self._base.execute(text)

    def ingest(self, table: pa.Table) -> None:
        rows = list(zip(*(table[name].to_pylist() for name in NAMES), strict=True))
        with self._base:
            self._base.executemany("INSERT INTO history VALUES (?, ?, ?, ?)", rows)
            self._base.executemany(f"INSERT INTO latest VALUES (?, ?, ?, ?) {RENEW}", rows)

    def settle(self) -> None:
        self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def latest(self, names: list[str]) -> int:
        marks = ", ".join("?" * len(names))
        return len(self._all(f"SELECT * FROM latest WHERE metric IN ({marks})", *names))

    def range(self, start: int, rows: int) -> int:
        query = f"SELECT * FROM history WHERE time >= ? AND {UNDER} ORDER BY time LIMIT ?"
        return len(self._all(query, start, rows))

    def aggregate(self, name: str, bucket: int) -> int:
        return len(self._all(f"SELECT entity, time / {bucket} b, {BUCKETS} ? GROUP BY 1, 2", name))

    def disk_bytes(self) -> int:
        return self._path.stat().st_size

    def close(self) -> None:
        self._base.close()

    def _all(self, query: str, *values: object) -> list[Any]:
        return self._base.execute(query, values).fetchall()
