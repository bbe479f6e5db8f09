"""SQL of users: what it may see, and that nothing else is possible."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fogline.storage.catalog.metadata import Description
from fogline.storage.errors import QueryLimit, StoreError
from fogline.storage.limits import QueryLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import Value
from tests.storage.kit import START, ingest

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteStore]:
    with SiteStore(tmp_path_factory.mktemp("it's a store")) as opened:
        ingest(opened, [Value("cpu_a", f"e{i % 2}", START + i, float(i)) for i in range(100)])
        opened.flush()
        ingest(opened, [Value("cpu_b", "e0", START, "hot", {"room": "1"})])
        ingest(opened, [Value("cpu_a", "e9", START - 1, float("nan"))])
        opened.metadata.put("cpu_a", Description(unit="%", extra={"k": "v"}))
        yield opened


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT count(*) FROM history", 102),
        ("select count(*) from latest;", 4),
        ("-- a comment\nSELECT unit FROM metadata -- another", "%"),
        ("WITH a AS (SELECT * FROM history) SELECT sum(value) FROM a WHERE value < 1e9", 4950.0),
        ("SELECT count(*) FROM history WHERE value > 1e9", 1),
        ("SELECT count(*) FROM latest WHERE value > 1e9", 1),
        ("FROM history SELECT max(text)", "hot"),
        ("SELECT labels->>'room' FROM history WHERE text = 'hot'", "1"),
        ("SELECT count(*) FROM history WHERE time >= TIMESTAMP '2026-01-01'", 101),
        ("SELECT ';' || chr(41)", ";)"),
        ("(SELECT 1)", 1),
    ],
)
def test_what_can_be_asked(store: SiteStore, text: str, answer: object) -> None:
    assert store.sql(text)[0].to_pylist() == [answer]


def test_the_order_of_an_answer_is_kept(store: SiteStore) -> None:
    table = store.sql("SELECT value FROM history WHERE value < 100 ORDER BY value DESC")
    assert table["value"].to_pylist() == [float(i) for i in reversed(range(100))]


HOSTILE = [
    "", ";", "--", "SELECT", "SELECT 1; SELECT 2", "SELECT 1; DROP VIEW history", "\0", "\ud800",
    "SELECT 1) ; COPY (SELECT 1", "SELECT 1 /*", "SELECT * FROM (SELECT 1", "SELECT 1) --",
    "ATTACH '{other}/x.db'", "ATTACH ':memory:' AS m", "DETACH memory", "USE memory",
    "COPY history TO '{other}/out.csv'", "COPY (SELECT 1) TO '{data}' (use_tmp_file false)",
    "COPY history FROM '{other}/secret.csv'", "EXPORT DATABASE '{other}/dump'",
    "IMPORT DATABASE '{other}/dump'", "SELECT * FROM read_csv('{other}/secret.csv')",
    "SELECT * FROM read_csv_auto('{other}/*.csv')", "SELECT * FROM '{other}/secret.csv'",
    "SELECT * FROM read_text('{other}/secret.csv')",
    "SELECT * FROM read_blob('{other}/secret.csv')",
    "SELECT * FROM read_json('{other}/secret.csv')", "SELECT * FROM glob('{other}/*')",
    "SELECT * FROM sniff_csv('{other}/secret.csv')", "SELECT * FROM read_parquet('{other}/p')",
    "SELECT * FROM parquet_metadata('{other}/p')",
    "SELECT * FROM read_text('https://127.0.0.1:9/')",
    "SELECT * FROM query('COPY history TO ''{other}/o.csv''')", "PRAGMA database_list",
    "PRAGMA threads=8", "PRAGMA enable_profiling", "SET threads = 8", "SET memory_limit = '100GB'",
    "SET enable_external_access = true", "SET lock_configuration = false", "RESET threads",
    "RESET enable_external_access", "INSTALL httpfs", "LOAD httpfs", "LOAD '{other}/x.so'",
    "CREATE TABLE t (a INT)", "CREATE TEMP TABLE t AS SELECT 1", "CREATE VIEW v AS SELECT 1",
    "CREATE MACRO m() AS 1", "CREATE SECRET s (TYPE s3)", "DROP VIEW history",
    "INSERT INTO latest VALUES (1)", "UPDATE history SET value = 0", "DELETE FROM history",
    "TRUNCATE history", "ALTER VIEW history RENAME TO h", "CALL pragma_version()", "CHECKPOINT",
    "BEGIN", "COMMIT", "VACUUM", "EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1", "SHOW TABLES",
    "PREPARE p AS SELECT 1", "EXECUTE p", "SELECT ?", "SELECT $1", "SELECT getenv('HOME')",
    "SELECT * FROM store", "SELECT * FROM sqlite_scan('{other}/x', 't')", "(" * 5_000 + "1",
    "SELECT " + "1+" * 20_000 + "1", "SELECT " + "x" * 200_000,
    "WITH x AS (INSERT INTO latest VALUES (1) RETURNING *) SELECT * FROM x",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_else_can_be_done(store: SiteStore, tmp_path: Path, text: str) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    (data,) = store._history._data.iterdir()
    before = data.read_bytes()
    quoted = str(data).replace("'", "''")
    with pytest.raises(StoreError):
        store.sql(text.replace("{other}", str(tmp_path)).replace("{data}", quoted))
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT max(i) FROM r",
        "SELECT count(*) FROM history a, history b, history c, history d, history e, history f",
        "SELECT regexp_matches(repeat('a', 1000) || range::TEXT, '(a|a)*b') FROM range(100000000)",
    ],
)
def test_time_is_limited(store: SiteStore, text: str) -> None:
    started = time.monotonic()
    with pytest.raises(QueryLimit):
        store.sql(text, QueryLimits(seconds=0.3))
    assert time.monotonic() - started < 600


@pytest.mark.parametrize(
    "text",
    [
        "SELECT list(range) FROM range(100000000)",
        "SELECT repeat('x', 2000000000)",
        "SELECT a.range FROM range(3000000) a ORDER BY hash(a.range)",
    ],
)
def test_memory_is_limited(store: SiteStore, text: str) -> None:
    with pytest.raises(QueryLimit, match="memory"):
        store.sql(text, QueryLimits(seconds=300, memory_bytes=16 << 20))
    assert store.sql("SELECT 1").num_rows == 1


def test_a_process_that_died_is_replaced(store: SiteStore) -> None:
    store.sql("SELECT 1")
    child = store._sql._child
    assert child is not None
    child.kill()
    child.wait()
    assert store.sql("SELECT 1").num_rows == 1


def test_the_process_sees_nothing_of_our_environment(store: SiteStore) -> None:
    store.sql("SELECT 1")
    child = store._sql._child
    assert child is not None
    entries = Path(f"/proc/{child.pid}/environ").read_bytes().split(b"\0")
    names = {entry.partition(b"=")[0] for entry in entries if entry}
    known = {b"PATH", b"PYTHONPATH", b"LD_LIBRARY_PATH", b"LANG", b"LC_CTYPE"}
    assert names <= known | {b"ARROW_DEFAULT_MEMORY_POOL"}


def test_rows_are_limited(store: SiteStore) -> None:
    limits = QueryLimits(rows=5)
    assert len(store.sql("SELECT * FROM range(5)", limits)) == 5
    with pytest.raises(QueryLimit):
        store.sql("SELECT * FROM range(6)", limits)


def test_an_empty_store_answers_too(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as empty:
        assert empty.sql("SELECT * FROM history, latest, metadata").num_rows == 0
