"""Looks at query text without parsing it: past strings and comments, in one pass.

Nothing here decides what a text means. It finds where to go on after a problem, which names a
FUNCTION statement declares, and what a person would call the thing at some place.
"""

from __future__ import annotations

import re

_STRING = r""""(?:[^"\\\r\n]|\\[^\r\n])*+"?|'(?:[^'\\\r\n]|\\[^\r\n])*+'?"""
_COMMENT = r"#[^\n]*|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?"
_SKIPPED = re.compile(f"{_STRING}|{_COMMENT}")
_SEPARATOR = re.compile(f"{_STRING}|{_COMMENT}|(;)")
_STATEMENT = re.compile(r"[^\W\d]\w*\s*[=:]\s*(?ai:compute|stream)(?!\w)")
_DECLARATION = re.compile(r"(?ai:\bfunction)\s+([^\W\d]\w*)\s*\(")
_THING = re.compile(f"{_STRING}|" + r"[\w.]+|>=|<=|==|!=|=>|<>|&&|\|\||/\*|\S", re.DOTALL)


def after_separator(text: str, start: int) -> int | None:
    """The place behind the next `;`, or None if there is none."""
    for match in _SEPARATOR.finditer(text, start):
        if match[1]:
            return match.end()
    return None


def starts_statement(text: str, start: int) -> bool:
    return _STATEMENT.match(text, start) is not None


def declared_functions(text: str) -> frozenset[str]:
    """The names FUNCTION statements declare, in any text that parses."""
    if "function" not in text.lower():
        return frozenset()
    return frozenset(_DECLARATION.findall(_SKIPPED.sub(" ", text)))


def thing_at(text: str, start: int) -> str:
    """The word, number, string or sign at a place; empty at the end of the text."""
    match = _THING.match(text, start)
    return match[0] if match else ""
