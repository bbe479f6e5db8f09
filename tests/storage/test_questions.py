"""Questions and values out of bounds are turned away with errors of ours."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fogline.storage.errors import BadQuery, BadValue, QueryLimit
from fogline.storage.files.latest import Latest
from fogline.storage.limits import MEBIBYTE, QueryLimits, StoreLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import END_TIME, FIRST_TIME, Value, batch, from_values
from tests.storage.kit import START, everything, ingest


@pytest.mark.parametrize(
    "question",
    [
        {"metrics": "x" * 2_000}, {"metrics": ["\ud800"]}, {"metrics": [1]}, {"start": 1.5},
        {"start": True}, {"end": "now"}, {"limit": 0}, {"limit": -1}, {"limit": 10**9},
        {"cursor": ""}, {"cursor": "x"}, {"cursor": "W10"}, {"cursor": "é"},
        {"cursor": "A" * 10**6},
        {"metrics": (str(i) for i in range(100_001))},
    ],
)  # fmt: skip
def test_wrong_ranges(tmp_path: Path, question: dict[str, object]) -> None:
    with SiteStore(tmp_path) as store, pytest.raises(BadQuery):
        store.range(**question)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bucket", "functions"),
    [(0, ["sum"]), (-1, ["sum"]), (1 << 62, ["sum"]), (1.5, ["sum"]), (1, []), (1, ["median; --"])],
)
def test_wrong_aggregates(tmp_path: Path, bucket: int, functions: list[str]) -> None:
    with SiteStore(tmp_path) as store, pytest.raises(BadQuery):
        store.aggregate(bucket, functions=functions)


def test_a_cursor_belongs_to_its_question(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        ingest(store, [Value("a", "e", i, 1.0) for i in range(5)])
        cursor = store.range("a", limit=2).cursor
        assert len(store.range("a", limit=3, cursor=cursor).values()) == 3
        for other in ({"metrics": "b"}, {"metrics": "a", "descending": True}):
            with pytest.raises(BadQuery):
                store.range(cursor=cursor, **other)  # type: ignore[arg-type]


def test_pages_go_on_while_values_come_and_files_change(tmp_path: Path) -> None:
    with SiteStore(tmp_path, limits=StoreLimits(merge_files=2)) as store:
        ingest(store, [Value("a", "e", 7, float(i)) for i in range(10)])
        cursor, found = None, []
        for step in range(5):
            page = store.range(end=8, limit=2, cursor=cursor)
            found += [value.value for value in page.values()]
            cursor = page.cursor
            ingest(store, [Value("a", "e", 9, float(step))])
            store.flush()
            store.maintain()
        assert (found, cursor) == ([float(i) for i in range(10)], None)


def test_names_that_look_like_sql(tmp_path: Path) -> None:
    names = ["'; DROP TABLE x; --", '"', "\\", "a\nb", "%", "_", "?", "{}", "\U0001f321"]
    with SiteStore(tmp_path) as store:
        ingest(store, [Value(name, name, 1, name) for name in names])
        store.flush()
        for name in names:
            wanted = name[:-1] + "\\%" if name.endswith("%") else name
            assert [v.value for v in everything(store, metrics=wanted, entities=wanted)] == [name]


@pytest.mark.parametrize(
    "value",
    [
        Value("m" * 2_000, "e", 1, 1.0), Value("m", "e" * 2_000, 1, 1.0),
        Value("\ud800", "e", 1, 1.0),
        Value("m", "e", END_TIME, 1.0), Value("m", "e", FIRST_TIME - 1, 1.0),
        Value("m", "e", 1 << 70, 1.0), Value("m", "e", 1, "x" * 70_000),
        Value("m", "e", 1, 1.0, {"k": "v" * 9_000}),
    ],
)  # fmt: skip
def test_values_out_of_bounds(tmp_path: Path, value: Value) -> None:
    with SiteStore(tmp_path) as store:
        with pytest.raises(BadValue):
            ingest(store, [Value("m", "e", 1, 1.0), value])
        assert everything(store) == []


@pytest.mark.parametrize(
    "columns",
    [
        (["m"], ["e"], [1], [None]),
        (["m"], ["e"], [1], [1.0], ["both"]),
        ([None], ["e"], [1], [1.0]),
        (["m"], ["e", "f"], [1], [1.0]),
        (["m"], ["e"], ["x"], [1.0]),
        (["m"], ["e"], [1], ["x"]),
    ],
)
def test_columns_that_are_no_values(columns: tuple[list[object], ...]) -> None:
    with pytest.raises(BadValue):
        batch(*columns)


def test_an_answer_that_is_too_large_or_takes_too_long(tmp_path: Path) -> None:
    limits = StoreLimits(query=QueryLimits(rows=3))
    with SiteStore(tmp_path, limits=limits) as store:
        ingest(store, [Value("a", "e", i, 1.0) for i in range(5)])
        with pytest.raises(QueryLimit):
            store.aggregate(1)
        assert len(store.aggregate(1, end=3)) == 3
        assert len(store.range(limit=3).values()) == 3


def test_a_log_does_not_go_back(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        store.ingest(from_values([Value("a", "e", 1, 1.0)]), "log", 100)
        with pytest.raises(BadValue):
            store.ingest(from_values([Value("a", "e", 2, 1.0)]), "log", 99)


def test_a_hundred_thousand_metrics_fit_sixty_megabytes() -> None:
    count = 100_000
    tracemalloc.start()
    try:
        latest = Latest(256 << 20)
        before = tracemalloc.get_traced_memory()[0]
        for first in range(0, count, 10_000):
            names = [f"building_7.floor_{i % 9}.sensor_{i}" for i in range(first, first + 10_000)]
            values = np.arange(10_000.0)
            latest.apply(batch(names, names, np.arange(10_000), values), 1)
        del names, values
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(latest) == count
    assert used <= 60_000_000
    assert used <= latest.bytes * 1.2
    assert isinstance(latest.find(), pa.Table)


def test_questions_do_not_take_each_others_memory(tmp_path: Path) -> None:
    """One alone needs more than half of what a question may take."""
    count = 600_000
    limits = StoreLimits(query=QueryLimits(seconds=60.0, memory_bytes=80 * MEBIBYTE))
    with SiteStore(tmp_path, limits=limits) as store:
        names = np.array([f"metric_{i % 200:03}" for i in range(count)])
        store.ingest(batch(names, names, START + np.arange(count) * 1000, np.random.rand(count)))
        store.flush()

        def ask(_: int) -> int:
            return len(store.rows(limit=100_000)) + len(store.changes(limit=100_000).table)

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(ask, range(6))) == [200_000] * 6


def test_nobody_waits_longer_for_a_turn_than_a_question_may_take(tmp_path: Path) -> None:
    limits = StoreLimits(questions=1, query=QueryLimits(seconds=0.2))
    with SiteStore(tmp_path, limits=limits) as store:
        with store._queries._connections.one(), pytest.raises(QueryLimit, match="in the way"):
            store.rows()
        assert len(store.rows()) == 0
