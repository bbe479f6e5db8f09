"""What the binaries of a deployment plan are on a gateway: a short list of steps.

What an operator may change while it runs (`publish.rate`, a condition) becomes a parameter of the
step instead of a part of it, so a plan that changes only that leaves the steps going.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, TypeVar

from fogline.model.jobs import Scalar

RATE, CONDITION, FRACTION, FIELDS, BY = "publish.rate", "condition", "fraction", "fields", "by"
DEFAULT_FIELD = "value"
IGNORED = frozenset({"publish.qos"})
"""Arguments that mean nothing here: links deliver exactly once."""

AGGREGATES = {
    **dict.fromkeys(("average", "avg", "mean"), "avg"),
    **{name: name for name in ("sum", "min", "max", "count")},
}
OTHERS = ("filter", "sample", "forward")
KNOWN = (*AGGREGATES, *OTHERS)

_PARAMETERS = {
    "aggregate": {RATE: "aggregate.window"},
    "filter": {CONDITION: "filter.when"},
    "sample": {FRACTION: "sample.fraction"},
    "throttle": {RATE: "throttle.seconds"},
}
_NEEDED = {"aggregate": RATE, "sample": FRACTION, "throttle": RATE}

StepBody = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps of a binary and their parameters, and what is wrong with its arguments."""

    steps: tuple[StepBody, ...]
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()


def binary_name(binary: str) -> str:
    """`average` for `lib/Average.dp`."""
    return PurePosixPath(binary).stem.lower()


def recipe(binary: str, arguments: Mapping[str, Scalar]) -> Recipe | None:
    """What a binary is with these arguments; None for a binary that is not known."""
    name = binary_name(binary)
    if name not in KNOWN:
        return None
    steps = tuple(_steps(name, arguments))
    ops = [str(step["op"]) for step in steps]
    known = {given: field for op in ops for given, field in _PARAMETERS[op].items()}
    for_steps = {given: given for given in arguments if given.partition(".")[0] in ops}
    named = for_steps | known
    parameters = {named[given]: value for given, value in arguments.items() if given in named}
    in_steps = {FIELDS, BY} if "aggregate" in ops else set()
    left = arguments.keys() - named.keys() - in_steps - IGNORED
    wrong = [f"{binary} takes no argument {given}" for given in sorted(left)]
    wrong += [
        f"{binary} needs {_NEEDED[op]}, a number above 0" for op in ops if _lacks(op, arguments)
    ]
    return Recipe(steps, parameters, tuple(wrong))


def step_parameters(steps: Iterable[Mapping[str, Any]], given: Mapping[str, T]) -> dict[str, T]:
    """A plan's arguments (`publish.rate`) as parameters of the steps that were made of them."""
    ops = [str(step.get("op")) for step in steps]
    known = {name: field for op in ops for name, field in _PARAMETERS.get(op, {}).items()}
    return {known.get(name, name): value for name, value in given.items()}


def _steps(name: str, arguments: Mapping[str, Scalar]) -> Iterator[StepBody]:
    if name in AGGREGATES:
        yield _aggregate(AGGREGATES[name], arguments)
        return
    if name == "filter" and CONDITION in arguments:
        yield {"op": "filter"}
    if name == "sample":
        yield {"op": "sample"}
    if RATE in arguments:
        yield {"op": "throttle"}


def _aggregate(function: str, arguments: Mapping[str, Scalar]) -> StepBody:
    fields = _names(arguments.get(FIELDS, "" if function == "count" else DEFAULT_FIELD))
    step: StepBody = {"op": "aggregate", "functions": [function], "fields": fields}
    return step | ({"by": _names(arguments[BY])} if BY in arguments else {})


def _names(value: Scalar) -> list[str]:
    return [name.strip() for name in str(value).split(",") if name.strip()]


def _lacks(op: str, arguments: Mapping[str, Scalar]) -> bool:
    value = arguments.get(_NEEDED.get(op, ""))
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return op in _NEEDED and not usable
