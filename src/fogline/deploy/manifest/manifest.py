"""A composition as it is written: names and addresses not looked up yet, every word with its place.

What the readers of compositions and of deployment plans both give, and what `resolve` takes. They
raise nothing: what is wrong in one place does not keep the rest from being read, and `resolve`
reports it together with what it finds itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fogline.deploy.manifest.problems import Lines, Problems, Where
from fogline.deploy.manifest.tree import START, Spot, Word, shorten
from fogline.model.jobs import Scalar

DEPLOY, UPDATE, UNINSTALL = "deploy", "update", "uninstall"
START_JOB, STOP_JOB = "start", "stop"

_CODE = (".py", ".whl", ".jar")

UNKNOWN = "?"
"""Stands for a field of an unknown name: it may be meant to be any other."""

CODE_INPUT = ("format", "time", "lateness", "schema", "entity", "metric", "value", "header")
GATEWAY_INPUT = ("fields", "metricField", "valueField", "stream", "deduplicate")
"""What `input` may say besides, for steps."""


@dataclass(frozen=True, slots=True)
class WrittenPlace:
    """A topic, and where: at a site, at a broker's address, or (neither) where the job is."""

    topic: Word
    site: Word | None = None
    broker: Word | None = None
    forwarded: bool = False
    """A gateway named as the site stands for the site it forwards to."""


class WrittenJob(NamedTuple):
    """One job as it is written; what it computes is in one of entry, query, steps and binary.

    A tuple, because an operation may be placed on very many nodes: these are made quickly.
    """

    name: Word
    parameters: Mapping[str, Scalar]
    input: Mapping[str, str]
    spots: Mapping[str, Spot]
    """The place of each field, and of the job itself under its empty name."""
    site: Word | None = None
    address: Word | None = None
    entry: Word | None = None
    """module:function."""
    path: Word | None = None
    """The file of the code, as written."""
    query: Word | None = None
    """Text of a query, or the name of a file that ends in .ins."""
    steps: tuple[Mapping[str, Any], ...] | None = None
    binary: Word | None = None
    """Of a deployment plan: steps, a query or code, depending on the node it is placed on."""
    reads: tuple[WrittenPlace, ...] = ()
    writes: tuple[WrittenPlace, ...] = ()
    publish: bool = False
    running: bool = True
    action: str = DEPLOY
    unread: frozenset[str] = frozenset()
    """What could not be read: names of fields, or UNKNOWN when it has one that nobody knows."""

    def is_sure(self, *fields: str) -> bool:
        """Whether what is missing in these fields is missing, and not just written wrong: that
        has been reported."""
        return not self.unread & {UNKNOWN, *fields}

    @property
    def is_brief(self) -> bool:
        """It does not say what is computed, only what is to be done with a job that exists."""
        return self.action == UNINSTALL or (self.action != DEPLOY and self.binary is None)

    @property
    def label(self) -> str:
        """The job, for messages."""
        return f"job {shorten(self.name.text)}" if self.name.text else "this job"

    def at(self, name: str = "") -> Spot:
        return self.spots.get(name, self.spots.get("", START))

    @property
    def query_file(self) -> str | None:
        """The name of the query's file, when the query is not written down itself."""
        word = self.query or self.binary
        return word.text if word and is_query_file(word.text) else None

    @property
    def code_file(self) -> str | None:
        """The name of the code's file."""
        if self.path is not None:
            return self.path.text
        named = self.binary.text if self.binary else ""
        return named if named.endswith(_CODE) else None


@dataclass(frozen=True, slots=True)
class Composition:
    """Jobs, and what comes from outside. `inputs` is None where nothing is said about it."""

    jobs: tuple[WrittenJob, ...]
    name: str = ""
    inputs: tuple[WrittenPlace, ...] | None = None
    brokers: tuple[Word, ...] = ()
    """Addresses of brokers that belong to no node of ours."""
    problems: Problems = field(default_factory=lambda: Problems(Lines()), compare=False, repr=False)
    """What is wrong with the text itself."""
    unread: bool = False
    """Jobs or inputs could not be read: there may be some that nothing is known of."""

    @property
    def where(self) -> Where:
        """Where its jobs are written."""
        spots = {job.name.text: job.name.at for job in self.jobs}
        return Where(self.problems.lines, spots)

    @property
    def query_files(self) -> tuple[str, ...]:
        """The .ins files whose text `resolve` needs."""
        return _once(job.query_file for job in self.jobs)

    @property
    def code_files(self) -> tuple[str, ...]:
        """The files of code that `resolve` needs packages of, as they are written."""
        return _once(job.code_file for job in self.jobs)


def is_query_file(text: str) -> bool:
    return text.endswith(".ins") and "\n" not in text


def _once(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None))
