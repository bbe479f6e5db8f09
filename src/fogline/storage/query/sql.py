"""SQL of a user over the views `history`, `latest` and `metadata`, read-only and limited.

Each statement runs in a database of its own that knows nothing but the three views: no other file
can be opened, no extension loaded, no setting changed. Only one SELECT passes, and only where it
can stand inside brackets, which nothing else can.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from fogline.storage.errors import BadQuery, QueryLimit
from fogline.storage.limits import QueryLimits
from fogline.storage.query import duckdb_engine
from fogline.storage.values import BATCH, SCHEMA

NODE = "node"
_MAX_TEXT = 100_000
_SCANNED_ROWS = 65_536
_COLUMNS = ", ".join(SCHEMA.names)
# Comparisons with a bare column would be left to Arrow, for which NaN is not greater than a number.
_SAFE = ", ".join("-(-value) AS value" if name == "value" else name for name in BATCH.names)
_WORD = re.compile(r"\w+")
_FIRST_WORDS = ("select", "with", "from", "values", "(")


@dataclass(frozen=True, slots=True)
class Tables:
    """What can be asked: data files, values that still wait, latest values, metadata.

    Without data files the values may be those of several nodes, and have the column `node`.
    """

    paths: Sequence[str]
    recent: pa.Table
    latest: pa.Table
    metadata: pa.Table
    without: Sequence[str] = ()
    """Metrics in the data files that must not be seen; the tables do not have them."""


def run(text: str, tables: Tables, threads: int, limits: QueryLimits) -> pa.Table:
    """The answer. Raises `BadQuery`, and `QueryLimit` for one beyond time, memory or rows.

    DuckDB keeps to limits between its steps, and one step can go far beyond: see `SqlProcess`.
    """
    connection = duckdb_engine.connect(threads, limits.memory_bytes)
    try:
        with duckdb_engine.limit_time(connection, limits):
            _prepare(connection, tables)
            query = _wrap_select(connection, text, limits.rows + 1)
            table = connection.execute(query).to_arrow_table()
    finally:
        connection.close()
    if len(table) > limits.rows:
        raise QueryLimit(f"the answer has more than {limits.rows} rows", "add a LIMIT")
    return table


def _prepare(connection: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """Defines the views and then shuts every way out."""
    paths = list(tables.paths)
    connection.execute("SET TimeZone = 'UTC'")
    if paths and not tables.without:
        connection.execute("SET allowed_paths = ?", [paths])
    connection.execute("SET enable_external_access = false")
    connection.register("metadata", tables.metadata)
    connection.register("recent_values", tables.recent)
    connection.register("latest_values", tables.latest)
    whose, of_whom = (
        "node, " if NODE in table.column_names else "" for table in (tables.latest, tables.recent)
    )
    connection.execute(f"CREATE TEMP VIEW latest AS SELECT {whose}{_SAFE} FROM latest_values")
    parts = [f"SELECT {of_whom}{_SAFE}, seq FROM recent_values"]
    if paths and tables.without:
        connection.register("file_values", _others(paths, tables.without))
        parts.append(f"SELECT {_SAFE}, seq FROM file_values")
    elif paths:
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        parts.append(f"SELECT {_COLUMNS} FROM read_parquet([{listed}])")
    connection.execute(f"CREATE TEMP VIEW history AS {' UNION ALL '.join(parts)}")
    connection.execute("SET lock_configuration = true")


def _others(paths: Sequence[str], without: Sequence[str]) -> Any:
    """The values of other metrics. The statement does not get at the files themselves: it could
    read everything in them, whatever the view leaves out."""
    import pyarrow.dataset as ds  # forty megabytes with pandas, which few processes need

    hidden = pc.field("metric").cast(pa.string()).isin(pa.array(without, pa.string()))
    files = ds.dataset(list(paths), schema=SCHEMA, format="parquet")
    return files.scanner(
        columns=SCHEMA.names,
        filter=~hidden,
        batch_size=_SCANNED_ROWS,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
    )


def _wrap_select(connection: duckdb.DuckDBPyConnection, text: str, rows: int) -> duckdb.Statement:
    """The one SELECT as a part of ours."""
    if len(text) > _MAX_TEXT or "\0" in text:
        raise BadQuery(f"a statement has at most {_MAX_TEXT} characters and no zero bytes")
    if not _first_word(text).startswith(_FIRST_WORDS):
        raise BadQuery("only one SELECT is allowed", "history, latest and metadata can be read")
    inner = _only_select(connection, text)
    body = inner.query.strip().rstrip(";")
    return _only_select(connection, f"SELECT * FROM (\n{body}\n) LIMIT {rows}")


def _only_select(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    statements = connection.extract_statements(text)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise BadQuery("only one SELECT is allowed", "history, latest and metadata can be read")
    return statements[0]


def _first_word(text: str) -> str:
    """The beginning of the statement behind its comments. PRAGMA and SHOW pass as SELECT else."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise BadQuery("the statement holds half a character") from error
    tokens = duckdb.tokenize(text)
    start = next((at for at, kind in tokens if kind != duckdb.token_type.comment), len(data))
    return data[start : start + 6].decode("utf-8", "replace").lower()


def needs(text: str, view: str) -> bool:
    """Whether a statement may read a view; rather once too often than once too little."""
    words = set(_WORD.findall(text.lower()))
    return view in words or any(word.startswith("query") for word in words)
