"""How large and how deep a query may be, so that any text is answered quickly and safely."""

from __future__ import annotations

MAX_TEXT_BYTES = 256 * 1024
MAX_TOKENS = 70_000
MAX_NESTING = 100
"""Parentheses, calls, NOTs and minus signs inside one another."""
MAX_OPEN_BRACKETS = 3 * MAX_NESTING
"""Brackets open at one place; above it the text is refused before its tree is built."""
MAX_HEIGHT = 200
"""Nodes from the top of an expression to its deepest leaf, so also the length of `1 + 1 + …`."""
MAX_PROBLEMS = 20
MAX_WINDOW_MILLIS = 3650 * 24 * 3600 * 1000
MAX_WINDOW_EVENTS = 1_000_000_000
