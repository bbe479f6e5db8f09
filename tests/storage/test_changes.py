"""Values in the order in which they came: pages, restarts, merges, tables that bring numbers."""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.state_files import copy_of
from fogline.storage.errors import BadQuery, BadValue, StoreDamaged
from fogline.storage.limits import StoreLimits
from fogline.storage.query.changes import MAX_SEQ, WAIT_US
from fogline.storage.store import SiteStore
from fogline.storage.values import SCHEMA, Value, from_values, to_values, with_seq
from tests.storage.kit import SMALL, START, Clock, everything, ingest

NAMES = ["cpu", "cpu_a", "mem", "温度"]


def some(count: int, first: int = 0) -> list[Value]:
    return [
        Value(NAMES[i % 4], f"e{i % 3}", START - i, float(i)) for i in range(first, first + count)
    ]


def numbered(values: list[Value], seqs: list[int]) -> pa.Table:
    column = pa.array(seqs, pa.int64())
    return with_seq(from_values(values).append_column(SCHEMA.field("seq"), column))


def followed(
    store: SiteStore, metrics: list[str] | None = None, limit: int = 7, after: int = -1
) -> list[float]:
    """Every value behind a number, page by page."""
    found: list[float] = []
    while True:
        page = store.changes(after, metrics, limit)
        seqs = page.table["seq"].to_pylist()
        assert seqs == sorted(seqs)
        assert all(after < seq <= page.last for seq in seqs)
        assert len(seqs) <= limit
        assert page.end or len(seqs) == limit
        found += page.table["value"].to_pylist()
        after = page.last
        if page.end:
            return found


def test_an_id_is_made_once(tmp_path: Path) -> None:
    with SiteStore(tmp_path / "a") as store, SiteStore(tmp_path / "b") as other:
        first = store.id
        assert len(first) == 32
        assert first != other.id
        ingest(store, some(3))
    with SiteStore(tmp_path / "a") as store:
        assert store.id == first


def test_a_store_without_its_id_is_damaged(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        ingest(store, some(3))
    (tmp_path / "id").unlink()
    with pytest.raises(StoreDamaged):
        SiteStore(tmp_path)


@pytest.mark.parametrize("text", [b"", b"no id", b"\xff" * 32, b"1" * 33])
def test_a_wrong_id_is_damage(tmp_path: Path, text: bytes) -> None:
    with SiteStore(tmp_path) as store:
        ingest(store, some(3))
    for file in (tmp_path / "id", copy_of(tmp_path / "id")):
        file.write_bytes(text)
    with pytest.raises(StoreDamaged):
        SiteStore(tmp_path)


@pytest.mark.parametrize("limit", [1, 3, 50, 1_000])
def test_all_values_page_by_page(tmp_path: Path, limit: int) -> None:
    with SiteStore(tmp_path, limits=SMALL) as store:
        for first in range(0, 300, 30):
            ingest(store, some(30, first))
            store.flush()
        assert followed(store, None, limit) == list(range(300))
        store.maintain()
        assert store.state().files < 10
        assert followed(store, None, limit) == list(range(300))
        assert followed(store, None, limit, after=250) == list(range(251, 300))


def test_only_some_metrics_and_the_end_is_told_all_the_same(tmp_path: Path) -> None:
    with SiteStore(tmp_path, limits=SMALL) as store:
        for first in range(0, 120, 20):
            ingest(store, some(20, first))
            store.flush()
        assert followed(store, ["mem"]) == list(range(2, 120, 4))
        assert followed(store, ["cpu%"]) == [i for i in range(120) if i % 4 < 2]
        for nothing in (["none"], []):
            page = store.changes(-1, nothing, 5)
            assert (len(page.table), page.last, page.end) == (0, 119, True)


def test_only_what_is_on_disk_is_told(tmp_path: Path) -> None:
    clock = Clock()
    with SiteStore(tmp_path, clock=clock) as store:
        ingest(store, some(5))
        assert followed(store) == []
        clock.now += WAIT_US - 1
        assert store.changes(-1).last == -1
        clock.now += 1
        assert followed(store) == list(range(5))
        ingest(store, some(2, 5))
        assert store.changes(4).last == 4


def test_an_empty_store_has_no_changes(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        page = store.changes()
        assert (len(page.table), page.last, page.end) == (0, -1, True)
        assert store.changes(17).last == 17


@pytest.mark.parametrize("after", [-2, MAX_SEQ + 1, True, 1.5, "0", None])
def test_wrong_numbers(tmp_path: Path, after: object) -> None:
    with SiteStore(tmp_path) as store, pytest.raises(BadQuery):
        store.changes(after)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0, -1, 1_000_001])
def test_wrong_limits(tmp_path: Path, limit: int) -> None:
    with SiteStore(tmp_path) as store:
        ingest(store, some(3))
        store.flush()
        with pytest.raises(BadQuery):
            store.changes(-1, None, limit)
        with pytest.raises(BadQuery):
            store.rows(limit=limit)


def test_a_manifest_of_version_1_is_read(tmp_path: Path) -> None:
    with SiteStore(tmp_path, limits=SMALL) as store:
        for first in range(0, 60, 20):
            ingest(store, some(20, first))
            store.flush()
    path = tmp_path / "manifest"
    data = json.loads(path.read_bytes().partition(b"\n")[2])
    data["version"] = 1
    for file in data["files"]:
        del file["seq_first"], file["seq_last"]
    body = json.dumps(data).encode()
    path.write_bytes(b"%08x\n" % zlib.crc32(body) + body)
    (tmp_path / "id").unlink()
    with SiteStore(tmp_path, limits=SMALL) as store:
        assert followed(store) == list(range(60))
        ranges = [(file.seq_first, file.seq_last) for file in store._history.manifest.files]
        assert ranges == [(0, 19), (20, 39), (40, 59)]
        made = store.id
        store.maintain()
    with SiteStore(tmp_path, limits=SMALL) as store:
        assert store.id == made
        assert followed(store) == list(range(60))


def test_a_reader_near_the_end_opens_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SiteStore(tmp_path, limits=StoreLimits(merge_files=1_000)) as store:
        for first in range(0, 400, 10):
            ingest(store, some(10, first))
            store.flush()
        opened: list[int] = []
        ask = store._queries.changes

        def counted(paths: list[str], *rest: object) -> pa.Table:
            opened.append(len(paths))
            return ask(paths, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(store._queries, "changes", counted)
        assert followed(store, after=385) == list(range(386, 400))
        assert sum(opened) <= 6
        opened.clear()
        assert len(store.changes(-1, None, 5).table) == 5
        assert opened == [1]


# ── tables that bring their numbers ──────────────────────────────────────────────────────────────

STREAMS = st.lists(st.lists(st.integers(0, 60), max_size=25), max_size=6)


@given(STREAMS, st.lists(st.sampled_from(["flush", "maintain", "open"]), max_size=8), st.integers())
def test_numbers_are_kept_and_each_is_taken_once(
    streams: list[list[int]], steps: list[str], seed: int
) -> None:
    limits = StoreLimits(merge_files=2)
    chance = random.Random(seed)
    work: list[str | list[int]] = [*streams, *steps]
    chance.shuffle(work)
    with tempfile.TemporaryDirectory() as folder:
        store = SiteStore(Path(folder), limits=limits)
        for step in work:
            if isinstance(step, list):
                seqs = list(dict.fromkeys(step))
                store.ingest(numbered([Value("m", "e", seq % 5, float(seq)) for seq in seqs], seqs))
            elif step == "flush":
                store.flush()
            elif step == "maintain":
                store.maintain()
            else:
                store.close()
                store = SiteStore(Path(folder), limits=limits)
        with store:
            expected = sorted({seq for stream in streams for seq in stream})
            in_time = sorted(expected, key=lambda seq: (seq % 5, seq))
            assert [int(v.value) for v in everything(store, 4)] == in_time
            assert store.last_seq == max(expected, default=-1)
            store.flush()
            assert followed(store) == expected
            ingest(store, [Value("m", "e", 9, -1.0)])
            store.flush()
            assert followed(store, after=max(expected, default=-1)) == [-1.0]


def test_rows_from_behind_a_place(tmp_path: Path) -> None:
    values = [Value("m", "e", i // 10, float(i)) for i in range(100)]
    with SiteStore(tmp_path) as store:
        ingest(store, values[:50])
        store.flush()
        ingest(store, values[50:])
        for descending in (False, True):
            found, after = [], None
            while len(page := store.rows(limit=7, after=after, descending=descending)):
                found += page["value"].to_pylist()
                last = page.to_pylist()[-1]
                after = int(page["time"].cast("int64")[-1].as_py()), last["seq"]
            assert found == sorted(range(100), reverse=descending)


def test_a_reserved_block_is_given_to_nothing_else(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        ingest(store, some(3))
        base = store.reserve("block", 1_000)
        assert base == 3
        ingest(store, some(1, 3))
        store.flush()
    with SiteStore(tmp_path) as store:
        assert store.position("block") == 3
        assert store.positions("bl") == {"block": 3}
        store.ingest(numbered(some(2, 4), [base, base + 999]), "taken", 1)
        store.flush()
        seqs = store.changes().table["seq"].to_pylist()
        assert seqs == [0, 1, 2, 3, 1_002, 1_003]
        assert store.last_seq == 1_003
        store.forget("block")
        assert store.position("block") == 0


@pytest.mark.parametrize(
    "table",
    [
        from_values(some(2)),
        from_values(some(2)).append_column("seq", pa.array(["a", "b"])),
        from_values(some(2)).append_column("seq", pa.array([1, None])),
        from_values(some(2)).append_column("seq", pa.array([1, -1])),
        pa.table({"seq": [1]}),
        pa.table({"metric": ["a"], "entity": [None], "time": [1], "value": [1.0]}),
        from_values(some(1))
        .append_column("seq", pa.array([1]))
        .set_column(0, "metric", pa.array(["x" * 2_000])),
    ],
)
def test_tables_that_bring_no_numbers(table: pa.Table) -> None:
    with pytest.raises(BadValue):
        with_seq(table)


# ── names and sizes ──────────────────────────────────────────────────────────────────────────────


def pairs(store: SiteStore, prefix: str = "") -> set[tuple[str, str]]:
    table = store.metrics(prefix)
    found = list(zip(table["metric"].to_pylist(), table["entity"].to_pylist(), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


def test_names(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        assert pairs(store) == set()
        ingest(store, some(24))
        every = {(name, f"e{i}") for name in NAMES for i in range(3)}
        assert pairs(store) == every
        assert pairs(store, "cpu") == {pair for pair in every if pair[0].startswith("cpu")}
        assert pairs(store, "温") == {pair for pair in every if pair[0] == "温度"}
        assert pairs(store, "%") == pairs(store, "none") == set()


def test_names_that_latest_values_had_no_room_for(tmp_path: Path) -> None:
    limits = StoreLimits(latest_bytes=20_000)
    with SiteStore(tmp_path, limits=limits) as store:
        ingest(store, [Value(f"m{i:03}", "e", i, 1.0) for i in range(300)])
        assert len(store.latest()) < 300
        store.flush()
        every = {(f"m{i:03}", "e") for i in range(300)}
        assert pairs(store) == every
        assert pairs(store, "m01") == {(f"m{i:03}", "e") for i in range(10, 20)}
        ingest(store, [Value("new", "e", 1, 1.0)])
        assert pairs(store) == {*every, ("new", "e")}


def test_sizes(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        assert store.metric_sizes() == {}
        ingest(store, [Value("much", "e", i, float(i)) for i in range(900)])
        ingest(store, [Value("little", "e", i, float(i)) for i in range(100)])
        store.flush()
        sizes = store.metric_sizes()
        assert set(sizes) == {"much", "little"}
        assert 8 < sizes["much"] / sizes["little"] < 10
        assert abs(sum(sizes.values()) - store.state().disk_bytes) <= 2


@pytest.mark.site
def test_a_copy_has_the_metadata_of_its_site(tmp_path: Path) -> None:
    from fogline.storage.catalog.metadata import Description

    with SiteStore(tmp_path / "own", "here") as own:
        own.metadata.put("cpu", Description(unit="%"))
        assert own.metadata.version == 1
        with SiteStore(tmp_path / "copy", metadata=own.metadata) as copy:
            ingest(copy, some(4))
            found = copy.sql(
                "SELECT unit, count(*) AS n FROM history JOIN metadata USING (metric) GROUP BY unit"
            )
            assert found.to_pylist() == [{"unit": "%", "n": 1}]
        assert [item.metric for item in own.metadata.find()] == ["cpu"]


def test_values_are_the_same_with_and_without_numbers(tmp_path: Path) -> None:
    values = [Value("m", "e", 1, float("nan")), Value("m", "e", 2, "text", {"k": "v"})]
    with SiteStore(tmp_path / "a") as store, SiteStore(tmp_path / "b") as copy:
        ingest(store, values)
        store.flush()
        copy.ingest(with_seq(store.changes().table), "log", 2)
        assert repr(everything(copy)) == repr(everything(store)) == repr(values)
        assert repr(to_values(copy.latest())) == repr(to_values(store.latest()))
