"""The words of the language: which are reserved, and which a terminal of the grammar stands for."""

from __future__ import annotations

from collections.abc import Iterable

_STATEMENT_WORDS = ("STREAM", "FROM", "COMPUTE", "FUNCTION", "BY", "WHEN", "EVERY", "WITH", "TO")
_EXPRESSION_WORDS = ("INSIGHT", "SESSION", "NOT", "IN", "OR", "AND")
RESERVED = frozenset((*_STATEMENT_WORDS, *_EXPRESSION_WORDS))
"""Words the printer quotes when they name a field, and that cannot name a function."""

TIME_UNITS = {
    "MILLIS": 1,
    "MS": 1,
    "SECONDS": 1000,
    "SECOND": 1000,
    "S": 1000,
    "MINUTES": 60_000,
    "MINUTE": 60_000,
    "M": 60_000,
    "HOURS": 3_600_000,
    "HOUR": 3_600_000,
    "H": 3_600_000,
    "DAYS": 86_400_000,
    "DAY": 86_400_000,
    "D": 86_400_000,
}

_WORDS = {
    "UNIT": ("MILLIS", "SECONDS", "MINUTES", "HOURS", "DAYS", "EVENTS"),
    "NUMBER_OPTION": ("SALIENCE", "SAMPLE", "MAX_ERROR", "CONFIDENCE", "K", "R"),
    "TEXT_OPTION": ("SCHEDULER", "ALGORITHM", "SIGNATURE"),
    "LEVEL": ("COMPUTATIONS", "ACCURACY"),
    "AWARENESS": ("AWARENESS",),
    "ALLOW": ("ALLOW",),
    "_ON": ("ON",),
}


def words_of(terminals: Iterable[str]) -> list[str]:
    """The keywords a set of the grammar's terminals stands for."""
    found: list[str] = []
    for terminal in sorted(terminals):
        plain = terminal.lstrip("_")
        found += _WORDS.get(terminal, (plain,) if plain in RESERVED else ())
    return found


OPTION_WORDS = frozenset(words_of(("NUMBER_OPTION", "TEXT_OPTION", "AWARENESS", "ALLOW")))
