"""The store of a site: intake, latest values, ranges, aggregates and memory, beside databases.

    python bench/store.py [--values N] [--plot FILE]

All engines get the same values in the same batches and answer the same questions in one run, so the
ratios hold where the times do not. Prints a table to stderr and JSON to stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import duckdb
import numpy as np
import psycopg
import pyarrow as pa

from fogline.log import LogWriter
from fogline.storage.feeder import Feeder
from fogline.storage.mapping import Readings
from fogline.storage.store import SiteStore
from fogline.storage.values import batch

START = 1_767_225_600_000_000
METRICS = 1_000
ENTITIES = 10
BATCH = 20_000
RANGE = 100_000
PREFIX = "metric_00%"
UNDER = "metric >= 'metric_00' AND metric < 'metric_01'"
SLOW_VALUES = 200_000
NAMES = ("metric", "entity", "time", "value")
MEMORY = """
import numpy as np, psutil
from fogline.storage.values import batch
from fogline.storage.latest import Latest
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
        return len(self._store.aggregate(bucket, name, functions=["count", "avg", "max"]))

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


class Postgres:
    """With its defaults; a batch is one COPY and one upsert in one transaction."""

    def __init__(self, address: str) -> None:
        self._base = psycopg.connect(address)
        for text in (HISTORY, LATEST, INDEX, BY_TIME):
            self._base.execute(text.encode())
        self._base.execute("CREATE TEMP TABLE batch (LIKE history)")
        self._base.commit()

    def ingest(self, table: pa.Table) -> None:
        rows = zip(*(table[name].to_pylist() for name in NAMES), strict=True)
        with self._base.cursor() as cursor:
            with cursor.copy("COPY batch FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            newest = "SELECT DISTINCT ON (1, 2) * FROM batch ORDER BY 1, 2, time DESC"
            cursor.execute(f"INSERT INTO latest {newest} {RENEW}".encode())
            cursor.execute("INSERT INTO history SELECT * FROM batch")
            cursor.execute("TRUNCATE batch")
        self._base.commit()

    def settle(self) -> None:
        self._base.execute("ANALYZE")
        self._base.commit()

    def latest(self, names: list[str]) -> int:
        return len(self._all("SELECT * FROM latest WHERE metric = ANY(%s)", names))

    def range(self, start: int, rows: int) -> int:
        query = f"SELECT * FROM history WHERE time >= %s AND {UNDER} ORDER BY time LIMIT %s"
        return len(self._all(query, start, rows))

    def aggregate(self, name: str, bucket: int) -> int:
        return len(self._all(f"SELECT entity, time / {bucket} b, {BUCKETS} %s GROUP BY 1, 2", name))

    def disk_bytes(self) -> int:
        return int(self._all("SELECT pg_total_relation_size('history')")[0][0])

    def close(self) -> None:
        self._base.close()

    def _all(self, query: str, *values: object) -> list[Any]:
        return self._base.execute(query.encode(), values).fetchall()


@contextlib.contextmanager
def postgres_cluster() -> Iterator[str | None]:
    """The address of a private cluster, gone afterwards; nothing where none is installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="fogline-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    control = [str(programs[-1] / "pg_ctl"), "-D", str(folder / "data"), "-w"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    initdb = [str(programs[-1] / "initdb"), "-D", str(folder / "data"), "-U", "fogline"]
    try:
        _as_other([*initdb, "-A", "trust", "-N"])
        _as_other([*control, "-l", str(folder / "log"), "-o", options, "start"])
        try:
            yield f"postgresql://fogline@127.0.0.1:{port}/postgres"
        finally:
            _as_other([*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_other(command: list[str]) -> None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


def columns(values: int) -> pa.Table:
    """Values of 1,000 metrics of ten entities, one after the other."""
    place = np.arange(values)
    chance = np.random.default_rng(7)
    metrics = pa.array([f"metric_{i:04d}" for i in range(METRICS)])
    entities = pa.array([f"entity_{i}" for i in range(ENTITIES)])
    metric = pa.array((place % METRICS).astype(np.int32))
    entity = pa.array((place // METRICS % ENTITIES).astype(np.int32))
    return pa.table(
        {
            "metric": pa.DictionaryArray.from_arrays(metric, metrics),
            "entity": pa.DictionaryArray.from_arrays(entity, entities),
            "time": START + place * 100,
            "value": chance.normal(20, 5, values).round(2),
        }
    )


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def middle(work: Callable[[], object], runs: int = 5) -> float:
    work()
    return median(seconds(work) for _ in range(runs))


def measure(engine: Engine, table: pa.Table) -> dict[str, float]:
    def intake() -> None:
        for first in range(0, len(table), BATCH):
            engine.ingest(table.slice(first, BATCH))
        engine.settle()

    rate = len(table) / seconds(intake)
    names = [f"metric_{i:04d}" for i in range(METRICS)]
    rows = min(RANGE, len(table) // 10)
    found: dict[str, float] = {
        "values": len(table),
        "range_rows": rows,
        "intake_per_second": rate,
        "latest_ms": middle(lambda: engine.latest(names)) * 1e3,
        "range_us_per_row": middle(lambda: engine.range(START, rows)) * 1e6 / rows,
        "aggregate_ms": middle(lambda: engine.aggregate("metric_0001", 1_000_000)) * 1e3,
        "disk_bytes_per_value": engine.disk_bytes() / len(table),
    }
    engine.close()
    return found


def by_hand(folder: Path) -> dict[str, float]:
    """The same range from the same files, through DuckDB and through the store, in turns."""
    files = [str(path) for path in sorted((folder / "data").glob("*.parquet"))]
    database = duckdb.connect(config={"threads": 1})
    database.execute("SET parquet_metadata_cache = true")
    query = (
        "SELECT metric, entity, time, value, text, labels FROM read_parquet(?) "
        f"WHERE time >= make_timestamp({START}) AND {UNDER} ORDER BY time LIMIT {RANGE}"
    )
    with SiteStore(folder) as store:
        hand, ours = [], []
        for _ in range(7):
            hand.append(seconds(lambda: database.execute(query, [files]).to_arrow_table()))
            ours.append(seconds(lambda: store.range(PREFIX, start=START, limit=RANGE)))
    return {
        "by_hand_ms": median(hand) * 1e3,
        "store_ms": median(ours) * 1e3,
        "ratio": median(ours) / median(hand),
    }


def feeding(folder: Path, messages: int) -> dict[str, float]:
    """json from a log, two values a message."""
    log = folder / "log"
    with LogWriter(log, "city/x", min_free_bytes=0) as writer:
        for first in range(0, messages, 10_000):
            writer.append([("city/x", _reading(i)) for i in range(first, first + 10_000)])
            writer.commit()
    with SiteStore(folder / "store") as store:
        store.start()
        feeder = Feeder(store, log, Readings(fields=("temp", "hum"), entity="s", time="t"))

        def feed() -> None:
            while feeder.step():
                pass
            store.flush()

        return {"messages": messages, "values_per_second": 2 * messages / seconds(feed)}


def _reading(number: int) -> bytes:
    body = {"t": START // 1000 + number, "s": f"s{number % 500}", "temp": number % 97 / 4, "hum": 5}
    return json.dumps(body).encode()


def single_latest(folder: Path) -> float:
    """1,000 metrics with one value each, as Arrow, among 100,000."""
    names = [f"metric_{i}" for i in range(100_000)]
    with SiteStore(folder) as store:
        store.ingest(batch(names, names, np.arange(100_000), np.arange(1e5)))
        asked = names[::100]
        return middle(lambda: store.latest(asked)) * 1e3


def memory() -> int:
    told = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True)
    return int(told.stdout)


def run(values: int) -> dict[str, Any]:
    table = columns(values)
    few = table.slice(0, min(values, SLOW_VALUES))
    found: dict[str, Any] = {"engines": {}}
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as name:
        folder = Path(name)
        for kind in ("ours", "fed", "latest"):
            (folder / kind).mkdir()
        found["engines"]["fogline"] = measure(OurStore(folder / "ours"), table)
        found["range"] = by_hand(folder / "ours")
        found["engines"]["sqlite"] = measure(Sqlite(folder / "sqlite.db"), few)
        with postgres_cluster() as address:
            if address:
                found["engines"]["postgresql"] = measure(Postgres(address), few)
        found["feeder"] = feeding(folder / "fed", min(values // 4, 200_000))
        found["latest_of_1000_ms"] = single_latest(folder / "latest")
    found["memory_of_100000_metrics"] = memory()
    return found


def show(found: dict[str, Any]) -> str:
    head = (
        f"{'':12} {'values/s':>10} {'latest ms':>10} {'range µs':>9} {'agg ms':>7} {'B/value':>8}"
    )
    lines = [head]
    for name, row in found["engines"].items():
        lines.append(
            f"{name:12} {row['intake_per_second']:10,.0f} {row['latest_ms']:10.1f} "
            f"{row['range_us_per_row']:9.2f} {row['aggregate_ms']:7.1f} "
            f"{row['disk_bytes_per_value']:8.1f}"
        )
    ratio, feeder = found["range"], found["feeder"]
    lines += [
        f"range of {RANGE:,} beside DuckDB by hand: {ratio['ratio']:.2f} times its time",
        f"json from the log: {feeder['values_per_second']:,.0f} values/s",
        f"latest of 1,000 metrics among 100,000: {found['latest_of_1000_ms']:.1f} ms",
        f"100,000 metrics in memory: {found['memory_of_100000_metrics'] / 1e6:.1f} MB",
    ]
    return "\n".join(lines)


def plot(found: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    panels = [("intake_per_second", "values/s"), ("latest_ms", "latest, ms"),
              ("range_us_per_row", "range, µs a row"),
              ("aggregate_ms", "aggregate, ms")]  # fmt: skip
    figure, axes = plt.subplots(1, len(panels), figsize=(11, 3), layout="constrained")
    names = list(found["engines"])
    for axis, (key, title) in zip(axes, panels, strict=True):
        axis.bar(names, [found["engines"][name][key] for name in names], color="#0b7a75")
        axis.set_yscale("log")
        axis.set_title(title)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    found = run(options.values)
    print(show(found), file=sys.stderr)
    print(json.dumps(found, indent=2))
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
