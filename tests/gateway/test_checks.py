"""What a gateway is asked to run, looked at before anything is done."""

from __future__ import annotations

import pytest

from fogline.common.errors import DataError
from fogline.gateway.jobs.checks import read_assignments, steps_problem


def test_what_is_wrong_with_steps_is_told() -> None:
    right = [{"op": "publish", "rate": 1}]
    assert steps_problem(right, {"format": "json"}, {}) == ""
    assert "no operator 'fly'" in steps_problem([{"op": "fly"}], {}, {})
    assert "rate" in steps_problem(right, {"format": "json"}, {"publish.rate": "often"})


@pytest.mark.parametrize("steps", [[{"op": {1}}], [1], [{"op": "filter", "where": object()}]])
def test_steps_that_cannot_be_read_are_told(steps: list[dict[str, object]]) -> None:
    assert steps_problem(steps, {}, {})


def told(job: object, **more: object) -> dict[str, object]:
    steps = [{"op": "publish", "rate": 1}]
    return {"job": job, "work": {"steps": steps}, "reads": [{"topic": "in"}], **more}


def test_assignments_are_read_with_their_names_and_the_types_of_their_parameters() -> None:
    first, second = read_assignments([told("a"), told("b")])
    (third,) = read_assignments([told("c", parameters={"publish.rate": 2})])
    assert (first.job, second.job, third.job) == ("a", "b", "c")
    assert first.parameters == second.parameters
    assert first.work == third.work
    assert first.computes_like(third)
    kept = [
        read_assignments([told("a", parameters={"publish.rate": n})])[0].parameters
        for n in (1, 1.0)
    ]
    assert [type(found["publish.rate"]) for found in kept] == [int, float]


def test_what_is_wrong_is_told_of_each() -> None:
    wrong = [told("a", reads=[]), told("a/b"), told("c", reads=[]), {"work": {}}, 7]
    with pytest.raises(DataError) as raised:
        read_assignments(wrong)
    text = raised.value.message
    assert text.count("it reads nothing") == 2
    assert "'a/b': invalid name" in text
    assert text.count("invalid assignment") == 2


def test_what_comes_without_names_gets_those_that_come_beside_it() -> None:
    nameless = [{key: value for key, value in told("").items() if key != "job"}]
    first, second = (read_assignments(nameless, [job]) for job in ("a", "b"))
    assert [found.job for found in (*first, *second)] == ["a", "b"]
    assert first[0].reads == second[0].reads
    assert read_assignments([told("of its own")], ["given"])[0].job == "given"


@pytest.mark.parametrize(
    ("data", "jobs", "wanted"),
    [
        ([], ["a"], "0 assignments and 1 names"),
        ([told("a")], [], "1 assignments and 0 names"),
        ([told("a")], "a", "`jobs` must be a list of names"),
        ([told("a")], [7], "`jobs` must be a list of names"),
        ([told("a")], ["a/b"], "'a/b': invalid name"),
        ([{}], ["a"], "invalid assignment"),
        ([7], ["a"], "invalid assignment"),
        ({"a": 1}, ["a"], "`assignments` must be a list"),
    ],
)
def test_names_that_do_not_fit_are_refused(data: object, jobs: object, wanted: str) -> None:
    with pytest.raises(DataError, match=wanted):
        read_assignments(data, jobs)
