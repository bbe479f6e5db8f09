"""Collects what is wrong with a query, with the place in the text and a hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fogline.common.errors import Problem, QueryError, cut_before
from fogline.language.ast import SyntaxNode
from fogline.language.limits import MAX_PROBLEMS


class QueryProblems:
    """Problems found so far. `raise_any` raises once, with all of them; `add` does as soon as there
    are so many that nobody reads more."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._found: list[Problem] = []

    def add(self, code: str, message: str, node: SyntaxNode, hint: str = "") -> None:
        line, column = node.at.line, node.at.column
        source = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        start = cut_before(column)
        shown = source[start : start + 120].replace("\t", " ")
        problem = Problem(code, message, line, column, shown, hint)
        if problem not in self._found:
            self._found.append(problem)
        if len(self._found) >= MAX_PROBLEMS:
            self.raise_any()

    def raise_any(self) -> None:
        if self._found:
            raise QueryError(tuple(self._found))

    @property
    def count(self) -> int:
        return len(self._found)


class Refused(Exception):  # noqa: N818 - not an error of the program
    """Inside the analysis: this statement has a problem that was recorded; go on with the next."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the nearest known name, or the known names when there are few."""
    names = sorted(set(known))
    folded = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), list(folded), n=1)
    if close:
        return f"did you mean {folded[close[0]]}?"
    return f"known: {', '.join(names)}" if 0 < len(names) <= 12 else ""
