"""The store as a library: intake, questions, files and memory, beside databases in the same run."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pyarrow as pa
from store_data import (
    BUCKET_US,
    METRICS,
    NAMES,
    ONE,
    PREFIX,
    READINGS,
    START,
    columns,
    middle,
    range_rows,
    seconds,
    single_names,
    single_values,
    write_log,
)
from store_engines import UNDER, Engine, OurStore, Sqlite
from store_postgres import Postgres, postgres_cluster

from fogline.common.errors import SetupError
from fogline.storage.ingest.log_to_store import Feeder
from fogline.storage.ingest.mapping import Readings
from fogline.storage.store import SiteStore
from fogline.storage.values import batch

BATCH = 20_000
_TURNS = 7
_MEMORY = """
import numpy as np, psutil
from fogline.storage.values import batch
from fogline.storage.files.latest import Latest
latest = Latest(256 << 20)
names = lambda first: [f"metric_{i}" for i in range(first, first + 10_000)]
ones = ["entity"] * 10_000
latest.apply(batch(names(-10_000), ones, np.arange(10_000), np.arange(10_000.0)), 0)
latest.forget_before(1)
before = psutil.Process().memory_info().rss
for first in range(0, 100_000, 10_000):
    latest.apply(batch(names(first), ones, np.arange(10_000), np.arange(10_000.0)), 1)
assert len(latest) == 100_000
print(psutil.Process().memory_info().rss - before)
"""


def measure(values: int) -> dict[str, Any]:
    table = columns(values)
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as name:
        folder = Path(name)
        versions = {"DuckDB": duckdb.__version__, "SQLite": sqlite3.sqlite_version}
        engines = {"Fogline": _engine(OurStore(folder / "ours"), table)}
        found: dict[str, Any] = {"engines": engines, "range": _by_hand(folder / "ours", values)}
        engines["SQLite"] = _engine(Sqlite(folder / "sqlite.db"), table)
        with postgres_cluster() as address:
            if address:
                postgres = Postgres(address)
                versions["PostgreSQL"] = postgres.version
                engines["PostgreSQL"] = _engine(postgres, table)
        for other in engines.values():
            for rows in ("latest_rows", "aggregate_rows"):
                _must_be(other[rows], engines["Fogline"][rows])
        found["feeder"] = _feeding(folder / "fed", values // 2)
        found["latest_of_1000_ms"] = _single_latest(folder / "latest")
    found["memory_of_100000_metrics"] = _memory()
    return found | {"versions": versions}


def _engine(engine: Engine, table: pa.Table) -> dict[str, float]:
    def intake() -> None:
        for first in range(0, len(table), BATCH):
            engine.ingest(table.slice(first, BATCH))
        engine.settle()

    rate = len(table) / seconds(intake)
    names = [f"metric_{i:04d}" for i in range(METRICS)]
    rows = range_rows(len(table))
    _must_be(engine.range(START, rows), rows)
    found: dict[str, float] = {
        "values": len(table),
        "range_rows": rows,
        "intake_per_second": rate,
        "latest_rows": engine.latest(names),
        "latest_ms": middle(lambda: engine.latest(names)) * 1e3,
        "range_ms": middle(lambda: engine.range(START, rows)) * 1e3,
        "aggregate_rows": engine.aggregate(ONE, BUCKET_US),
        "aggregate_ms": middle(lambda: engine.aggregate(ONE, BUCKET_US)) * 1e3,
        "disk_bytes_per_value": engine.disk_bytes() / len(table),
    }
    engine.close()
    return found


def _by_hand(folder: Path, values: int) -> dict[str, float]:
    """The same range from the same files, through DuckDB and through the store, in turns."""
    files = [str(path) for path in sorted((folder / "data").glob("*.parquet"))]
    rows = range_rows(values)
    database = duckdb.connect(config={"threads": 1})
    database.execute("SET parquet_metadata_cache = true")
    query = (
        "SELECT metric, entity, time, value, text, labels FROM read_parquet(?) "
        f"WHERE time >= make_timestamp({START}) AND {UNDER} ORDER BY time LIMIT {rows}"
    )
    with SiteStore(folder) as store:

        def by_hand() -> int:
            return len(database.execute(query, [files]).to_arrow_table())

        def ours() -> int:
            return len(store.range(PREFIX, start=START, limit=rows).table)

        _must_be(by_hand(), rows)
        _must_be(ours(), rows)
        turns = [(seconds(by_hand), seconds(ours)) for _ in range(_TURNS)]
    database.close()
    hand_time, our_time = (median(times) for times in zip(*turns, strict=True))
    return {
        "rows": rows,
        "by_hand_ms": hand_time * 1e3,
        "store_ms": our_time * 1e3,
        "ratio": our_time / hand_time,
    }


def _feeding(folder: Path, messages: int) -> dict[str, float]:
    """json from a log, two values a message, up to the disk."""
    log = write_log(folder / "log", messages)
    with SiteStore(folder / "store") as store:
        store.start()
        feeder = Feeder(store, log, Readings(**READINGS))

        def feed() -> None:
            while feeder.step():
                pass
            store.flush()

        rate = 2 * messages / seconds(feed)
        _must_be(store.state().rows, 2 * messages)
    return {"messages": messages, "values_per_second": rate}


def _single_latest(folder: Path) -> float:
    """1,000 metrics with one value each, as Arrow, among 100,000."""
    table, asked = single_values(), single_names(every=100)
    with SiteStore(folder) as store:
        store.ingest(batch(*(table[name] for name in NAMES)))
        _must_be(len(store.latest(asked)), len(asked))
        return middle(lambda: store.latest(asked)) * 1e3


def _memory() -> int:
    told = subprocess.run([sys.executable, "-c", _MEMORY], check=True, capture_output=True)
    return int(told.stdout)


def _must_be(found: float, wanted: float) -> None:
    if found != wanted:
        raise SetupError(f"an answer has {found:,} values instead of {wanted:,}")
