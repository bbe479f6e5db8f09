"""Ranges, aggregates and latest values against a plain list, whatever was flushed or merged."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fogline.storage.limits import StoreLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import END_TIME, FIRST_TIME, Value, to_values
from tests.storage.kit import everything, ingest, same, same_values

NAMES = st.sampled_from(
    ["cpu", "cpu_a", "cpu_b", "cpu%", "温度", "a\u0000b", "é", "e\u0301", "'", ""]
)
METRICS = st.one_of(NAMES, st.text(st.characters(codec="utf-8"), max_size=4))
TIMES = st.one_of(
    st.integers(0, 20),
    st.integers(-3_000_000, 3_000_000),
    st.integers(FIRST_TIME, END_TIME - 1),
)
NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 5).map(float), st.just(1e308)
)
VALUES = st.builds(
    Value,
    metric=METRICS,
    entity=NAMES,
    time=TIMES,
    value=st.one_of(NUMBERS, st.text(st.characters(codec="utf-8"), max_size=5)),
    labels=st.dictionaries(
        st.sampled_from(["k", "ü"]), st.sampled_from(["", "v", '"']), max_size=2
    ),
)
STEPS = st.lists(st.one_of(st.just("flush"), st.lists(VALUES, max_size=12)), max_size=6)
LIMITS = StoreLimits(merge_files=2)


@dataclass(frozen=True)
class Question:
    metrics: list[str] | None
    entities: list[str] | None
    start: int | None
    end: int | None

    def takes(self, value: Value) -> bool:
        return (
            _names(self.metrics)(value.metric)
            and _names(self.entities)(value.entity)
            and (self.start is None or value.time >= self.start)
            and (self.end is None or value.time < self.end)
        )


def _names(patterns: list[str] | None) -> Callable[[str], bool]:
    def one(pattern: str, name: str) -> bool:
        if pattern.endswith("\\%"):
            return name == pattern[:-2] + "%"
        return name.startswith(pattern[:-1]) if pattern.endswith("%") else name == pattern

    return lambda name: patterns is None or any(one(pattern, name) for pattern in patterns)


PATTERNS = st.none() | st.lists(
    st.sampled_from(["cpu", "cpu_%", "cpu\\%", "温%", "%", "e%", "'", "", "no such"]), max_size=3
)
BOUNDS = st.none() | TIMES | st.sampled_from([-(10**30), 10**30, 0])
QUESTIONS = st.builds(Question, PATTERNS, PATTERNS, BOUNDS, BOUNDS)


def filled(folder: str, steps: list[str | list[Value]]) -> tuple[SiteStore, list[Value]]:
    store, known = SiteStore(Path(folder), limits=LIMITS, clock=lambda: 1), []
    for step in steps:
        if isinstance(step, str):
            store.flush()
            store.maintain()
        else:
            ingest(store, step)
            known += step
    return store, known


def wanted(known: list[Value], question: Question, descending: bool = False) -> list[Value]:
    pairs = [(value.time, place) for place, value in enumerate(known) if question.takes(value)]
    return [known[place] for _, place in sorted(pairs, reverse=descending)]


@given(STEPS, QUESTIONS, st.integers(1, 7), st.booleans())
def test_ranges_by_pages(
    steps: list[str | list[Value]], question: Question, limit: int, descending: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, known = filled(folder, steps)
        with store:
            found = everything(store, limit, **vars(question), descending=descending)
        assert same_values(found, wanted(known, question, descending))


@given(STEPS, QUESTIONS, st.sampled_from([1, 7, 1_000_000, 1 << 59]))
def test_aggregates(steps: list[str | list[Value]], question: Question, bucket: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, known = filled(folder, steps)
        with store:
            rows = store.aggregate(bucket, **vars(question))
    groups: dict[tuple[int, str, str], list[float]] = {}
    for value in wanted(known, question):
        if isinstance(value.value, float):
            begin = max(value.time // bucket * bucket, FIRST_TIME)
            key = begin, value.metric, value.entity
            groups.setdefault(key, []).append(value.value)
    times = rows["time"].cast("int64").to_pylist()
    keys = list(zip(times, rows["metric"].to_pylist(), rows["entity"].to_pylist(), strict=True))
    assert keys == sorted(groups)
    for key, row in zip(keys, rows.to_pylist(), strict=True):
        check_group(row, groups[key])


def check_group(row: dict[str, object], values: list[float]) -> None:
    assert row["count"] == len(values)
    assert same(row["first"], values[0])
    assert same(row["last"], values[-1])
    assert same(row["min"], min(values, key=nan_is_greatest))
    assert same(row["max"], max(values, key=nan_is_greatest))
    scale = sum(abs(value) for value in values)
    if math.isfinite(scale):
        total, mean = row["sum"], row["avg"]
        assert isinstance(total, float)
        assert isinstance(mean, float)
        assert math.isclose(total, math.fsum(values), abs_tol=scale * 1e-12)
        assert math.isclose(mean, math.fsum(values) / len(values), abs_tol=scale * 1e-12)


def nan_is_greatest(value: float) -> tuple[bool, float]:
    return math.isnan(value), 0.0 if math.isnan(value) else value


@given(STEPS, QUESTIONS, st.booleans())
def test_latest_also_after_opening_again(
    steps: list[str | list[Value]], question: Question, again: bool
) -> None:
    newest: dict[tuple[str, str], Value] = {}
    with tempfile.TemporaryDirectory() as folder:
        store, known = filled(folder, steps)
        if again:
            store.close()
            store = SiteStore(Path(folder), limits=LIMITS, clock=lambda: 1)
        with store:
            found = to_values(store.latest(question.metrics, question.entities))
    for value in known:
        key = value.metric, value.entity
        if key not in newest or value.time >= newest[key].time:
            newest[key] = value
    always = Question(question.metrics, question.entities, None, None)
    expected = [value for value in newest.values() if always.takes(value)]
    assert same_values(sorted(found, key=by_key), sorted(expected, key=by_key))


def by_key(value: Value) -> tuple[str, str]:
    return value.metric, value.entity
