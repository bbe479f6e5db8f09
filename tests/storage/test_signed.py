"""What is signed: who told it, how it travels, and that a store leaves out what it is told to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fogline.storage.catalog.database import Database
from fogline.storage.catalog.metadata import Description, MetadataStore
from fogline.storage.errors import StoreError
from fogline.storage.limits import QueryLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, to_values
from tests.storage.kit import START, ingest

NONE: frozenset[str] = frozenset()


def metadata(site: str = "north") -> MetadataStore:
    return MetadataStore(Database(None), site)


def hidden(store: MetadataStore, *keys: str, node: str = "north") -> set[str]:
    return set(store.signed.hidden(node, frozenset(keys)))


# ── who told it ──────────────────────────────────────────────────────────────────────────────────


def test_only_holders_of_the_key_see_it() -> None:
    store = metadata()
    store.sign({"mean": {"city": "plant-7"}, "most": {"city": None}})
    assert hidden(store) == {"mean"}
    assert hidden(store, "other") == {"mean"}
    assert hidden(store, "other", "plant-7") == set()
    assert store.signed.hidden("north", None) == NONE
    assert hidden(store, node="south") == set()
    assert store.signed.hidden_anywhere(NONE) == {"mean"}


def test_two_jobs_with_the_same_insight_need_both_keys() -> None:
    store = metadata()
    store.sign({"mean": {"city": "a", "grid": "b", "open": None}})
    assert hidden(store, "a") == hidden(store, "b") == {"mean"}
    assert hidden(store, "a", "b") == set()
    store.sign({"mean": {"city": "a c"}})
    assert hidden(store, "a", "b") == {"mean"}
    assert hidden(store, "a", "b", "c") == set()


def test_it_stays_when_the_job_goes_and_follows_the_job_that_comes_back() -> None:
    store = metadata()
    store.sign({"mean": {"city": "a"}})
    store.sign({})
    store.sign({"mean": {"grid": None}})
    assert hidden(store) == {"mean"}
    store.sign({"mean": {"city": "b"}})
    assert hidden(store, "a") == {"mean"}
    assert hidden(store, "b") == set()
    store.sign({"mean": {"city": None}})
    assert hidden(store) == set()
    store.sign({"mean": {"city": "a"}})
    assert hidden(store) == {"mean"}


def test_repeating_it_changes_nothing() -> None:
    store = metadata()
    store.sign({"mean": {"city": "a"}})
    before = store.version
    store.sign({"mean": {"city": "a"}, "most": {"city": None}, "m" * 2_000: {"city": "a"}})
    assert store.version == before


def test_it_survives_a_restart(tmp_path: Path) -> None:
    with SiteStore(tmp_path, "north") as store:
        store.metadata.sign({"mean": {"city": "a"}, "gone": {"city": "a"}})
        store.metadata.sign({"gone": {"city": None}})
    with SiteStore(tmp_path, "north") as store:
        assert hidden(store.metadata) == {"mean"}


def test_it_travels_as_metadata_does_and_describes_nothing() -> None:
    north, south = metadata("north"), metadata("south")
    north.put("mean", Description(unit="K"))
    north.sign({"mean": {"city": "a"}})
    south.sign({"mean": {"city": "b"}})
    for one, other in ((north, south), (south, north)):
        other.merge(one.changes(0)[0])
    for store in (north, south):
        assert hidden(store, "a") == set()
        assert hidden(store, "b", node="south") == set()
        assert hidden(store, "b") == hidden(store, "a", node="south") == {"mean"}
        assert [(item.metric, item.entity) for item in store.find()] == [("mean", "")]
        assert len(store.table()) == 1
        assert len(store.table({"mean"})) == 0
    # Whoever describes the metric takes nothing off.
    south.put("mean", Description(unit="C"))
    south.remove("mean")
    north.merge(south.changes(0)[0])
    assert hidden(north) == {"mean"}
    assert south.signatures("north") == north.signatures("north") != ()


def test_what_others_remember_of_a_lost_disk_does_not_undo_what_holds_now() -> None:
    old, other = metadata("north"), metadata("south")
    for key in ("a", "b", "c"):
        old.sign({"mean": {"city": key, "gone": "g"}})
    other.merge(old.changes(0)[0])
    new = metadata("north")
    new.sign({"mean": {"city": "d"}})
    new.merge(other.changes(0)[0])
    new.sign({"mean": {"city": "d"}})
    assert hidden(new, "d", "g") == set()
    assert hidden(new, "d") == {"mean"}, "what a job left that is gone is still signed"


# ── what a store leaves out ──────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteStore]:
    """Values in two files and in memory; every other one is secret."""
    with SiteStore(tmp_path_factory.mktemp("store"), "north") as opened:
        for part in range(3):
            numbers = range(part * 10, part * 10 + 10)
            ingest(opened, [Value("so"[i % 2], "e", START + i, float(i)) for i in numbers])
            ingest(opened, [Value("o", "nan", START - 1, float("nan"))])
            if part < 2:
                opened.flush()
        opened.metadata.put("s", Description(unit="%"))
        opened.metadata.put("o", Description(unit="K"))
        yield opened


ODD = [float(i) for i in range(1, 30, 2)]


def test_values_without_a_metric(store: SiteStore) -> None:
    assert {v.metric for v in to_values(store.latest(without={"s"}))} == {"o"}
    assert len(store.latest(["s"], without={"s"})) == 0
    rows = store.rows(entities=["e"], without={"s"}, limit=4)
    assert rows["value"].to_pylist() == ODD[:4], "a page is full of others"
    found = store.aggregate(1_000_000, entities=["e"], functions=["count"], without={"s"})
    assert found["count"].to_pylist() == [15]
    assert set(store.metrics(without={"s"})["metric"].to_pylist()) == {"o"}
    assert len(store.metrics()) == 3


def test_changes_without_a_metric_go_on_behind_it(store: SiteStore) -> None:
    found: list[float] = []
    last, end = -1, False
    while not end:
        page = store.changes(last, limit=3, without={"s"})
        found += [v for v in page.table["value"].to_pylist() if v == v]
        assert page.last > last
        last, end = page.last, page.end
    assert found == ODD[:10], "what is on disk"


@pytest.mark.site
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT count(*) FROM history WHERE entity = 'e'", 15),
        ("SELECT count(DISTINCT metric) FROM history", 1),
        ("SELECT count(*) FROM history a JOIN history b USING (seq)", 18),
        ("SELECT sum(value) FROM history WHERE value < 9", 16.0),
        ("SELECT count(*) FROM history WHERE value > 1e9", 3),
        ("SELECT count(*) FROM history WHERE metric = 's'", 0),
        ("SELECT count(*) FROM latest", 2),
        ("SELECT string_agg(metric) FROM metadata", "o"),
        ("SELECT count(*) FROM (FROM recent_values WHERE metric = 's')", 0),
        ("SELECT count(*) FROM (FROM latest_values WHERE metric = 's')", 0),
        ("SELECT count(*) FROM (FROM file_values WHERE metric = 's')", 0),
        ("SELECT max(time) - min(time) = INTERVAL 28 MICROSECOND FROM history WHERE entity = 'e'",
         True),
    ],
)  # fmt: skip
def test_sql_without_a_metric(store: SiteStore, text: str, answer: object) -> None:
    found = store.sql(text, without={"s"}, undescribed={"s"})
    assert found[0].to_pylist() == [answer]


@pytest.mark.site
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_parquet('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM query('SELECT * FROM ''{file}''')",
        "SELECT * FROM parquet_metadata('{file}')",
        "SELECT * FROM glob('{file}')",
        "SELECT * FROM read_blob('{file}')",
    ],
)
def test_sql_does_not_get_at_the_files_behind(store: SiteStore, text: str) -> None:
    views = "SELECT sql FROM duckdb_views() WHERE view_name = 'history'"
    file = re.findall(r"'([^']*[.]parquet)'", str(store.sql(views)[0][0]))[0]
    assert len(store.sql(f"SELECT * FROM read_parquet('{file}')")) > 0, "it is such a file"
    with pytest.raises(StoreError):
        store.sql(text.format(file=file), without={"s"})
    assert ".parquet" not in str(store.sql(views, without={"s"})[0][0])


@pytest.mark.site
def test_many_values_are_scanned_within_the_limits(tmp_path: Path) -> None:
    with SiteStore(tmp_path, "north") as store:
        for part in range(4):
            some = range(part * 100_000, part * 100_000 + 100_000)
            ingest(store, [Value("so"[i % 2], f"e{i % 50}", START + i, float(i)) for i in some])
            store.flush()
        limits = QueryLimits(memory_bytes=64 << 20)
        text = "SELECT count(*), sum(value), count(DISTINCT metric) FROM history"
        found = store.sql(text, limits, without={"s"}).to_pylist()[0]
        assert list(found.values()) == [200_000, sum(range(1, 400_000, 2)), 1]
