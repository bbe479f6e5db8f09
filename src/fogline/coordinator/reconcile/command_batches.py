"""Commands as nodes get them: one request for all nodes that get the same.

An `install` has the assignments without the names of their jobs, a `remove` has nothing: these
names are what differs from node to node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fogline.common.errors import DataError
from fogline.coordinator.reconcile.state import Command
from fogline.model.jobs import Assignment, canonical


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """Commands that differ in their nodes and the names of their jobs only."""

    op: str
    commands: Mapping[str, Command]
    """By node."""

    @property
    def body(self) -> dict[str, Any]:
        """Raises `DataError` for numbers that JSON does not have."""
        assignments = next(iter(self.commands.values())).assignments
        for assignment in assignments:
            _check_numbers(assignment)
        return {"assignments": [_without_name(a) for a in assignments]} if assignments else {}

    @property
    def parts(self) -> dict[str, dict[str, Any]]:
        return {node: {"jobs": list(command.jobs)} for node, command in self.commands.items()}


def batch_commands(commands: Iterable[Command]) -> list[CommandBatch]:
    """Each node has one command at most."""
    found: dict[tuple[str, ...], dict[str, Command]] = {}
    for command in commands:
        texts = (canonical(_without_name(assignment)) for assignment in command.assignments)
        found.setdefault((command.op, *texts), {})[command.node] = command
    return [CommandBatch(key[0], batch) for key, batch in found.items()]


def _without_name(assignment: Assignment) -> dict[str, Any]:
    return {key: value for key, value in assignment.as_json().items() if key != "job"}


def _check_numbers(assignment: Assignment) -> None:
    try:
        json.dumps(assignment.as_json(), allow_nan=False)
    except ValueError as error:
        raise DataError(f"job {assignment.job}: {error}") from error
