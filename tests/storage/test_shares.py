"""A share of the values: by their content, so it is the same wherever it is asked for."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest

from fogline.storage.errors import BadQuery
from fogline.storage.store import SiteStore
from fogline.storage.values import Value
from tests.storage.kit import SMALL, START, ingest

MANY = 20_000


def values(count: int) -> list[Value]:
    return [Value(f"m{i % 7}", f"e{i % 11}", START + i, float(i)) for i in range(count)]


def ranged(store: SiteStore, share: float, **more: Any) -> set[float]:
    found = store.rows(limit=MANY, share=share, **more)["value"].to_pylist()
    assert len(set(found)) == len(found)
    return set(found)


def followed(store: SiteStore, share: float, limit: int = 300) -> set[float]:
    found: list[float] = []
    after, end = -1, False
    while not end:
        page = store.changes(after, None, limit, share)
        found += page.table["value"].to_pylist()
        after, end = page.last, page.end
    assert len(set(found)) == len(found)
    return set(found)


def test_shares_are_as_large_as_they_say_and_lie_in_each_other(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        ingest(store, values(MANY))
        shares = [1e-9, 0.05, 0.3, 0.5, 0.999, 1.0]
        found = [ranged(store, share) for share in shares]
        for share, some in zip(shares, found, strict=True):
            deviation = math.sqrt(MANY * share * (1 - share))
            assert abs(len(some) - share * MANY) <= 5 * deviation + 1
        assert all(one <= other for one, other in itertools.pairwise(found))


def test_the_same_ones_in_memory_on_disk_and_in_another_store(tmp_path: Path) -> None:
    some = values(5_000)
    with SiteStore(tmp_path / "a", limits=SMALL) as store, SiteStore(tmp_path / "b") as other:
        ingest(store, some)
        store.flush()
        ingest(other, some[::-1])
        waiting = ranged(other, 0.4)
        other.flush()
        assert waiting == ranged(other, 0.4) == ranged(store, 0.4) == followed(store, 0.4)
        assert followed(other, 0.4) == waiting
        assert ranged(store, 0.4, metrics="m3") == {v for v in waiting if v % 7 == 3}


def test_pages_of_a_share_go_on_behind_each_other(tmp_path: Path) -> None:
    with SiteStore(tmp_path, limits=SMALL) as store:
        ingest(store, values(3_000))
        store.flush()
        assert followed(store, 0.2, limit=1) == followed(store, 0.2) == ranged(store, 0.2)


def test_texts_odd_numbers_and_equal_values(tmp_path: Path) -> None:
    """What is equal is kept or left out together."""
    odd = [math.nan, math.inf, -math.inf, -0.0, 1e308, "text", "", "温度\x00"]
    with SiteStore(tmp_path) as store:
        ingest(store, [Value(f"odd{i % 3}", "e", START, odd[i % 8]) for i in range(240)])
        assert len(store.rows(limit=1_000, share=0.999999)) == 240
        kept = store.rows(limit=1_000, share=0.5)
        assert len(kept) % 10 == 0
        assert 0 < len(kept) < 240


@pytest.mark.parametrize("share", [0.0, -0.1, 1.0001, math.nan, math.inf, -math.inf])
def test_what_is_no_share(tmp_path: Path, share: float) -> None:
    with SiteStore(tmp_path) as store:
        with pytest.raises(BadQuery, match="share"):
            store.rows(share=share)
        with pytest.raises(BadQuery, match="share"):
            store.changes(share=share)
