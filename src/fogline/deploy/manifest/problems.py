"""Collecting everything that is wrong with a document, each with its place and a hint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fogline.common.errors import PipelineError, Problem, cut_before
from fogline.deploy.manifest.tree import START, Spot

MOST = 200
"""So many problems are reported; what comes after them is only counted."""
_SHOWN = 120
_YAML_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_MOST_COMPARED = 300


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a document, to show the one a problem is in."""

    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Lines:
        return cls(tuple(text.split("\n")))

    @classmethod
    def of_yaml(cls, text: str) -> Lines:
        """YAML has more signs that end a line."""
        return cls(tuple(_YAML_BREAKS.split(text)))

    def excerpt(self, at: Spot) -> str:
        if not 1 <= at.line <= len(self.lines):
            return ""
        first = cut_before(at.column)
        part = self.lines[at.line - 1][first : first + _SHOWN]
        return "".join(map(_visible, part)).rstrip()


@dataclass(frozen=True, slots=True)
class Where:
    """Where the jobs of a pipeline stand in the text they come from, as far as that is known."""

    lines: Lines = field(default_factory=Lines)
    spots: Mapping[str, Spot] = field(default_factory=dict)

    def problem(self, code: str, message: str, job: str, hint: str = "") -> Problem:
        """One that has to do with this job; at the start of the text when it is not in it."""
        at = self.spots.get(job, START)
        source = self.lines.excerpt(at) if job in self.spots else ""
        return Problem(code, message, at.line, at.column, source, hint)


class Problems:
    """Problems of one document, in the order they are found."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._found: list[Problem] = []
        self._left_out = 0

    def __len__(self) -> int:
        return len(self._found) + self._left_out

    def copy(self) -> Problems:
        """The same problems, to go on with."""
        made = Problems(self.lines)
        made._found, made._left_out = list(self._found), self._left_out
        return made

    def add(self, code: str, message: str, at: Spot, hint: str = "") -> None:
        if len(self._found) >= MOST:
            self._left_out += 1
            return
        source = self.lines.excerpt(at)
        self._found.append(Problem(code, message, at.line, at.column, source, hint))

    def add_unknown(
        self, code: str, message: str, at: Spot, word: str, known: Iterable[str], hint: str = ""
    ) -> None:
        """A problem with a name; the hint is a known name like it, else `hint`."""
        meant = closest(word, known) if len(self._found) < MOST else ""
        self.add(code, message, at, f"did you mean {meant}?" if meant else hint)

    def raise_if_any(self) -> None:
        if self._found:
            raise PipelineError(tuple(self._found) + self._rest())

    def _rest(self) -> tuple[Problem, ...]:
        if not self._left_out:
            return ()
        last = max((problem.line, problem.column) for problem in self._found)
        return (Problem("MORE", f"and {self._left_out} more problems", *last),)


def closest(word: str, known: Iterable[str]) -> str:
    """The known name that is most like the word, or nothing."""
    folded = {name.casefold(): name for name in known}
    if word.casefold() in folded:
        return folded[word.casefold()]
    if len(folded) > _MOST_COMPARED or len(word) > 80:
        return ""
    close = difflib.get_close_matches(word.casefold(), folded, 1, 0.7)
    return folded[close[0]] if close else ""


def list_names(names: Iterable[str], most: int = 8) -> str:
    """Names for a hint: `a, b, c …`."""
    known = sorted(names)
    return ", ".join(known[:most]) + (" …" if len(known) > most else "")


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"
