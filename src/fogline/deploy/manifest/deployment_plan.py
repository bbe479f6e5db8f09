"""Deployment plans: operations and where they are placed, in JSON.

An operation is a mapping, or a list of mappings that together are one; so is everything inside it.
Names may be written with blanks, hyphens or underscores. Each operation becomes one job for every
node it is placed on, called `operation@node`; an ingestion becomes no job: it says at which node's
broker its topic is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from fogline.deploy.manifest.fields import entry_word
from fogline.deploy.manifest.json_tree import read_json
from fogline.deploy.manifest.manifest import (
    STOP_JOB,
    UNKNOWN,
    Composition,
    WrittenJob,
    WrittenPlace,
)
from fogline.deploy.manifest.operations import (
    INGESTION,
    MAIN_CLASS,
    PUBLISH_TOPIC,
    SUBSCRIBE_TOPIC,
    TOPIC,
    UNCLEAR,
    Operation,
    PlanDocument,
)
from fogline.deploy.manifest.problems import Lines, Problems
from fogline.deploy.manifest.tree import Word, read_scalar, shorten
from fogline.model.jobs import Scalar

_INPUT = "input."
_NO_PARAMETERS = frozenset({MAIN_CLASS, PUBLISH_TOPIC, SUBSCRIBE_TOPIC, TOPIC})


def read_deployment_plan(text: str) -> Composition:
    """What a text says, as a composition, as far as it can be read, and what is wrong with it."""
    problems = Problems(Lines.of(text))
    tree = read_json(text, problems)
    document = PlanDocument(problems)
    operations = document.operations(tree)
    jobs = tuple(_Wiring(operations, problems).jobs())
    return Composition(jobs, document.name, problems=problems, unread=len(problems) > 0)


class _Wiring:
    """Operations and what connects them."""

    def __init__(self, operations: tuple[Operation, ...], problems: Problems) -> None:
        self.all = operations
        self.problems = problems
        self._names: dict[str, list[Operation]] = defaultdict(list)
        self._ingestions: dict[str, list[Operation]] = defaultdict(list)
        for operation in operations:
            for name in {operation.id.text, operation.described_node}:
                self._names[name].append(operation)
            for topic in operation.topics if operation.action == INGESTION else ():
                self._ingestions[topic.text].append(operation)

    def jobs(self) -> Iterator[WrittenJob]:
        for operation in self.all:
            if operation.action in (INGESTION, UNCLEAR):
                continue
            yield from self._jobs(operation)

    def _jobs(self, operation: Operation) -> Iterator[WrittenJob]:
        before = len(self.problems)
        reads, writes = tuple(self._reads(operation)), tuple(self._writes(operation))
        parameters, given = self._parameters(operation), self._input(operation)
        main = operation.argument(MAIN_CLASS)
        entry = entry_word(main, True, self.problems) if main else None
        unread = frozenset({UNKNOWN} if operation.unread or len(self.problems) > before else ())
        for node in operation.nodes:
            yield WrittenJob(
                name=Word(f"{operation.id.text}@{node.text}", node.at),
                site=node,
                entry=entry,
                binary=operation.binary,
                reads=reads,
                writes=writes,
                parameters=parameters,
                input=given,
                running=operation.action != STOP_JOB,
                action=operation.action,
                spots={"": operation.id.at, "site": node.at},
                unread=unread,
            )

    def _parameters(self, operation: Operation) -> dict[str, Scalar]:
        """Numbers may stand in quotes, as the thesis writes them."""
        found: dict[str, Scalar] = {}
        for name, words in operation.arguments.items():
            if name in _NO_PARAMETERS or name.startswith(_INPUT):
                continue
            values = [value for word in words if (value := read_scalar(word.text)) is not None]
            if len(values) == 1:
                found[name] = values[0]
            else:
                at = operation.argument_spots.get(name, operation.id.at)
                self.problems.add("TYPE", f"{shorten(name)} must be one value", at)
        return found

    def _input(self, operation: Operation) -> dict[str, str]:
        """`input.format` and so on: how records are read."""
        return {
            name.removeprefix(_INPUT): ",".join(word.text for word in words)
            for name, words in operation.arguments.items()
            if name.startswith(_INPUT)
        }

    # ── reads from, writes to ───────────────────────────────────────────────────────────────────

    def _reads(self, operation: Operation) -> Iterator[WrittenPlace]:
        topics = operation.arguments.get(SUBSCRIBE_TOPIC) or tuple(self._source_topics(operation))
        for topic in topics:
            yield from self._at(topic, self._ingesting(topic.text))

    def _source_topics(self, operation: Operation) -> Iterator[Word]:
        """Of an operation the topic it writes; whatever else is named is the topic itself."""
        for source in operation.sources:
            named = self._find_operations(source.text)
            topics = [Word(t.text, source.at) for op in named for t in op.topics]
            if named and not topics:
                message = f"{shorten(source.text)} names no topic to read"
                self.problems.add("TOPIC", message, source.at, f"add {SUBSCRIBE_TOPIC}")
            yield from topics if named else (source,)

    def _writes(self, operation: Operation) -> Iterator[WrittenPlace]:
        targets = [op for word in operation.targets for op in self._find_operations(word.text)]
        inherited = (topic for op in targets if op.action == INGESTION for topic in op.topics)
        for topic in operation.arguments.get(PUBLISH_TOPIC) or tuple(inherited):
            yield from self._at(topic, self._ingesting(topic.text) or targets)

    def _at(self, topic: Word, operations: Iterable[Operation]) -> Iterator[WrittenPlace]:
        nodes = [node for operation in operations for node in operation.nodes]
        if not nodes:
            yield WrittenPlace(topic)
        for node in nodes:
            yield WrittenPlace(topic, node, forwarded=True)

    def _ingesting(self, topic: str) -> list[Operation]:
        return self._ingestions.get(topic, [])

    def _find_operations(self, reference: str) -> list[Operation]:
        """The operations with this id, or whose node description has it."""
        return self._names.get(reference, [])
