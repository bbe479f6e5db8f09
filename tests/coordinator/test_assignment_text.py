"""The JSON of many assignments, written quickly."""

from __future__ import annotations

import json

from fogline.control.payload import JsonText
from fogline.coordinator.state import INSTALL, Command
from fogline.model.assignment_text import MOST_KNOWN, AssignmentTexts
from fogline.model.jobs import (
    PUBLISH,
    Assignment,
    Code,
    Place,
    Query,
    Route,
    Scalar,
    Steps,
    canonical,
)

READS, ROUTES = (Place("in/{gateway}"),), (Route(PUBLISH, "out", "mqtt://x:1"),)
WORKS = (
    Steps(({"op": "filter", "where": "x > 'ä'"},)),
    Code("m:f", "0" * 64, "m.py"),
    Query("EVERY 1 s …", insights=("a",)),
)


def test_texts_and_versions_are_those_of_the_assignments() -> None:
    texts = AssignmentTexts()
    for number in range(2 * MOST_KNOWN):
        work = WORKS[number % 3]
        shared: dict[str, Scalar] = {"n": number // 3}
        for job in ("a", 'b"\\', "ü"):
            made = Assignment(
                *(job, "p", work, READS, ROUTES, shared),
                made=("x",) if number % 2 else (),
                signed={"t": "k"} if number % 5 else {},
                muted=("m",) if number % 7 else (),
            )
            assert texts.of(made) == canonical(made.as_json())
            assert texts.version(made) == made.version


def test_what_is_equal_to_python_only_has_another_text() -> None:
    texts = AssignmentTexts()
    found = {
        texts.of(Assignment("a", "p", Steps(({"op": "x", "n": value},)), parameters={"v": value}))
        for value in (1, 1.0, True)
    }
    assert len(found) == 3


def test_a_command_is_written_at_once_and_what_json_lacks_is_left_to_the_writer() -> None:
    def body(**parameters: Scalar) -> object:
        told = Assignment("a", "p", WORKS[0], READS, ROUTES, parameters)
        return Command(1, "n", INSTALL, ("a",), ("v",), 0.0, (told,)).body(AssignmentTexts())

    written = body(x=1)
    assert isinstance(written, JsonText)
    assert json.loads(written)["assignments"][0]["parameters"] == {"x": 1}
    assert isinstance(body(x="Infinity"), dict)
    endless = body(x=float("inf"))
    assert isinstance(endless, dict)
