"""Parameters of a job: values that replace those in its steps while it runs.

A parameter is `<step>.<field>`, where the step is its index, its `op` or its `name`, or only the
field, and then it counts for every step that has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fogline.gateway.operators.base import BadStep

Steps = Sequence[Mapping[str, Any]]

_INSTEAD = {"rate": "seconds", "seconds": "rate"}
"""Two ways to say the same: the one that is given replaces the other."""


def with_parameters(steps: Steps, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps with these values. Raises `BadStep` for a parameter that is for none of them."""
    made = [dict(step) for step in steps]
    for name, value in parameters.items():
        places = [(i, field) for i in range(len(made)) for field in _fields(name, i, made[i])]
        if not places:
            raise BadStep(f"parameter {name[:80]!r} is for no step")
        for index, field in places:
            made[index].pop(_INSTEAD.get(field, ""), None)
            made[index][field] = value
    return made


def _fields(name: str, index: int, step: Mapping[str, Any]) -> list[str]:
    """Which field of a step a parameter is for: one or none."""
    if name in step and name != "op":
        return [name]
    head, dot, field = name.partition(".")
    named = (str(index), step.get("op"), step.get("name"))
    return [field] if dot and field and field != "op" and head in named else []
