"""A composition cut into its jobs, so that those which have not changed need not be read again.

Only where that is sure to mean the same: a list of jobs in YAML's block style, one below the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ODD = re.compile("[\r\t\x85\u2028\u2029\ufeff]")
"""What ends lines besides, or is not counted as a column."""
_JOBS = re.compile(r"^jobs:[ ]*$", re.MULTILINE)
MOST_CHARACTERS = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """The lines of one job, and how many are above them."""

    text: str
    above: int


@dataclass(frozen=True, slots=True)
class Pieces:
    jobs: tuple[Piece, ...]
    shell: str
    """The text with an empty list of jobs, everything else in its lines."""


def pieces_of(text: str) -> Pieces | None:
    """None where the text is not written like that."""
    found = _JOBS.search(text)
    if found is None or len(text) > MOST_CHARACTERS or _ODD.search(text):
        return None
    lines = text[found.end() :].split("\n")[1:]
    begins, end = _items(lines)
    if not begins:
        return None
    above = text.count("\n", 0, found.end()) + 1
    jobs = tuple(
        Piece("\n".join(lines[begin:after]) + "\n", above + begin)
        for begin, after in zip(begins, [*begins[1:], end], strict=True)
    )
    rest = "\n".join([*[""] * end, *lines[end:]])
    return Pieces(jobs, f"{text[: found.end()].rstrip(' ')} []\n{rest}")


def _items(lines: list[str]) -> tuple[list[int], int]:
    """Where the items of a list begin, and where the list ends."""
    indent, begins = -1, []
    for number, line in enumerate(lines):
        bare = line.lstrip(" ")
        if not bare or bare.startswith("#"):
            continue
        column = len(line) - len(bare)
        if bare.startswith("- ") and (column == indent or indent < 0):
            indent = column
            begins.append(number)
        elif column <= indent or indent < 0:
            return begins, number
    return begins, len(lines)
