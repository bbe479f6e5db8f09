"""What jobs compute: code, queries and steps, looked up and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fogline.common.errors import Problem, ProblemsError
from fogline.deploy.manifest.manifest import CODE_INPUT, WrittenJob, is_query_file
from fogline.deploy.manifest.problems import Problems
from fogline.deploy.manifest.tree import Spot, Word, shorten
from fogline.deploy.resolve.binaries import KNOWN, recipe
from fogline.language.ast import QueryFile
from fogline.language.parser import parse
from fogline.model.jobs import Code, Query, Scalar, Steps, Work
from fogline.model.nodes import GATEWAY, SITE, Node
from fogline.plan.analysis.analyse import refuse_functions
from fogline.plan.analysis.build import plan_query
from fogline.plan.analysis.catalog import FunctionLoader, duration_ms

KINDS_OF_CODE = (".py", ".whl")
_TYPES = frozenset(
    {"double", "number", "long", "bigint", "int", "integer", "string", "text", "boolean"}
)
"""Of the columns in the schema of an input."""
_INDEFINITE = {"entry": "code", "query": "a query"}


@dataclass(frozen=True, slots=True)
class Package:
    """A file of the user's code that has been handed in."""

    sha256: str
    file: str


CodeCheck = Callable[[Package, str, Mapping[str, Scalar]], str | None]
"""Why an entry (module:function) of a package cannot be used with these parameters, or None."""
StepsCheck = Callable[
    [Sequence[Mapping[str, Any]], Mapping[str, str], Mapping[str, Scalar]], str | None
]
"""Why a gateway cannot do steps with this input and these parameters, or None."""


def any_steps(
    steps: Sequence[Mapping[str, Any]], given: Mapping[str, str], parameters: Mapping[str, Scalar]
) -> str | None:
    """The check that takes all steps."""
    return None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the works of jobs are looked up in."""

    code: Mapping[str, Package]
    check: CodeCheck
    files: Mapping[str, str] = field(default_factory=dict)
    functions: FunctionLoader = refuse_functions
    check_steps: StepsCheck = any_steps


@dataclass(frozen=True, slots=True)
class Computed:
    """A job's work; of a query also its tree. A gateway's binary has parameters of its own."""

    work: Work
    query: QueryFile | None = None
    parameters: Mapping[str, Scalar] | None = None


class Works:
    def __init__(self, known: Inventory, problems: Problems) -> None:
        self._known = known
        self._problems = problems
        self._queries: dict[str, QueryFile | tuple[Problem, ...]] = {}

    def work(self, job: WrittenJob, node: Node | None) -> Computed | None:
        """What a job computes; None when something is wrong with it or its node is unknown."""
        if job.binary is not None:
            return self._binary(job, job.binary, node)
        kind = self._kind(job)
        if kind is None or not self._fits(job, kind, node):
            return None
        if kind == "steps":
            return self._steps(job.steps or (), job, job.parameters, job.at("steps"))
        if kind == "query":
            return self._query(job.query) if job.query else None
        return self._code(job.entry, job.path, job)

    def _kind(self, job: WrittenJob) -> str | None:
        given = {
            "entry": job.entry is not None or job.path is not None,
            "query": job.query is not None,
            "steps": job.steps is not None,
        }
        found = [name for name, is_given in given.items() if is_given]
        if len(found) == 1:
            return found[0]
        if not found and not job.is_sure("entry", "job_path", "query", "steps"):
            return None
        text = f"has {' and '.join(found)}" if found else "has nothing to compute"
        message = f"{job.label} {text}"
        hint = "give one of: entry with job_path, query, steps"
        self._problems.add("WORK", message, job.at(), hint)
        return None

    def _fits(self, job: WrittenJob, kind: str, node: Node | None) -> bool:
        if node is None or (node.kind == GATEWAY if kind == "steps" else node.computes):
            return True
        if node.kind == SITE and kind != "steps":
            message, hint = f"site {node.name} has no engine", "choose another site"
            self._problems.add("WORK", message, job.at(kind), hint)
            return False
        if node.kind == SITE:
            message, hint = "steps run on gateways", "give a query or an entry instead"
        else:
            message, hint = f"a gateway cannot run {_INDEFINITE[kind]}", "give steps instead"
        text = f"{message}, and {node.name} is a {node.kind}"
        self._problems.add("WORK", text, job.at(kind), hint)
        return False

    # ── a deployment plan's binaries ────────────────────────────────────────────────────────────

    def _binary(self, job: WrittenJob, binary: Word, node: Node | None) -> Computed | None:
        if node is None:
            return None
        if node.kind == GATEWAY:
            return self._gateway_binary(job, binary)
        if is_query_file(binary.text):
            return self._query(binary)
        return self._code(job.entry, binary, job)

    def _gateway_binary(self, job: WrittenJob, binary: Word) -> Computed | None:
        found = recipe(binary.text, job.parameters)
        if found is None:
            message = f"a gateway has no {shorten(binary.text)!r}"
            hint = "known: " + ", ".join(KNOWN)
            self._problems.add_unknown("STEP", message, binary.at, binary.text, KNOWN, hint)
            return None
        for wrong in found.wrong:
            self._problems.add("STEP", shorten(wrong, 120), binary.at, "see Arguments")
        if found.wrong:
            return None
        return self._steps(found.steps, job, found.parameters, binary.at)

    # ── code, steps, queries ────────────────────────────────────────────────────────────────────

    def _code(self, entry: Word | None, path: Word | None, job: WrittenJob) -> Computed | None:
        package = self._package(path, job)
        if entry is None:
            if job.is_sure("entry"):
                message = f"{job.label} does not say which function to call"
                hint = "add main.class" if job.binary else "add entry: module:function"
                self._problems.add("ENTRY", message, job.at("job_path"), hint)
            return None
        if package is None or not self._readable(job):
            return None
        reason = self._known.check(package, entry.text, job.parameters)
        if reason is not None:
            message = f"{entry.text} of {package.file} cannot be used: {reason}"
            self._problems.add("IMPORT", message, entry.at)
            return None
        return Computed(Code(entry.text, package.sha256, package.file))

    def _package(self, path: Word | None, job: WrittenJob) -> Package | None:
        if path is None and not job.is_sure("job_path"):
            return None
        if path is None:
            message = f"{job.label} does not say where its code is"
            self._problems.add("CODE", message, job.at("entry"), "add job_path: a .py or .whl file")
            return None
        package = self._known.code.get(path.text)
        if package is None or not package.file.endswith(KINDS_OF_CODE):
            text = "is not there" if package is None else "is no Python"
            message = f"the code {shorten(path.text)!r} {text}"
            self._problems.add("CODE", message, path.at, "code is a .py file or a .whl")
            return None
        return package

    def _readable(self, job: WrittenJob) -> bool:
        """Whether the input says enough for code: nothing at all, or a format and a schema."""
        if "input" in job.unread:
            return True
        message = ""
        if foreign := [name for name in job.input if name not in CODE_INPUT]:
            message = f"input {', '.join(foreign)} is for gateways"
        elif "format" in job.input and "schema" not in job.input:
            message = "input with a format needs a schema"
        elif job.input and "format" not in job.input:
            message = "input needs a format"
        else:
            message = wrong_input(job.input)
        if message:
            self._problems.add("INPUT", message, job.at("input"), 'schema: "speed double"')
        return not message

    def _steps(
        self,
        steps: tuple[Mapping[str, Any], ...],
        job: WrittenJob,
        parameters: Mapping[str, Scalar],
        at: Spot,
    ) -> Computed | None:
        if job.unread & {"steps", "input", "parameters"}:
            return None
        reason = self._known.check_steps(steps, job.input, parameters)
        if reason is not None:
            self._problems.add("STEP", reason, at)
            return None
        return Computed(Steps(steps), parameters=parameters)

    def _query(self, word: Word) -> Computed | None:
        from_file = is_query_file(word.text)
        text = self._known.files.get(word.text) if from_file else word.text
        if text is None:
            message = f"the query {shorten(word.text)!r} is not there"
            self._problems.add("QUERY", message, word.at)
            return None
        read = self._read(text)
        if isinstance(read, QueryFile):
            return Computed(Query(text), read)
        for problem in read:
            self._embed(problem, word, from_file)
        return None

    def _read(self, text: str) -> QueryFile | tuple[Problem, ...]:
        """The tree of a query that is right, or what is wrong with it; each text is read once."""
        if text not in self._queries:
            try:
                tree = parse(text)
                plan_query(tree, text, self._known.functions)
                self._queries[text] = tree
            except ProblemsError as error:
                self._queries[text] = error.problems
        return self._queries[text]

    def _embed(self, problem: Problem, word: Word, from_file: bool) -> None:
        message, at = problem.message, word.at
        if from_file:
            message = f"{word.text}:{problem.line}:{problem.column}: {message}"
        else:
            at = word.inside(problem.line, problem.column)
        self._problems.add(problem.code, message, at, problem.hint)


def wrong_input(given: Mapping[str, str]) -> str:
    """Why a site cannot read what a job's `input` says (its schema, its lateness), or nothing."""
    lateness = given.get("lateness")
    if lateness is not None and duration_ms(lateness) is None:
        return f"invalid lateness {shorten(lateness)!r}: for example 2 s"
    names: list[str] = []
    for part in given["schema"].split(",") if "schema" in given else ():
        name, _, kind = part.strip().partition(" ")
        if not name or (kind.strip().lower() or "string") not in _TYPES:
            return f"{shorten(part.strip())!r} in the schema must be a name and a type"
        names.append(name)
    twice = next((name for name in names if names.count(name) > 1), "")
    return f"{shorten(twice)} is given twice in the schema" if twice else ""
