"""Damaged files of a store: the values of others are exact, and what is lost is told."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from pathlib import Path

import pytest

from fogline.common.state_files import copy_of, find_damaged
from fogline.storage.catalog.metadata import Description
from fogline.storage.errors import StoreDamaged
from fogline.storage.files.verify import AGAIN_US, Verified
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, with_seq
from tests.damage import DAMAGES, Damage
from tests.storage.kit import START, ingest, numbers

PART = 40
damages = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


def part(number: int) -> list[Value]:
    first = number * PART
    return [Value("cpu", f"e{i % 3}", START + i, float(i)) for i in range(first, first + PART)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three files of values and some application data."""
    folder = tmp_path_factory.mktemp("made") / "store"
    with SiteStore(folder) as store:
        for number in range(3):
            ingest(store, part(number))
            store.flush()
        store.metadata.put("cpu", Description(description="digits 0123456789" * 40))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "store"))


def data_files(folder: Path) -> list[Path]:
    return sorted((folder / "data").iterdir())


def expected(*parts: int) -> list[int]:
    return [i for number in parts for i in range(number * PART, (number + 1) * PART)]


@damages
def test_a_damaged_data_file_costs_its_own_values_only(folder: Path, damage: Damage) -> None:
    file = data_files(folder)[1]
    damage(file)
    for _ in range(2):
        with SiteStore(folder) as store:
            assert numbers(store) == expected(0, 2)
            (lost,) = store.state().lost
            assert (lost.name, lost.rows) == (file.name, PART)
            assert (lost.first, lost.last) == (START + PART, START + 2 * PART - 1)
            assert [path.name for path in store.damaged] == [file.name]


@damages
def test_a_file_that_is_damaged_while_the_store_runs(folder: Path, damage: Damage) -> None:
    with SiteStore(folder) as store:
        assert numbers(store) == expected(0, 1, 2)
        damage(data_files(folder)[0])
        store._history._verified._looked = -AGAIN_US
        assert numbers(store) == expected(1, 2)
        assert [lost.rows for lost in store.lost] == [PART]


def test_a_missing_data_file_is_lost(folder: Path) -> None:
    data_files(folder)[2].unlink()
    with SiteStore(folder) as store:
        assert numbers(store) == expected(0, 1)
        assert [lost.reason for lost in store.lost] == ["it is missing"]


def test_a_file_that_rots_is_found_within_a_day(folder: Path) -> None:
    """Its time and size do not change."""
    with SiteStore(folder) as store:
        file = data_files(folder)[1]
        before = file.stat()
        DAMAGES["flipped bit"](file)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        store._history._verified = Verified(folder / "data")
        for _ in range(3):
            store._history.verify_next()
        assert [lost.name for lost in store.lost] == [file.name]


def test_a_damaged_file_is_not_merged(folder: Path) -> None:
    with SiteStore(folder) as store:
        DAMAGES["flipped bit"](data_files(folder)[0])
        store._history.merge(store._history.manifest.files)
        assert len(store._history.manifest.files) == 2
        store._history.merge(store._history.manifest.files)
        assert numbers(store) == expected(1, 2)
        assert [lost.rows for lost in store.lost] == [PART]


def test_lost_values_are_taken_back_once(folder: Path, made: Path, tmp_path: Path) -> None:
    with SiteStore(Path(shutil.copytree(made, tmp_path / "other"))) as other:
        tables = [with_seq(other.changes(-1, None, 1_000).table)]
        DAMAGES["half"](data_files(folder)[1])
        with SiteStore(folder) as store:
            (lost,) = store.lost
            assert store.take_back(lost, tables) == PART
            assert numbers(store) == expected(0, 1, 2)
            assert (store.lost, store.damaged) == ((), [])
    with SiteStore(folder) as store:
        assert numbers(store) == expected(0, 1, 2)


@damages
def test_a_damaged_manifest_is_read_from_its_copy(folder: Path, damage: Damage) -> None:
    damage(folder / "manifest")
    with SiteStore(folder) as store:
        assert numbers(store) == expected(0, 1, 2)
    assert len(list(find_damaged([folder]))) == 1


@damages
def test_with_both_manifests_damaged_it_does_not_open(folder: Path, damage: Damage) -> None:
    damage(folder / "manifest")
    damage(copy_of(folder / "manifest"))
    with pytest.raises(StoreDamaged, match="manifest is damaged"):
        SiteStore(folder)
    assert len(data_files(folder)) == 3


@damages
def test_a_damaged_database_is_named(folder: Path, damage: Damage) -> None:
    damage(folder / "tables.db")
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"tables\.db is damaged.*restore"):
            SiteStore(folder)


def test_a_database_that_was_not_closed_is_read(folder: Path) -> None:
    """After a crash there is no seal; what SQLite finds is told."""
    (folder / ".tables.db.seal").unlink()
    with SiteStore(folder) as store:
        assert store.metadata.get("cpu") is not None
    (folder / ".tables.db.seal").unlink()
    DAMAGES["zeroed page"](folder / "tables.db")
    with pytest.raises(StoreDamaged, match=r"tables\.db is damaged"):
        SiteStore(folder)


def test_files_of_an_older_manifest_are_read_once(folder: Path) -> None:
    """They have no checksum: what cannot be decoded is found."""
    body = json.loads((folder / "manifest").read_bytes().partition(b"\n")[2])
    body["version"] = 2
    del body["lost"]
    for file in body["files"]:
        del file["crc"]
    text = json.dumps(body)
    (folder / "manifest").write_text(f"{zlib.crc32(text.encode()):08x}\n{text}")
    copy_of(folder / "manifest").unlink()
    DAMAGES["half"](data_files(folder)[0])
    with SiteStore(folder) as store:
        assert numbers(store) == expected(1, 2)
