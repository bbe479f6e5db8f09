"""Chains: state written down and read back anywhere changes nothing; wrong steps are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import DataError
from fogline.gateway.jobs.chain import Chain, Results
from tests.gateway.helpers import BASE, message, run

FIELDS = [{"name": "room", "type": "string"}, {"name": "x", "type": "double"}]
PANES = {
    "op": "panes",
    "paneMs": 1000,
    "channels": [
        {
            "number": 0,
            "keys": [{"name": "room", "column": "room"}],
            "inputs": [{"column": "x"}, {"column": "room"}],
        }
    ],
    "slots": [
        {"kind": kind, "inputs": [0]}
        for kind in ("count", "sum", "logsum", "min", "moments", "timed", "first", "last", "values")
    ]
    + [{"kind": "events", "inputs": [0, 1]}],
}
CHAINS: list[list[dict[str, Any]]] = [
    [{"op": "deadband", "field": "x", "by": ["room"], "band": 2}],
    [{"op": "throttle", "rate": 0.5, "by": ["room"], "lateness": 1}],
    [{"op": "aggregate", "window": 3, "fields": ["x"], "functions": ["avg"], "by": ["room"]}],
    [{"op": "throttle", "seconds": 1}, {"op": "sample", "fraction": 0.5}],
    [PANES],
]
contents = st.lists(
    st.fixed_dictionaries(
        {"time": st.integers(BASE, BASE + 20_000), "room": st.sampled_from(["a", "b", None])},
        optional={"x": st.floats(-10, 10)},
    ),
    max_size=30,
)


@given(contents, st.sampled_from(CHAINS), st.sets(st.integers(0, 30)))
def test_state_may_be_written_down_anywhere(
    records: list[dict[str, Any]], steps: list[dict[str, Any]], breaks: set[int]
) -> None:
    given_ = {"time": "time", "fields": FIELDS}
    _, wanted = run(steps, records, fields=FIELDS, deduplicate="100")
    chain, results = Chain(steps, given_ | {"deduplicate": 100}, {}), Results()
    for index, content in enumerate(records):
        if index in breaks:
            state = json.loads(json.dumps(chain.state()))
            chain = Chain(steps, given_ | {"deduplicate": 100}, {})
            chain.restore(state)
        chain.feed(message(content), results)
    chain.flush(results)
    assert results == wanted


def test_a_message_that_comes_again_counts_once() -> None:
    records = [{"time": BASE + i} for i in range(10)]
    out, _ = run([], records + records[5:] + records, deduplicate="8")
    assert out[:10] == records
    assert len(out) == 10 + 10  # The third time so many others have passed that it is forgotten.


@pytest.mark.parametrize("name", ["0.fraction", "sample.fraction", "fraction", "mine.fraction"])
def test_parameters_replace_values(name: str) -> None:
    steps = [{"op": "sample", "fraction": 0.0, "name": "mine"}]
    records = [{"time": BASE + i} for i in range(3)]
    assert run(steps, records)[0] == []
    assert run(steps, records, parameters={name: 1.0})[0] == records


def test_the_rate_of_publishing_is_a_parameter() -> None:
    steps = [{"op": "publish", "seconds": 100}]
    records = [{"time": BASE + i * 1000} for i in range(10)]
    assert len(run(steps, records)[0]) == 1
    assert len(run(steps, records, parameters={"publish.rate": 1})[0]) == 10


def test_state_goes_on_with_other_parameters() -> None:
    chain = Chain([{"op": "deadband", "field": "x", "band": 10}], {"time": "time"}, {})
    results = Results()
    chain.feed(message({"time": BASE, "x": 0}), results)
    chain.feed(message({"time": BASE + 1, "x": 5}), results)
    other = Chain([{"op": "deadband", "field": "x", "band": 10}], {"time": "time"}, {"band": 3})
    other.restore(json.loads(json.dumps(chain.state())))
    other.feed(message({"time": BASE + 2, "x": 2}), results)
    other.feed(message({"time": BASE + 3, "x": 5}), results)
    assert [json.loads(p)["x"] for p in results.out] == [0, 5]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"op": "explode"}, "no operator"),
    ({}, "no operator"),
    ({"op": ["filter"]}, "no operator"),
    ({"op": "filter"}, "needs 'when'"),
    ({"op": "filter", "when": "import os"}, "cannot be read"),
    ({"op": "filter", "condition": {"op": "~", "column": "x", "value": 1}}, "unknown operator"),
    ({"op": "filter", "condition": {"op": ">", "column": "nope", "value": 1}}, "not in 'fields'"),
    ({"op": "filter", "condition": {"op": ">", "column": "room", "value": 1}}, "is string"),
    ({"op": "filter", "when": "x > 1", "what": 1}, "unknown 'what'"),
    ({"op": "sample", "fraction": 2}, "0 to 1"),
    ({"op": "sample", "fraction": float("nan")}, "0 to 1"),
    ({"op": "deadband", "field": "x"}, "'band' or 'percent'"),
    ({"op": "deadband", "field": "x", "band": -1}, "0 or more"),
    ({"op": "convert", "field": "x", "from": "C", "to": "parsec"}, "no unit"),
    ({"op": "convert", "field": "x", "from": "C", "to": "bar"}, "is a temperature"),
    ({"op": "convert", "field": "x"}, "'from' and 'to'"),
    ({"op": "throttle"}, "'seconds'"),
    ({"op": "throttle", "seconds": 1, "rate": 1}, "'seconds'"),
    ({"op": "aggregate", "window": 0}, "above 0"),
    ({"op": "aggregate", "window": 1, "fields": ["x"], "functions": ["eval"]}, "no function"),
    ({"op": "aggregate", "window": 1, "functions": ["avg"]}, "'fields' is missing"),
    (PANES | {"paneMs": 0}, "paneMs"),
    (PANES | {"slots": [{"kind": "hll", "inputs": [0]}]}, "keeps no 'hll'"),
    (PANES | {"slots": [{"kind": "sum", "inputs": [7]}]}, "no channel has"),
    (PANES | {"slots": [{"kind": "comoments", "inputs": [0]}]}, "2 or more"),
    (PANES | {"channels": "x"}, "a list"),
    (PANES | {"channels": [{"number": 0, "keys": [{"name": "k", "column": "q"}], "inputs": []}]},
     "not in 'fields'"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_steps_are_refused(step: dict[str, Any], text: str) -> None:
    with pytest.raises(DataError, match=text):
        Chain([step], {"fields": FIELDS}, {})


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(DataError) as told:
        Chain([step for step, _ in WRONG], {"fields": FIELDS}, {"nothing": 1})
    for index in range(len(WRONG)):
        assert f"step {index} " in str(told.value)
    assert "for no step" in str(told.value)
    assert len(str(told.value)) < 10_000


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"format": "yaml"}, "one of json"),
        ({"format": "csv"}, "header"),
        ({"fields": "{"}, "not JSON"),
        ({"fields": "[1]"}, "name"),
        ({"fields": '[{"name": "x", "type": "int"}]'}, "none of double"),
        ({"metricField": "m"}, "go together"),
        ({"stream": "a/b"}, "topic"),
        ({"speed": "1"}, "unknown"),
        ({"lateness": "-1"}, "0 or more"),
        ({"deduplicate": "many"}, "0 to"),
    ],
)
def test_wrong_options_of_the_decoder(options: dict[str, str], text: str) -> None:
    with pytest.raises(DataError, match=text):
        Chain([], options, {})


def test_panes_need_types() -> None:
    with pytest.raises(DataError, match="'fields' with their types"):
        Chain([PANES], {}, {})


def test_steps_as_a_deployment_makes_them() -> None:
    decode = {"op": "decode", "format": "json", "time": "time", "fields": FIELDS, "lateness": "500"}
    condition = {"op": ">", "column": "x", "value": 0}
    steps = [decode | {"stream": "s"}, {"op": "filter", "condition": condition}, PANES]
    chain, results = Chain(steps, {}, {}), Results()
    for x, at in ((1, 0), (-1, 10), (2, 900), (3, 1400), (4, 1500)):
        chain.feed(message({"time": BASE + at, "room": "r", "x": x}), results)
    assert [json.loads(p)["nums"][:2] for p in results.out] == [[2.0, 3.0]]
    assert json.loads(results.out[0]).keys() == {"channel", "key", "pane", "nums", "lists", "t"}
    assert Chain([decode, PANES | {"channels": []}], {}, {}).stream == "stream"
