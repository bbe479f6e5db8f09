"""Whatever the text is: a composition, or a PipelineError; quickly, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fogline.common.errors import PipelineError, Problem
from fogline.deploy.manifest.composition import JOB_FIELDS, TOP_FIELDS, read_composition
from fogline.deploy.manifest.deployment_plan import read_deployment_plan
from fogline.deploy.manifest.manifest import Composition
from fogline.deploy.manifest.problems import MOST
from fogline.deploy.resolve.resolve import resolve
from tests.deploy.kit import SITES, AnyCode, no_complaint, sample

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
TEXTS = {
    "bomb": BOMB,
    "bomb in parameters": BOMB + "jobs: [{name: A, parameters: {p: *i}, steps: [{op: *i}]}]",
    "merged bomb": "a: &a {x: 1}\nb: &b {<<: [*a, *a]}\njobs: [{<<: *b, <<: *b}]",
    "recursive": "jobs: &a [*a]",
    "recursive mapping": "&a {jobs: *a}",
    "unknown alias": "jobs: *nobody",
    "deep flow": "[" * 100_000,
    "deep mapping": "{a: " * 100_000,
    "deep block": "".join(" " * depth + "a:\n" for depth in range(2000)),
    "deep lists": "- " * 50_000 + "x",
    "large": "jobs: [" + "x, " * 1_700_000 + "]",
    "one long word": "x" * (4 << 20),
    "many values": "jobs: [" + "[]," * 600_000 + "]",
    "many problems": "jobs: [" + "{a: b}," * 30_000 + "]",
    "tabs": "\tjobs:\n\t- x",
    "binary": "\x00\x01\x02\xff",
    "control": "jobs: \x07",
    "surrogate": "jobs: \ud800",
    "tags": "jobs: !!python/object/apply:os.system [echo]",
    "binary tag": "jobs: !!binary aGVsbG8=",
    "complex key": "? [a, b]\n: c",
    "number keys": "{1: 2, null: 3, true: 4, 1.5: 6}",
    "huge number": "jobs: [{name: A, parameters: {x: " + "9" * 5000 + ", y: 1e999}}]",
    "line separators": "jobs:\u2028- name: A\x85  site: b",
    "bom": "\ufeffjobs: [x]",
    "carriage returns": "jobs:\r\n- name: [\r\n",
    "only dashes": "-----",
    "nothing": "",
}
READERS: tuple[Callable[[str], Composition], ...] = (read_composition, read_deployment_plan)
READER_NAMES = ("composition", "deployment-plan")


def problems_of(read: Callable[[str], Composition], text: str) -> tuple[Problem, ...]:
    try:
        resolve(read(text), SITES, AnyCode(), no_complaint, {})
    except PipelineError as error:
        return error.problems
    return ()


def attempt(read: Callable[[str], Composition], text: str) -> None:
    problems = problems_of(read, text)
    assert len(problems) <= MOST + 1
    assert all(problem.line >= 1 and problem.column >= 1 for problem in problems)
    json.dumps([problem.as_json() for problem in problems])


@pytest.mark.parametrize("read", READERS, ids=READER_NAMES)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_hostile_texts(text: str, read: Callable[[str], Composition]) -> None:
    start = perf_counter()
    attempt(read, text)
    assert problems_of(read, text)
    assert perf_counter() - start < 30


def code_of(text: str, read: Callable[[str], Composition] = read_composition) -> str:
    return problems_of(read, text)[0].code


def test_limits_have_names() -> None:
    assert code_of(BOMB) == "TOO_LARGE"
    assert code_of("x" * (5 << 20)) == "TOO_LARGE"
    assert code_of("[" * 1000) == "TOO_DEEP"
    assert code_of("jobs: &a [*a]") == "SYNTAX"
    assert code_of("[" * 1000, read_deployment_plan) == "SYNTAX"


# ── made-up texts ───────────────────────────────────────────────────────────────────────────────

words = st.one_of(
    st.sampled_from(["a", "gw", "t", "m:f", "m.py", "x.ins", "a/#", "mqtt://10.0.0.1:1883", ""]),
    st.text(max_size=8),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(),
)
keys = st.one_of(
    st.sampled_from([*TOP_FIELDS, *JOB_FIELDS, "topic", "site", "broker", "op"]),
    st.text(max_size=4),
)
plan_keys = st.one_of(
    st.sampled_from(["Computation", "Operation", "Operations", "Placement", "OP-ID", "P ID"]),
    st.sampled_from(["node", "metadata", "ID", "task", "Type", "binary", "Arguments", "source"]),
    st.sampled_from(["target", "publish.topic", "suscribe.topic", "main.class", "topic"]),
)


def trees(names: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    def deeper(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        return st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=6))

    return st.recursive(words, deeper, max_leaves=25)


compositions = st.fixed_dictionaries(
    {"jobs": st.lists(st.dictionaries(keys, trees(keys), max_size=8), max_size=3)}
)
many = settings(suppress_health_check=list(HealthCheck))


@many
@given(st.one_of(compositions, trees(keys)))
def test_any_structure_as_a_composition(tree: object) -> None:
    attempt(read_composition, json.dumps(tree))


@many
@given(trees(plan_keys))
def test_any_structure_as_a_deployment_plan(tree: object) -> None:
    attempt(read_deployment_plan, json.dumps({"Computation": [{"Operation": tree}, tree]}))


@many
@given(
    st.text(
        alphabet=st.sampled_from(list("jobs:- \n\t[]{}&*a!|>'\"#,?%@`\\x0\u2028é")), max_size=60
    )
)
def test_any_text(text: str) -> None:
    for read in READERS:
        attempt(read, text)


LISTINGS = [(read_composition, sample("listing-1.1.yaml"))]
LISTINGS.append((read_deployment_plan, sample("listing-a.1.json")))


@many
@given(
    st.sampled_from(LISTINGS),
    st.integers(0, 4000),
    st.integers(0, 30),
    st.text(alphabet=st.sampled_from(list("ab:-\n []{},\"'0#")), max_size=6),
)
def test_damaged_listings(
    listing: tuple[Callable[[str], Composition], str], start: int, length: int, put: str
) -> None:
    read, text = listing
    place = start % len(text)
    attempt(read, text[:place] + put + text[place + length :])
