"""The operations of a deployment plan, one by one, and where they are placed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fogline.deploy.manifest.manifest import DEPLOY, START_JOB, STOP_JOB, UNINSTALL, UPDATE
from fogline.deploy.manifest.problems import Problems
from fogline.deploy.manifest.tree import (
    START,
    Items,
    Spot,
    TreeTable,
    TreeValue,
    Word,
    kind_of,
    shorten,
)

INGESTION = "ingestion"
UNCLEAR = ""
"""The action of an operation that does not say what is to be done."""
PUBLISH_TOPIC, SUBSCRIBE_TOPIC, TOPIC = "publish.topic", "subscribe.topic", "topic"
MAIN_CLASS = "main.class"

TASKS = {
    **dict.fromkeys(("deploy", "install", "installation"), DEPLOY),
    **dict.fromkeys(("update", "configure", "configuration"), UPDATE),
    **dict.fromkeys(("uninstall", "uninstallation"), UNINSTALL),
    **dict.fromkeys(("ingestion", "data ingestion"), INGESTION),
    "start": START_JOB,
    "stop": STOP_JOB,
}
_FIELDS = {
    **dict.fromkeys(("opid", "id"), "id"),
    **dict.fromkeys(("source", "datain", "readsfrom"), "source"),
    **dict.fromkeys(("node", "runson"), "node"),
    **dict.fromkeys(("task", "executes"), "task"),
    **dict.fromkeys(("target", "dataout", "writesto"), "target"),
}
_NODE_FIELDS = {
    "metadata": "metadata",
    **dict.fromkeys(("softewarestack", "softwarestack"), "software stack"),
    "resources": "resources",
}
_TASK_FIELDS = {"type": "type", "binary": "binary", "arguments": "arguments"}
_PLACEMENT_FIELDS = {**dict.fromkeys(("opid",), "operation"), **dict.fromkeys(("pid",), "nodes")}
_ARGUMENTS = {"suscribe.topic": SUBSCRIBE_TOPIC, "publish.gos": "publish.qos"}

_JOINTS = re.compile(r"[\s_-]")


@dataclass(frozen=True, slots=True)
class Operation:
    id: Word
    action: str
    nodes: tuple[Word, ...]
    """The nodes it is placed on."""
    binary: Word | None = None
    sources: tuple[Word, ...] = ()
    targets: tuple[Word, ...] = ()
    arguments: Mapping[str, tuple[Word, ...]] = field(default_factory=dict)
    argument_spots: Mapping[str, Spot] = field(default_factory=dict)
    described_node: str = ""
    """The id in its node's metadata."""
    unread: bool = False
    """A part of it could not be read."""

    def argument(self, name: str) -> Word | None:
        return next(iter(self.arguments.get(name, ())), None)

    @property
    def topics(self) -> tuple[Word, ...]:
        """What comes from it, or what it ingests."""
        named = (self.arguments.get(name, ()) for name in (TOPIC, PUBLISH_TOPIC))
        return tuple(word for words in named for word in words)


class PlanDocument:
    """Finds operations and placement in a document, whether as objects or lists of objects."""

    def __init__(self, problems: Problems) -> None:
        self.name = ""
        self._problems = problems
        self._placed: dict[str, tuple[Word, ...]] = {}
        self._placements: list[tuple[Word, TreeValue]] = []

    def operations(self, tree: TreeValue | None) -> tuple[Operation, ...]:
        if tree is None:
            return ()
        found = [value for name, value in self._parts(tree) if name == "operation"]
        self._read_placements()
        if not found and not len(self._problems):
            hint = '{"Computation": [{"Operation": …}, {"Placement": …}]}'
            self._problems.add("MISSING", "a deployment plan has operations", tree.at, hint)
        operations = tuple(op for value in found if (op := self._operation(value)))
        self._check_ids(operations)
        if self._placed.keys() <= {operation.id.text for operation in operations}:
            return operations
        # Who is not placed may be meant by a placement that names nobody.
        return tuple(op for op in operations if op.id.text in self._placed)

    # ── the document ────────────────────────────────────────────────────────────────────────────

    def _parts(self, tree: TreeValue) -> Iterator[tuple[str, TreeValue]]:
        """Operations in their order; the placement and the name are put aside."""
        for key, value in self._pairs(tree):
            match _join_words(key.text):
                case "computation":
                    yield from self._parts(value)
                case "operation":
                    yield "operation", value
                case "operations":
                    yield from (("operation", item) for item in _each(value))
                case "placement":
                    self._placements += ((key, item) for item in _each(value))
                case "name":
                    self.name = value.text if isinstance(value, Word) else ""
                case _:
                    message = f"a deployment plan has no {shorten(key.text)!r}"
                    self._problems.add("FIELD", message, key.at, "Operation or Placement")

    def _pairs(self, value: TreeValue) -> Iterator[tuple[Word, TreeValue]]:
        """The fields of an object, or of all objects of a list."""
        for item in _each(value):
            if isinstance(item, TreeTable):
                yield from ((item.keys[name], inner) for name, inner in item.fields.items())
            else:
                self._problems.add("TYPE", f"must be an object, not {kind_of(item)}", item.at)

    def _read_known(
        self, value: TreeValue, names: Mapping[str, str], what: str
    ) -> dict[str, TreeValue]:
        """One object of all: its fields under their usual names."""
        found: dict[str, TreeValue] = {}
        for key, inner in self._pairs(value):
            name = names.get(_join_words(key.text))
            if name is None:
                message = f"{what} has no {shorten(key.text)!r}"
                hint = "known: " + ", ".join(dict.fromkeys(names.values()))
                self._problems.add_unknown("FIELD", message, key.at, key.text, names.values(), hint)
            elif name in found:
                self._problems.add("DUPLICATE", f"{what} has two of {name}", key.at)
            else:
                found[name] = inner
        return found

    # ── placement ───────────────────────────────────────────────────────────────────────────────

    def _read_placements(self) -> None:
        for _, value in self._placements:
            keys = value.fields if isinstance(value, TreeTable) else {}
            if any(_join_words(key) in _PLACEMENT_FIELDS for key in keys):
                fields = self._read_known(value, _PLACEMENT_FIELDS, "a placement")
                self._place(fields.get("operation"), fields.get("nodes"), value.at)
            else:
                for key, nodes in self._pairs(value):
                    self._place(key, nodes, key.at)

    def _place(self, operation: TreeValue | None, nodes: TreeValue | None, at: Spot) -> None:
        if not isinstance(operation, Word) or nodes is None:
            message = "a placement names an operation and its nodes"
            self._problems.add("TYPE", message, at, '{"OP ID": "001", "P ID": "PI-1, PI-2"}')
        elif operation.text in self._placed:
            message = f"{shorten(operation.text)} is placed twice"
            self._problems.add("DUPLICATE", message, operation.at)
        else:
            self._placed[operation.text] = self._names(nodes)

    def _check_ids(self, operations: Iterable[Operation]) -> None:
        seen: set[str] = set()
        for operation in operations:
            if operation.id.text in seen:
                message = f"there are two operations {shorten(operation.id.text)}"
                self._problems.add("DUPLICATE", message, operation.id.at)
            seen.add(operation.id.text)
        for key in self._placed.keys() - seen:
            message = f"{shorten(key)} is placed, but there is no such operation"
            self._problems.add_unknown("PLACEMENT", message, self._spot_of(key), key, seen)

    def _spot_of(self, operation: str) -> Spot:
        words = self._placed[operation]
        return words[0].at if words else START

    # ── one operation ───────────────────────────────────────────────────────────────────────────

    def _operation(self, value: TreeValue) -> Operation | None:
        before = len(self._problems)
        fields = self._read_known(value, _FIELDS, "an operation")
        identity = fields.get("id")
        if not isinstance(identity, Word):
            self._problems.add("MISSING", "an operation has an id", value.at, "add OP-ID")
            return None
        task = self._read_known(fields["task"], _TASK_FIELDS, "a task") if "task" in fields else {}
        arguments, spots = self._arguments(task.get("arguments"))
        described = self._find_described(fields.get("node"))
        action = self._action(task.get("type"), identity)
        binary = task.get("binary")
        if not isinstance(binary, Word) and action == DEPLOY:
            message = f"operation {shorten(identity.text)} has no binary"
            self._problems.add("MISSING", message, identity.at, "add binary to its task")
        nodes = self._nodes(identity, described)
        sources, targets = self._names(fields.get("source")), self._names(fields.get("target"))
        return Operation(
            identity,
            action,
            nodes,
            binary if isinstance(binary, Word) else None,
            sources,
            targets,
            arguments,
            spots,
            described.text if described else "",
            len(self._problems) > before,
        )

    def _action(self, value: TreeValue | None, identity: Word) -> str:
        text = value.text.strip().lower() if isinstance(value, Word) else ""
        if text not in TASKS:
            problem = "has no task type" if value is None else f"has no task type {kind_of(value)}"
            at = value.at if value else identity.at
            message = f"operation {shorten(identity.text)} {problem}"
            hint = "deploy, update, ingestion, uninstall, start or stop"
            self._problems.add_unknown("ACTION", message, at, text, TASKS, hint)
        return TASKS.get(text, UNCLEAR)

    def _nodes(self, identity: Word, described: Word | None) -> tuple[Word, ...]:
        nodes = self._placed.get(identity.text, (described,) if described else ())
        if not nodes:
            message = f"operation {shorten(identity.text)} is placed nowhere"
            hint = f'add {{"OP ID": "{shorten(identity.text)}", "P ID": …}} to Placement'
            self._problems.add("PLACEMENT", message, identity.at, hint)
        unique = {node.text: node for node in nodes}
        return tuple(unique.values())

    def _find_described(self, value: TreeValue | None) -> Word | None:
        node = self._read_known(value, _NODE_FIELDS, "a node") if value is not None else {}
        for key, inner in self._pairs(node["metadata"]) if "metadata" in node else ():
            if _join_words(key.text) == "id" and isinstance(inner, Word):
                return inner
        return None

    def _arguments(
        self, value: TreeValue | None
    ) -> tuple[dict[str, tuple[Word, ...]], dict[str, Spot]]:
        found: dict[str, tuple[Word, ...]] = {}
        spots: dict[str, Spot] = {}
        for key, inner in self._pairs(value) if value is not None else ():
            name = _ARGUMENTS.get(key.text, key.text)
            words = tuple(word for word in _each(inner) if isinstance(word, Word))
            if name in found:
                self._problems.add("DUPLICATE", f"{shorten(name)} is given twice", key.at)
            if len(words) != len(_each(inner)):
                self._problems.add("TYPE", f"{shorten(name)} must be a text", inner.at)
            found[name], spots[name] = words, key.at
        return found, spots

    def _names(self, value: TreeValue | None) -> tuple[Word, ...]:
        """Names with commas between them, or a list of names."""
        found: list[Word] = []
        for item in _each(value) if value is not None else ():
            if isinstance(item, Word):
                found += _parts(item)
            else:
                self._problems.add("TYPE", f"must be a name, not {kind_of(item)}", item.at)
        return tuple(found)


def _parts(word: Word) -> Iterable[Word]:
    """What commas part, without blanks around it; mostly that is the word itself."""
    parts = [part.strip() for part in word.text.split(",")]
    if parts == [word.text] and word.text and not word.plain:
        return (word,)
    return (Word(part, word.at) for part in parts if part)


def _join_words(name: str) -> str:
    """`opid` for OP-ID, OP ID and op_id."""
    return _JOINTS.sub("", name).lower()


def _each(value: TreeValue) -> tuple[TreeValue, ...]:
    return value.items if isinstance(value, Items) else (value,)
