"""Pipeline texts: problems of reading them and of looking things up come in one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fogline.common.errors import PipelineError
from fogline.coordinator.pipelines.compiler import DeployCompiler
from fogline.coordinator.pipelines.ports import PLAN, YAML, CompileContext
from fogline.model.nodes import GATEWAY, Node, NodeView

WORLD = CompileContext(
    {"gate": NodeView(Node("gate", GATEWAY), "online", 0.0)},
    {},
    lambda file: None,
    lambda package, entry: None,
    {},
)
STEPS = [{"op": "filter", "when": "x > 1"}]


def wrong(text: str, format: str = YAML) -> list[tuple[str, int]]:
    with pytest.raises(PipelineError) as caught:
        DeployCompiler().compile("p", text, format, WORLD)
    return [(problem.code, problem.line) for problem in caught.value.problems]


def wrong_job(description: Mapping[str, Any]) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        DeployCompiler().compile_job(description, WORLD)
    return [problem.code for problem in caught.value.problems]


def test_all_problems_come_in_the_order_of_the_text() -> None:
    text = """
jobs:
  - name: a
    site: gat
    steps: [{op: filtr}]
    source_topic: T
  - name: b
    site: gate
    steps: [{op: filter, when: "x >"}]
    source_topic: T
    colour: red
"""
    assert wrong(text) == [("SITE", 4), ("STEP", 5), ("STEP", 9), ("FIELD", 11)]


@pytest.mark.parametrize("format", [YAML, PLAN])
@pytest.mark.parametrize("text", ["", "[", "{}", "5", "jobs: {", "\x00", "[]", "x" * (5 << 20)])
def test_texts_that_are_nothing_at_all(text: str, format: str) -> None:
    assert wrong(text, format)


def test_a_job_alone() -> None:
    good = {"name": "a", "site": "gate", "steps": STEPS, "source_topic": "T"}
    made = DeployCompiler().compile_job(good, WORLD).pipeline
    assert [job.name for job in made.jobs] == ["a"]
    assert wrong_job({**good, "name": ["a"], "site": "nowhere"}) == ["TYPE", "SITE"]
    assert wrong_job({**good, "sites": "a", "steps": 7, "name": "b/c"}) == ["NAME", "TYPE", "FIELD"]
    assert wrong_job({}) == ["MISSING", "SITE", "WORK"]
