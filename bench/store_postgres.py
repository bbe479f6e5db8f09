"""PostgreSQL beside the store: an engine, and a private cluster for the time of a run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from store_data import NAMES
from store_engines import BUCKETS, BY_TIME, HISTORY, INDEX, LATEST, RENEW, UNDER

from fogline.common.process.free_ports import free_port


class Postgres:
    """With its defaults; a batch is one COPY and one upsert in one transaction."""

    def __init__(self, address: str) -> None:
        self._base = psycopg.connect(address)
        for text in (HISTORY, LATEST, INDEX, BY_TIME):
            self._base.execute(text.encode())
        self._base.execute("CREATE TEMP TABLE batch (LIKE history)")
        self._base.commit()

    @property
    def version(self) -> str:
        return (self._base.info.parameter_status("server_version") or "").partition(" ")[0]

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
    port = free_port()
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
