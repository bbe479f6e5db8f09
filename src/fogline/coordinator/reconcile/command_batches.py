"""Commands as nodes get them: what several are told alike is written once.

An `install` has the assignments without the names of their jobs, a `remove` has nothing: these
names are what differs from node to node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as _quoted

from fogline.control.payload import JsonText
from fogline.coordinator.reconcile.state import Command
from fogline.model.assignment_text import nameless_text, shared_parts


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that differ in their nodes and the names of their jobs only."""

    op: str
    commands: Mapping[str, Command]
    """By node."""

    @property
    def body(self) -> JsonText:
        """Raises `DataError` for numbers that JSON does not have."""
        told = next(iter(self.commands.values())).assignments
        if not told:
            return JsonText("{}")
        return JsonText(f'{{"assignments":[{",".join(map(nameless_text, told))}]}}')

    @property
    def parts(self) -> dict[str, JsonText]:
        return {node: _jobs(command) for node, command in self.commands.items()}


def grouped(commands: Iterable[Command]) -> list[Group]:
    """Each node has one command at most."""
    found: dict[tuple[str, tuple[object, ...]], dict[str, Command]] = {}
    for command in commands:
        alike = command.op, tuple(map(shared_parts, command.assignments))
        found.setdefault(alike, {})[command.node] = command
    return [Group(op, of) for (op, _), of in found.items()]


def _jobs(command: Command) -> JsonText:
    return JsonText(f'{{"jobs":[{",".join(map(_quoted, command.jobs))}]}}')
