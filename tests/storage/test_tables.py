"""Metadata that sites agree on, and spaces of the user's own."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.storage.catalog.database import Database
from fogline.storage.catalog.metadata import Description, Metadata, MetadataStore
from fogline.storage.catalog.spaces import Space, SpaceRow
from fogline.storage.errors import BadQuery, BadValue
from fogline.storage.limits import StoreLimits
from fogline.storage.store import SiteStore
from tests.storage.kit import START, Clock

COLUMNS = {"load": "number", "jobs": "integer", "note": "text", "up": "boolean"}


def test_metadata_is_kept_and_versions_grow(tmp_path: Path) -> None:
    with SiteStore(tmp_path, "north") as store:
        store.metadata.put("cpu", Description(unit="%", extra={"k": "ü"}))
        store.metadata.put("cpu", Description(unit="1", minimum=0.0, higher_is_better=False))
        store.metadata.put("cpu", Description(unit="MHz"), "e1")
    with SiteStore(tmp_path, "north") as store:
        found = store.metadata.get("cpu")
        assert found is not None
        assert (found.version, found.origin, found.description.unit) == (2, "north", "1")
        special, other = store.metadata.get("cpu", "e1"), store.metadata.get("cpu", "e2")
        assert special is not None
        assert special.description.unit == "MHz"
        assert other == found
        assert [item.metric for item in store.metadata.find("cp%")] == ["cpu", "cpu"]
        store.metadata.remove("cpu")
        assert store.metadata.get("cpu") is None
        assert store.metadata.get("nothing") is None


def test_thirteen_fields_and_a_map() -> None:
    assert len(Description.__dataclass_fields__) == 13 + 1


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.booleans()), max_size=20),
       st.randoms(use_true_random=False))  # fmt: skip
def test_sites_agree_whatever_the_order(
    edits: list[tuple[int, str, bool]], chance: random.Random
) -> None:
    sites = [MetadataStore(Database(None), name) for name in ("north", "south", "west")]
    for number, (place, metric, remove) in enumerate(edits):
        if remove:
            sites[place].remove(metric)
        else:
            sites[place].put(metric, Description(unit=str(number)))
        if chance.random() < 0.3:
            one, other = chance.sample(sites, 2)
            one.merge(other.changes(0)[0])
    told = [site.changes(0)[0] for site in sites]
    for site in sites:
        for changes in chance.sample(told, 3):
            site.merge(chance.sample(changes, len(changes)))
            site.merge(changes)
    assert sites[0].find() == sites[1].find() == sites[2].find()


def test_changes_are_told_in_order_and_once() -> None:
    store = MetadataStore(Database(None), "north")
    for name in "abcab":
        store.put(name, Description())
    first, since = store.changes(0, 2)
    rest, since = store.changes(since, 10)
    assert [item.metric for item in first + rest] == ["c", "a", "b"]
    assert store.changes(since) == ([], since)
    assert store.merge(first + rest) == 0


@pytest.mark.parametrize("version", [0, -1, 1 << 60])
def test_metadata_that_makes_no_sense(version: int) -> None:
    store = MetadataStore(Database(None), "north")
    good = Metadata("cpu", "", Description(), 1, "south")
    with pytest.raises(BadQuery):
        store.merge([replace(good, version=version)])
    for wrong in ({"metric": ""}, {"metric": "x" * 2_000}, {"origin": "\ud800"}):
        with pytest.raises(BadValue):
            store.merge([replace(good, **wrong)])  # type: ignore[arg-type]
    with pytest.raises(BadValue):
        store.put("cpu", Description(description="x" * 100_000))


@pytest.mark.parametrize("persistent", [False, True])
def test_a_space_from_put_to_delete(tmp_path: Path, persistent: bool) -> None:
    with SiteStore(tmp_path) as store:
        spaces = store.spaces
        spaces.create(Space("app", COLUMNS, persistent))
        spaces.create(Space("app", COLUMNS, persistent))
        fields = {"load": 0.5, "jobs": 2**62, "note": "é", "up": True}
        spaces.put(
            "app", [SpaceRow("a", 3, fields), SpaceRow("a", 1), SpaceRow("b", 2, {"load": 1})]
        )
        spaces.put("app", [SpaceRow("a", 1, {"note": "again"})])
        assert spaces.get("app", "a") == SpaceRow("a", 3, fields)
        assert spaces.get("app", "c") is None
        assert [row.time for row in spaces.range("app")] == [1, 2, 3]
        assert [row.time for row in spaces.range("app", "a", 1, 3)] == [1]
        assert [row.time for row in spaces.range("app", limit=2, descending=True)] == [3, 2]
        assert spaces.range("app", "a", 0, 2)[0].fields["note"] == "again"
        assert spaces.delete("app", "a", end=2) == 1
    with SiteStore(tmp_path) as store:
        assert [space.name for space in store.spaces.all()] == (["app"] if persistent else [])
        if persistent:
            assert [row.key for row in store.spaces.range("app")] == ["b", "a"]
            store.spaces.drop("app")
        with pytest.raises(BadQuery):
            store.spaces.range("app")


def test_spaces_keep_within_their_limits(tmp_path: Path) -> None:
    with SiteStore(tmp_path, clock=lambda: 1_000) as store:
        store.spaces.create(Space("old", COLUMNS, age_us=100))
        store.spaces.create(Space("many", COLUMNS, persistent=True, rows=3))
        for name in ("old", "many"):
            store.spaces.put(name, [SpaceRow("k", time) for time in (1, 899, 900, 950, 999)])
        store.maintain()
        assert [row.time for row in store.spaces.range("old")] == [900, 950, 999]
        assert [row.time for row in store.spaces.range("many")] == [900, 950, 999]


@pytest.mark.parametrize("name", ["", "A", "1a", "a b", "a;drop", 'a"', "é", "a" * 64, "key\n"])
def test_hostile_names_of_spaces_and_columns(name: str) -> None:
    with pytest.raises(BadValue):
        Space(name, COLUMNS)
    with pytest.raises(BadValue):
        Space("app", {name: "number"})


@pytest.mark.parametrize("columns", [{}, {"key": "text"}, {"a": "blob"}])
def test_columns_that_make_no_sense(columns: dict[str, str]) -> None:
    with pytest.raises(BadValue):
        Space("app", columns)


@pytest.mark.parametrize(
    "row",
    [
        SpaceRow("k" * 2_000, 1), SpaceRow("k", 1 << 70), SpaceRow("k", 1, {"other": 1}),
        SpaceRow("k", 1, {"load": "x"}),
        SpaceRow("k", 1, {"load": float("nan")}), SpaceRow("k", 1, {"load": 10**400}),
        SpaceRow("k", 1, {"jobs": 1.5}), SpaceRow("k", 1, {"jobs": 1 << 63}),
        SpaceRow("k", 1, {"up": 1}),
        SpaceRow("k", 1, {"note": "x" * 70_000}), SpaceRow("k", 1, {"jobs": True}),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_change_nothing(tmp_path: Path, row: SpaceRow) -> None:
    with SiteStore(tmp_path) as store:
        store.spaces.create(Space("app", COLUMNS))
        with pytest.raises(BadValue):
            store.spaces.put("app", [SpaceRow("good", 1), row])
        assert store.spaces.range("app") == []
        with pytest.raises(BadValue):
            store.spaces.create(Space("app", {"a": "text"}))
        with pytest.raises(BadQuery):
            store.spaces.range("app", limit=0)


def test_rows_on_disk_go_by_the_age_of_the_store_since_they_came(tmp_path: Path) -> None:
    clock, limits = Clock(), StoreLimits(age_us=1_000)
    with SiteStore(tmp_path, limits=limits, clock=clock, steady=clock) as store:
        for name, persistent in (("disk", True), ("memory", False)):
            store.spaces.create(Space(name, COLUMNS, persistent))
            store.spaces.put(name, [SpaceRow("old", 5)])
        clock.now += 900
        store.spaces.put("disk", [SpaceRow("new", 5)])
        clock.now += 101
        store.maintain()
        assert [row.key for row in store.spaces.range("disk")] == ["new"]
        assert [row.key for row in store.spaces.range("memory")] == ["old"]


@pytest.mark.parametrize("persistent", [False, True])
def test_spaces_without_limits_of_their_own_keep_to_those_of_the_store(
    tmp_path: Path, persistent: bool
) -> None:
    clock, limits = Clock(), StoreLimits(disk_bytes=2 << 20, latest_bytes=2 << 20)
    with SiteStore(tmp_path, limits=limits, clock=clock) as store:
        spaces, sizes = store.spaces, []
        for name in ("one", "two"):
            spaces.create(Space(name, COLUMNS, persistent))
        for part in range(20):
            clock.now += 1
            rows = [SpaceRow(f"{part}-{i}", 7, {"note": "x" * 500}) for i in range(250)]
            spaces.put(("one", "two")[part % 2], rows)
            store.maintain()
            sizes.append(spaces.bytes(persistent))
        assert 1 << 19 < sizes[-1] <= 1 << 20
        assert spaces.get("two", "19-249") is not None
        assert spaces.get("one", "0-0") is None


def test_eviction_looks_first_and_works_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[int] = []
    original = Database.run

    def noted(self: Database, statement: str, values: tuple[object, ...] = ()) -> int:
        changed.append(original(self, statement, values))
        return changed[-1]

    with SiteStore(tmp_path) as store:
        store.spaces.create(Space("app", COLUMNS, rows=500))
        store.spaces.put("app", [SpaceRow("k", i) for i in range(5_500)])
        monkeypatch.setattr(Database, "run", noted)
        assert store.spaces.evict(START) == 5_000
        assert max(changed) <= 1_000
        assert [row.time for row in store.spaces.range("app", limit=2)] == [5_000, 5_001]
        asked: list[str] = []
        monkeypatch.setattr(Database, "ask", lambda self, query, *_: asked.append(query) or [(0,)])
        assert store.spaces.evict(START) == 0
        assert not [query for query in asked if "count" in query.replace("_count", "")]


def test_rows_of_an_older_version_are_kept(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        store.spaces.create(Space("app", {"note": "text"}, persistent=True))
        database = store._databases[0]
        database.run('DROP TABLE "space_app"')
        old = "key TEXT, time INTEGER, note TEXT, PRIMARY KEY (key, time)"
        database.run(f'CREATE TABLE "space_app" ({old}) WITHOUT ROWID')
        database.run("INSERT INTO space_app VALUES ('k', 1, 'x')")
    with SiteStore(tmp_path) as store:
        store.spaces.put("app", [SpaceRow("k", 2)])
        store.maintain()
        assert [row.fields["note"] for row in store.spaces.range("app")] == ["x", None]
