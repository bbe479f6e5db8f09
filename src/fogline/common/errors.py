"""Every error Fogline raises on purpose, in one tree.

A `FoglineError` is something a person can act on: its text says what is wrong and its hint says
what to do next. Anything else that escapes is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass

START_COORDINATOR = "start one with fogline coordinator"
START_SITE = "start one with fogline agent --config site.yaml"
"""Hints of errors where nobody is there to do what was asked for."""


class FoglineError(Exception):
    """The root: a message, and where there is one a hint about what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(FoglineError):
    """The command was called wrong; the command line exits with 2."""


class SetupError(FoglineError):
    """Something Fogline needs on this machine is missing or does not start."""


class DataError(FoglineError):
    """An input cannot be read at all: a file, a folder, a stream, a request."""


class PlanError(FoglineError):
    """A plan cannot be compiled; a query that passed the check never raises it."""


class UnauthorizedError(FoglineError):
    """The token is missing or wrong."""


class ForbiddenError(FoglineError):
    """The caller lacks a right."""


class NotFoundError(FoglineError):
    """Nothing of this name exists."""


class ConflictError(FoglineError):
    """It does not go with what is there."""


class TooLargeError(FoglineError):
    """More than is accepted at once."""


class UnavailableError(FoglineError):
    """It cannot be done now, or nobody answers; later it may work."""


def cut_before(column: int) -> int:
    """How many characters of a long source line are left out before what is shown of it."""
    return 0 if column <= 100 else column - 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a query text, with its place in the text."""

    code: str
    message: str
    line: int
    column: int
    source: str = ""
    hint: str = ""

    def render(self) -> str:
        head = f"{self.line}:{self.column}: {self.code}: {self.message}"
        lines = [head]
        if self.source:
            offset = self.column - 1 - cut_before(self.column)
            lines += [f"    {self.source}", "    " + " " * offset + "^"]
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        return {
            "code": self.code,
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "source": self.source,
            "hint": self.hint,
        }


class ProblemsError(FoglineError):
    """A text is wrong. Holds every problem found, in the order of the text."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        ordered = tuple(sorted(problems, key=lambda p: (p.line, p.column)))
        super().__init__("\n".join(problem.render() for problem in ordered))
        self.problems = ordered


class QueryError(ProblemsError):
    """A query file is wrong."""


class PipelineError(ProblemsError):
    """A composition, a deployment plan or what they ask for is wrong."""
