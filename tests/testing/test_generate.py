"""The generator makes what it promises."""

from __future__ import annotations

import random

import pytest

from fogline.language import parse
from fogline.language.functions import FUNCTIONS
from fogline.testing.generate import LATENESS, NAMED_SOURCE, case
from fogline.testing.reference import evaluate

SEEDS = range(150)


@pytest.mark.parametrize("named", ["", NAMED_SOURCE])
def test_texts_parse_and_the_same_seed_gives_the_same_case(named: str) -> None:
    for seed in SEEDS:
        made = case(seed, named=named)
        assert len(parse(made.text).insights) >= 4
        assert case(seed, named=named) == made


def test_every_function_and_clause_turns_up() -> None:
    texts = "\n".join(case(seed).text.upper() for seed in SEEDS)
    assert [name for name in FUNCTIONS if f"{name}(" not in texts and f"{name}[" not in texts] == []
    for words in ("BY ", "WHEN ", "EVERY ", "WITH ", "SESSION ", "EVENTS", "INSIGHT ", "IN ("):
        assert words in texts


def test_records_are_out_of_order_by_less_than_the_lateness() -> None:
    disorder = []
    for seed in SEEDS:
        times = [record["time"] for record in case(seed).records]
        newest = [max(times[: i + 1]) for i in range(len(times))]
        disorder.append(max(n - t for n, t in zip(newest, times, strict=True)))
    assert 0 < max(disorder) < LATENESS


def test_without_ties_all_times_differ() -> None:
    times = [record["time"] for record in case(1, size=500, ties=False).records]
    assert len(set(times)) == len(times)
    assert len({record["time"] for record in case(1, size=500).records}) < 500


@pytest.mark.parametrize("named", ["", NAMED_SOURCE])
def test_the_reference_does_not_care_about_the_order_of_arrival(named: str) -> None:
    emitted = 0
    for seed in range(25):
        made = case(seed, named=named, size=40)
        query = parse(made.text)
        found = evaluate(query, made.records)
        shuffled = random.Random(seed).sample(made.records, len(made.records))
        assert evaluate(query, shuffled) == found
        emitted += len(found)
    assert emitted > 1000
