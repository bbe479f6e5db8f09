"""Compositions with something wrong in them, and what is told about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fogline.common.errors import PipelineError
from fogline.deploy.resolve.resolve import Package
from fogline.model.jobs import Scalar
from tests.deploy.kit import HERE, resolved

CASES = sorted((HERE / "cases").glob("*.yaml"))
CODE = {"m.py": Package("1", "m.py"), "job.jar": Package("2", "job.jar")}
FILES = {"bad.ins": "x = COMPUTE\n  AVG(;"}


def check(package: Package, entry: str, parameters: Mapping[str, Scalar]) -> str | None:
    return "No module named 'pandsa'" if entry.startswith("broken:") else None


def told(text: str) -> str:
    with pytest.raises(PipelineError) as caught:
        resolved(text, code=CODE, check=check, existing={"taken": "other"}, files=FILES)
    lines = []
    for problem in caught.value.problems:
        lines.append(f"{problem.line}:{problem.column} {problem.code} {problem.message}")
        lines += [f"    {problem.hint}"] if problem.hint else []
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case: Path) -> None:
    expected = case.with_suffix(".expected").read_text(encoding="utf-8")
    assert told(case.read_text(encoding="utf-8")) == expected
