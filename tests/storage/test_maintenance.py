"""Eviction and merging: what is decided, and that readers beside it see one consistent state."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import FoglineError, UsageError
from fogline.storage.errors import StoreBusy, StoreDamaged, StoreFull
from fogline.storage.files import data_files
from fogline.storage.files.maintenance import Upkeep, to_evict, to_merge
from fogline.storage.files.manifest import DataFile, Manifest
from fogline.storage.limits import HOUR_US, StoreLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import Value
from tests.storage.kit import SMALL, START, Clock, everything, ingest, numbers

FILES = st.lists(st.tuples(st.integers(1, 3_000), st.integers(1, 10**9)), max_size=40)


def some(pairs: list[tuple[int, int]]) -> Manifest:
    """Files one hour after the other."""
    return Manifest(
        tuple(
            DataFile(f"{at}", rows, size, 0, 1, at * HOUR_US, at * HOUR_US + 1)
            for at, (rows, size) in enumerate(pairs)
        )
    )


@given(FILES, st.integers(1, 10**10), st.integers(1, 50))
def test_eviction_takes_the_old_and_then_the_oldest(
    pairs: list[tuple[int, int]], disk: int, hours: int
) -> None:
    manifest, now = some(pairs), 40 * HOUR_US
    limits = StoreLimits(age_us=hours * HOUR_US, disk_bytes=disk)
    gone = to_evict(manifest, limits, now)
    left = manifest.evict_files(file.name for file in gone)
    assert gone == manifest.files[: len(gone)]
    assert left.bytes <= disk
    assert all(file.arrived_last >= now - limits.age_us for file in left.files)
    if gone and gone[-1].arrived_last >= now - limits.age_us:
        assert left.bytes + gone[-1].bytes > disk


@given(FILES, st.integers(2, 8))
def test_merging_comes_to_an_end_and_leaves_few_files(
    pairs: list[tuple[int, int]], merge_files: int
) -> None:
    limits = StoreLimits(file_rows=2_000, merge_files=merge_files, age_us=24 * 1000 * HOUR_US)
    manifest, rewritten = some(pairs), 0
    while run := to_merge(manifest, limits):
        rows = sum(file.rows for file in run)
        assert len(run) >= merge_files
        assert rows <= limits.file_rows
        rewritten += rows
        ends = run[0].arrived, run[-1].arrived_last
        new = DataFile(f"m{rewritten}", rows, rows, 0, 1, *ends)
        manifest = manifest.with_merge([file.name for file in run], new)
    assert manifest.rows == sum(rows for rows, _ in pairs)
    assert rewritten <= manifest.rows * 11


def test_a_merge_does_not_span_what_is_evicted_at_different_times() -> None:
    limits = StoreLimits(age_us=24 * 2 * HOUR_US, merge_files=2)
    assert len(to_merge(some([(10, 10)] * 9), limits)) == 2


def test_much_that_waited_does_not_go_all_at_once(tmp_path: Path) -> None:
    """Eviction takes whole files, so none may be larger than what is left of the room."""
    limits, chance = StoreLimits(disk_bytes=60_000, merge_files=3), Random(7)
    with SiteStore(tmp_path, limits=limits) as store:
        ingest(store, [Value("a", "e", i, chance.random()) for i in range(20_000)])
        assert store.flush() == 20_000
        for _ in range(5):
            store.maintain()
        times = [value.time for value in everything(store)]
        assert times == list(range(20_000 - len(times), 20_000)), "the newest, and all of them"
        assert len(times) >= 2_000
        assert 30_000 <= store.state().disk_bytes <= 60_000
    with SiteStore(tmp_path, limits=limits) as store:
        assert [value.time for value in everything(store)] == times


def test_a_flush_of_several_files_that_fails_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, write = StoreLimits(disk_bytes=60_000), data_files.write
    with SiteStore(tmp_path, limits=limits) as store:
        ingest(store, [Value("a", "e", i, float(i)) for i in range(5_000)])

        def full(path: Path, *rest: Any) -> DataFile:
            if len(list(path.parent.iterdir())) >= 2:
                raise OSError(28, "no space")
            return write(path, *rest)

        monkeypatch.setattr(data_files, "write", full)
        with pytest.raises(StoreFull):
            store.flush()
        assert list((tmp_path / "data").iterdir()) == []
        monkeypatch.undo()
        assert store.flush() == 5_000
        assert numbers(store) == list(range(5_000))


def test_old_values_go_and_their_latest_too(tmp_path: Path) -> None:
    clock = Clock()
    limits = StoreLimits(age_us=HOUR_US)
    with SiteStore(tmp_path, limits=limits, clock=clock, steady=clock) as store:
        ingest(store, [Value("a", "e", 5, 1.0)])
        store.flush()
        clock.now += HOUR_US // 2
        ingest(store, [Value("b", "e", 5, 2.0)])
        store.flush()
        clock.now += HOUR_US // 2 + 1
        store.maintain()
        assert numbers(store) == [2]
        assert store.latest()["metric"].to_pylist() == ["b"]


def test_a_clock_that_jumps_does_not_empty_the_store(tmp_path: Path) -> None:
    clock, steady = Clock(), Clock(0)
    limits = StoreLimits(flush_rows=1, merge_files=1_000)
    with SiteStore(tmp_path, limits=limits, clock=clock, steady=steady) as store:
        for hour in range(48):
            ingest(store, [Value("a", f"e{hour}", hour, float(hour))])
            store.maintain()
            clock.now += HOUR_US
            steady.now += HOUR_US
        before = clock.now
        clock.now += 240 * HOUR_US
        store.maintain()
        assert (numbers(store), len(store.latest())) == (list(range(48)), 48)
        steady.now += HOUR_US
        store.maintain()
        assert numbers(store) == list(range(48)), "a day of an hour, of which none is due"
        clock.now = before + HOUR_US
        for _ in range(200):
            steady.now += HOUR_US // 2
            store.maintain()
        assert numbers(store) == list(range(48)), "the clock is right again, and stands still"
        clock.now += 240 * HOUR_US
        for _ in range(6):
            steady.now += HOUR_US
            store.maintain()
        assert 0 < len(numbers(store)) < 48
        steady.now += 4 * HOUR_US
        store.maintain()
        assert numbers(store) == []


def test_a_clock_that_is_wrong_at_a_start_does_not_empty_the_store(tmp_path: Path) -> None:
    clock, steady = Clock(), Clock(0)
    with SiteStore(tmp_path, clock=clock, steady=steady) as store:
        for number in range(2):
            ingest(store, [Value("a", "e", number, float(number))])
            store.flush()
            clock.now += 48 * HOUR_US
    clock.now += 1_000 * HOUR_US
    with SiteStore(tmp_path, clock=clock, steady=steady) as store:
        store.maintain()
        assert numbers(store) == [0, 1]
        steady.now += HOUR_US
        store.maintain()
        assert numbers(store) == [1]
        steady.now += 2 * HOUR_US
        store.maintain()
        assert numbers(store) == []


def test_the_disk_limit_holds(tmp_path: Path) -> None:
    limits = StoreLimits(disk_bytes=20_000, merge_files=1_000)
    with SiteStore(tmp_path, limits=limits) as store:
        for first in range(0, 20_000, 1_000):
            ingest(store, [Value("a", "e", i, float(i)) for i in range(first, first + 1_000)])
            store.flush()
            store.maintain()
            assert store.state().disk_bytes <= limits.disk_bytes
        found = numbers(store)
    assert found == list(range(found[0], 20_000))
    assert sum(file.stat().st_size for file in (tmp_path / "data").iterdir()) <= 20_000


def test_the_memory_limit_of_latest_gives_up_the_stalest(tmp_path: Path) -> None:
    clock = Clock()
    with SiteStore(tmp_path, limits=StoreLimits(latest_bytes=50_000), clock=clock) as store:
        for batch in range(20):
            clock.now += 1
            names = range(batch * 50, batch * 50 + 50)
            ingest(store, [Value(f"m{i}", "e", 1, f"text {i}") for i in names])
        state = store.state()
        assert state.latest_bytes <= 50_000
        left = sorted(int(name[1:]) for name in store.latest()["metric"].to_pylist())
    assert left == list(range(1_000 - len(left), 1_000))
    assert len(left) > 50


def run_beside(work: Callable[[], None], check: Callable[[], None]) -> None:
    """`check` again and again in two threads while `work` runs; raises what it raised."""
    ended, problems = threading.Event(), []

    def again() -> None:
        try:
            while not ended.is_set():
                check()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=again) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        work()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not problems, problems


@pytest.mark.site
def test_readers_see_every_value_once_while_files_change(tmp_path: Path) -> None:
    with SiteStore(tmp_path, limits=SMALL) as store:

        def work() -> None:
            for first in range(0, 2_000, 20):
                ingest(store, [Value("a", "e", i, float(i)) for i in range(first, first + 20)])
                store.maintain()

        def check() -> None:
            found = numbers(store)
            assert found == list(range(len(found)))
            counted = store.sql("SELECT count(*) AS n, count(DISTINCT value) AS d FROM history")
            assert counted["n"][0] == counted["d"][0]

        run_beside(work, check)
        assert numbers(store) == list(range(2_000))
        assert store.state().files < 20


def test_readers_beside_eviction_see_a_stretch_without_holes(tmp_path: Path) -> None:
    clock = Clock()
    limits = StoreLimits(age_us=10, flush_rows=1, merge_files=2, file_rows=1_000)
    with SiteStore(tmp_path, limits=limits, clock=clock, steady=clock) as store:

        def work() -> None:
            for first in range(0, 3_000, 20):
                clock.now += 1
                ingest(store, [Value("a", "e", i, float(i)) for i in range(first, first + 20)])
                store.maintain()

        def check() -> None:
            found = numbers(store)
            assert not found or found == list(range(found[0], found[-1] + 1))

        run_beside(work, check)
        assert numbers(store)[-1] == 2_999
        assert len(list((tmp_path / "data").iterdir())) == store.state().files


def test_files_stay_as_long_as_a_view_holds_them(tmp_path: Path) -> None:
    with SiteStore(tmp_path, limits=SMALL, clock=Clock()) as store:
        for number in range(3):
            ingest(store, [Value("a", "e", number, 1.0)])
            store.flush()
        with store._history.view() as view:
            store.maintain()
            assert store.state().files == 1
            assert all(Path(path).exists() for path in view.paths(0, 10))
        assert len(list((tmp_path / "data").iterdir())) == 1


def test_intake_does_not_wait_for_upkeep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, go_on = threading.Event(), threading.Event()
    original = data_files.write

    def slow(*arguments: object) -> DataFile:
        writing.set()
        assert go_on.wait(30)
        return original(*arguments)  # type: ignore[arg-type]

    with SiteStore(tmp_path, limits=SMALL) as store:
        ingest(store, [Value("a", "e", 1, 1.0)])
        monkeypatch.setattr(data_files, "write", slow)
        thread = threading.Thread(target=store.flush)
        thread.start()
        assert writing.wait(30)
        ingest(store, [Value("a", "e", 2, 2.0)])
        assert numbers(store) == [1, 2]
        go_on.set()
        thread.join()
        assert numbers(store) == [1, 2]


def test_a_full_disk_keeps_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, os.strerror(28))

    with SiteStore(tmp_path, limits=StoreLimits(wait_rows=2)) as store:
        ingest(store, [Value("a", "e", 1, 1.0)])
        with monkeypatch.context() as patch:
            patch.setattr(data_files, "write", full)
            with pytest.raises(StoreFull):
                store.flush()
            ingest(store, [Value("a", "e", 2, 2.0)])
            with pytest.raises(StoreFull):
                ingest(store, [Value("a", "e", 3, 3.0)])
        assert numbers(store) == [1, 2]
        store.flush()
        assert (numbers(store), store.state().waiting) == ([1, 2], 0)


def test_the_background_flushes_and_tells_its_problems(tmp_path: Path) -> None:
    with SiteStore(tmp_path, limits=StoreLimits(flush_rows=1)) as store:
        store.start()
        ingest(store, [Value("a", "e", START, 1.0)])
        done = threading.Event()
        while not store.state().rows:
            assert not done.wait(0.01)
        assert store.state().problem is None


@pytest.mark.parametrize("error", [FoglineError("not now"), MemoryError("not now")])
def test_a_round_that_failed_is_told_and_tried_again(error: Exception) -> None:
    rounds, told, done = [0], [], threading.Event()

    def work() -> None:
        rounds[0] += 1
        if rounds[0] == 1:
            raise error
        told.append(upkeep.problem)
        done.set()

    upkeep = Upkeep(work, 0.01)
    upkeep.start()
    assert done.wait(30)
    assert "not now" in told[0]
    upkeep.close()
    assert upkeep.problem is None


def test_one_store_per_folder(tmp_path: Path) -> None:
    with SiteStore(tmp_path), pytest.raises(StoreBusy):
        SiteStore(tmp_path)


@pytest.mark.parametrize("content", [b"", b"00000000\n{}", b"a3830d54\n{}x", b"\xff" * 50])
def test_a_damaged_manifest_changes_nothing(tmp_path: Path, content: bytes) -> None:
    with SiteStore(tmp_path) as store:
        ingest(store, [Value("a", "e", 1, 1.0)])
    for name in ("manifest", ".manifest.copy"):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreDamaged):
        SiteStore(tmp_path)
    assert len(list((tmp_path / "data").iterdir())) == 1


@pytest.mark.parametrize("wrong", [{"age_us": 0}, {"disk_bytes": -1}, {"merge_files": 1}])
def test_limits_that_make_no_sense(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        StoreLimits(**wrong)  # type: ignore[arg-type]


def test_a_store_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    for _ in range(2):
        with SiteStore(folder) as store:
            ingest(store, [Value("a", "e", 1, 1.0)])
        assert folder.stat().st_mode & 0o777 == 0o700
    with SiteStore(folder) as store:
        inside = [path for path in folder.rglob("*") if path.suffix not in (".db-wal", ".db-shm")]
        modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in inside}
        assert modes == {True: 0o700, False: 0o600}
