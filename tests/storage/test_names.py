"""Names in questions, and the latest values that are found by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fogline.storage.errors import BadQuery
from fogline.storage.names import MAX_NAMES, Patterns, parse_all
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, to_values
from tests.storage.kit import START, ingest


@pytest.mark.parametrize(
    ("names", "exact", "prefixes"),
    [
        ((), (), ()),
        ("cpu", ("cpu",), ()),
        ("cpu_%", (), ("cpu_",)),
        ("%", (), ("",)),
        ("100\\%", ("100%",), ()),
        (["a", "b%", "a", "c\\%", "d%e", ""], ("a", "a", "d%e", "", "c%"), ("b",)),
    ],
)
def test_names(names: str | Sequence[str], exact: tuple[str, ...], prefixes: tuple[str]) -> None:
    assert parse_all(names) == Patterns(exact, prefixes)


def test_nothing_stands_for_all_and_no_names_for_none() -> None:
    assert parse_all(None) is None
    none, one = parse_all([]), parse_all(["a", "b%"])
    assert none is not None
    assert one is not None
    assert (bool(none), bool(one)) == (False, True)
    assert [name for name in ("a", "ab", "b", "bc", "") if one.matches(name)] == ["a", "b", "bc"]
    assert not none.matches("")


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["a", "\ud83d", "\ude00"], "half a character"),
        (["a", 1], "not int"),
        (["a", None], "not NoneType"),
        (["a", "x" * 1_027], "longer"),
        (["a", "é" * 514], "longer"),
        (["a"] * (MAX_NAMES + 1), "more than"),
    ],
)
def test_what_is_no_name(names: Any, why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        parse_all(names)
    assert parse_all(["x" * 1_026, "é" * 513]) is not None


def test_latest_values_by_many_names(tmp_path: Path) -> None:
    """Names that come later are found too, unknown and repeated ones do no harm."""
    with SiteStore(tmp_path) as store:
        for first in (0, 100):
            ingest(store, [_value(number) for number in range(first, first + 100)])
            known = range(first + 100)
            asked = [f"m{number}" for number in (*reversed(known), 5, 10**6)]
            assert _found(store, asked) == sorted(map(_value, known), key=_name)
            assert _found(store, asked, ["e1"]) == sorted(map(_value, known[1::3]), key=_name)
            tens = sorted(map(_value, (1, *range(10, 20), *known[100:])), key=_name)
            assert _found(store, ["m1%", "m7", "m1"]) == sorted([*tens, _value(7)], key=_name)
            assert _found(store, []) == []


def test_latest_values_of_every_kind_side_by_side(tmp_path: Path) -> None:
    with SiteStore(tmp_path) as store:
        plain = [Value("a", "e", START, 1.5), Value("b", "e", START, float("inf"))]
        ingest(store, plain)
        assert _found(store, ["a", "b"]) == plain
        mixed = [
            Value("b", "e", START, "", {"k": "v"}),
            Value("c", "e", START, "text"),
            Value("d", "e", START, 2.0, {"k": "v"}),
        ]
        ingest(store, mixed)
        assert _found(store, ["a", "b", "c", "d"]) == [plain[0], *mixed]
        ingest(store, [Value("b", "e", START + 1, 3.0)])
        assert _found(store, ["b"]) == [Value("b", "e", START + 1, 3.0)]


def _value(number: int) -> Value:
    return Value(f"m{number}", f"e{number % 3}", START + number, float(number))


def _name(value: Value) -> str:
    return value.metric


def _found(store: SiteStore, metrics: list[str], entities: list[str] | None = None) -> list[Value]:
    return sorted(to_values(store.latest(metrics, entities)), key=_name)
