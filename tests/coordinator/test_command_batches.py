"""Commands for several nodes in one request."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fogline.common.errors import DataError
from fogline.control.errors import NoAnswerError
from fogline.coordinator.reconcile.command_batches import batch_commands
from fogline.coordinator.reconcile.state import INSTALL, REMOVE, Command
from fogline.coordinator.wiring import ControlLine
from fogline.model.jobs import (
    PUBLISH,
    Assignment,
    Code,
    Place,
    Query,
    Route,
    Scalar,
    Steps,
    name_assignments,
)

READS, ROUTES = (Place("in/{gateway}"),), (Route(PUBLISH, "out", "mqtt://x:1"),)
WORKS = (
    Steps(({"op": "filter", "where": "x > 'ä'"},)),
    Code("m:f", "0" * 64, "m.py"),
    Query("EVERY 1 s …", insights=("a",)),
)


def test_what_is_equal_to_python_only_has_another_version_and_batch() -> None:
    works = [Steps(({"op": "x", "n": value},)) for value in (1, 1.0, True)]
    found = [Assignment("a", "p", work) for work in works]
    found += [Assignment("a", "p", works[0], parameters={"v": value}) for value in (1, 1.0, True)]
    assert len({assignment.version for assignment in found}) == 6
    assert len(asks(*((f"n{n}", "a", told) for n, told in enumerate(found)))) == 6


def asks(*commands: tuple[str, str, Assignment]) -> list[tuple[object, dict[str, object]]]:
    made = [
        Command(number, node, INSTALL, (job,), ("v",), 0.0, (told,))
        for number, (node, job, told) in enumerate(commands)
    ]
    batches = batch_commands(made)
    assert {batch.op for batch in batches} <= {INSTALL}
    return [json.loads(json.dumps((batch.body, batch.parts))) for batch in batches]


def test_what_nodes_are_told_alike_is_written_once_and_read_back_with_its_names() -> None:
    parameters: dict[str, Scalar] = {"x": 1, "y": "Infinity"}
    first = Assignment("", "p", WORKS[0], READS, ROUTES, parameters, {"format": "json"})
    told = {node: replace(first, job=f"j@{node}") for node in "abc"}
    other = Assignment("other", "p", WORKS[0], READS, ROUTES, {"x": 1.0})
    found = asks(*((node, a.job, a) for node, a in told.items()), ("d", "other", other))
    assert [set(parts) for _, parts in found] == [{"a", "b", "c"}, {"d"}]
    for body, parts in found:
        assert isinstance(body, dict)
        for node, part in parts.items():
            assert isinstance(part, dict)
            (read,) = name_assignments(body["assignments"], part["jobs"])
            expected = told.get(node, other)
            assert Assignment.from_json(read) == expected
            assert Assignment.from_json(read).version == expected.version


def test_removing_tells_names_only() -> None:
    commands = [Command(1, node, REMOVE, (f"j@{node}", "k"), ("", ""), 0.0) for node in "ab"]
    (batch,) = batch_commands(commands)
    assert (batch.op, batch.body) == (REMOVE, {})
    assert batch.parts == {node: {"jobs": [f"j@{node}", "k"]} for node in "ab"}


def test_what_json_lacks_is_refused() -> None:
    with pytest.raises(DataError, match="job a: ") as found:
        asks(("n", "a", Assignment("a", "p", WORKS[0], READS, ROUTES, {"x": float("inf")})))
    line = ControlLine(None)  # type: ignore[arg-type]
    assert line.is_refusal(found.value), "the job is to blame, not the way to its node"
    assert not line.is_refusal(NoAnswerError("away"))


def test_names_that_do_not_go_with_the_assignments_are_refused() -> None:
    for assignments, jobs in (([{}], ["a", "b"]), ([{}, {}], ["a"]), ([1], ["a"])):
        with pytest.raises(DataError, match="names of jobs"):
            name_assignments(assignments, jobs)
    for assignments in (None, 7, [{"job": "a"}]):
        assert name_assignments(assignments, None) is assignments
