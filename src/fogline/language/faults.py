"""A fault found while reading a query, and its place in the text as a `Problem`."""

from __future__ import annotations

from fogline.common.errors import Problem
from fogline.language.ast import Position

SHOWN = 120
LEAD = 80


class Fault(Exception):  # noqa: N818 - a Problem without its text; it never leaves the package
    """Raised inside the language package only; `parse` turns it into a `QueryError`."""

    def __init__(self, code: str, message: str, at: Position, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.hint = hint

    def problem(self, text: str) -> Problem:
        source = source_line(text, self.at)
        return Problem(self.code, self.message, self.at.line, self.at.column, source, self.hint)


def source_line(text: str, at: Position) -> str:
    """The line of the text, cut to about 120 characters, as blank-for-tab printable text.

    The cut starts at the line's beginning while the column is within the first 100 characters;
    further right it starts so that the column is the 80th character.
    """
    start = _line_start(text, at.line)
    end = text.find("\n", start)
    first = start if at.column <= SHOWN - 20 else start + at.column - LEAD
    last = min(first + SHOWN, len(text) if end < 0 else end)
    return "".join(map(_show_character, text[first:last])).rstrip()


def _line_start(text: str, line: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start


def _show_character(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"
